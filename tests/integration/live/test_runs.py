"""A live view does not change how a run ends, stands still, starts again or reports."""

from __future__ import annotations

import re
import time as clock
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run
from tests.integration.live.browsing import PROGRAMS, address_of
from tests.unit.communication.networks import free_ports
from timely.live.client import JobView, events
from timely.live.jobs import page_at

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

STUCK = """
from timely import execute, new_input
def program(worker):
    with worker.dataflow("words") as scope:
        numbers, stream = new_input(scope, name="numbers")
        probe = stream.exchange().probe()
    if worker.index == 0:
        numbers.close()
    worker.step_while(lambda: not probe.done())
execute(program)
"""
CRASHING = """
import os, pathlib, sys, time
from timely import execute, new_input
mark = pathlib.Path(sys.argv[1])
def program(worker):
    with worker.dataflow("words") as scope:
        numbers, stream = new_input(scope, name="numbers")
        stream.probe()
    if not mark.exists() and worker.index == 1:
        mark.touch()
        time.sleep(1)
        os._exit(3)
    end = time.monotonic() + 4
    while time.monotonic() < end:
        worker.step_or_park(0.1)
execute(program)
"""

SESSION = """
import time
from differential import Session
with Session(SETTINGS) as db:
    words = db.table("words", {"word": ["to"]})
    db.view("counts", lambda t: t.words.count())
    end = time.monotonic() + 8
    while time.monotonic() < end:
        words.insert(word="be")
        db.commit()
        time.sleep(0.05)
"""


def watched(address: str, ticks: int, shows: Callable[[JobView], bool] = lambda view: True) -> JobView:
    """Return what is seen after so many ticks, or later, as soon as it shows what is expected."""
    view = JobView()
    for event, data in events(page_at(address)):
        if view.take(event, data) and view.ticks >= ticks and shows(view):
            return view
    raise AssertionError(f"the stream has ended after {view.ticks} ticks, with {view.workers}")


def test_a_run_that_stands_still_says_so_though_its_page_is_open(tmp_path: Path) -> None:
    script = tmp_path / "stuck.py"
    script.write_text(STUCK)
    run = Run("run", "-n", "2", "--stall", "3", "--live", "0", script)
    try:
        address = address_of(run)
        with urllib.request.urlopen(address.replace("/?", "/stream?"), timeout=20) as stream:
            end = clock.monotonic() + 40
            while "nothing has moved" not in run.error:
                assert stream.readline()
                assert clock.monotonic() < end, run.error
        assert "waits for numbers.advance_to(1) or numbers.close(), worker 1 (process 1)" in run.error
        view = watched(address, 4)
        assert any("nothing has moved" in text for _, _, kind, text in view.notes if kind == "notice")
    finally:
        run.close()


def test_a_run_that_is_started_again_serves_its_page_at_the_same_address(tmp_path: Path) -> None:
    script = tmp_path / "crashing.py"
    script.write_text(CRASHING)
    (port,) = free_ports(1)
    run = Run("run", "-n", "2", "--restart", "2", "--live", str(port), script, tmp_path / "mark")
    try:
        first = address_of(run)
        run._wait_for(lambda: run.error.count("live view at") == 2, 30, "the page is not served again")
        assert re.findall(r"live view at (\S+)", run.error)[1] == first, "an open page cannot connect again"
        assert watched(first, 6).dataflows[0].name == "words"
        assert run.end(40) == 0
    finally:
        run.close()


def test_a_process_inside_of_a_long_operator_is_shown_with_its_line(tmp_path: Path) -> None:
    script = tmp_path / "busy.py"
    script.write_text(
        "import time\nfrom timely import execute\n"
        "def slowly(record):\n    end = time.monotonic() + 8\n    while time.monotonic() < end:\n        pass\n"
        "def program(worker):\n    with worker.dataflow('w') as scope:\n"
        "        scope.to_stream([1] if worker.index == 1 else []).exchange(lambda _: 1, name='here').inspect(slowly)\n"
        "execute(program)\n"
    )
    run = Run("run", "-n", "2", "--live", "0", script)
    try:
        watched(address_of(run), 5, lambda view: any(row[0] == 1 and "busy.py:" in row[7] for row in view.workers))
        assert run.end(40) == 0, run.error
    finally:
        run.close()


def test_a_port_in_use_ends_the_run_with_the_reason() -> None:
    first = Run("run", "--live", "0", PROGRAMS / "hops.py", "20")
    try:
        port = address_of(first).split(":")[2].split("/")[0]
        second = Run("run", "-n", "2", "--live", port, PROGRAMS / "hops.py", "20")
        try:
            assert second.end(40) == 1
            assert f"cannot be served at 127.0.0.1:{port}" in second.error
        finally:
            second.close()
    finally:
        first.close()


def test_an_address_that_others_reach_is_refused_before_anything_runs() -> None:
    run = Run("run", "--live", "0.0.0.0:0", PROGRAMS / "hops.py", "20")
    try:
        assert run.end(40) == 2
        assert "timely: other machines can reach 0.0.0.0, so the live page needs a token and TLS" in run.error
        assert "live view at" not in run.error
    finally:
        run.close()


def test_a_session_has_what_the_command_that_runs_its_script_is_asked_for(tmp_path: Path) -> None:
    script = tmp_path / "session.py"
    script.write_text(SESSION.replace("SETTINGS", ""))
    run = Run("run", "-w", "2", "--live", "0", "--profile", script)
    try:
        view = watched(address_of(run), 4)
        assert len(view.workers) == 2
        assert any("counts" in flow.name for flow in view.dataflows.values()), [*view.dataflows]
        assert run.end(40) == 0, run.error
        assert "runs  busy s  records in" in run.error
    finally:
        run.close()


@pytest.mark.parametrize("options", [["--live", "0"], []])
def test_the_page_of_a_session_shows_its_other_processes(tmp_path: Path, options: list[str]) -> None:
    script = tmp_path / "database.py"
    program = SESSION.replace("SETTINGS", "3, processes=True")
    if not options:
        program = program.replace(
            "    words =", "    print('live view at', db.live(0).url, file=sys.stderr)\n    words ="
        )
    script.write_text(f"import sys\n{program}")
    run = Run("run", *options, script)
    try:
        view, end = JobView(), clock.monotonic() + 40
        for event, data in events(page_at(address_of(run))):
            view.take(event, data)
            if [worker[:2] for worker in view.workers] == [[0, 0], [1, 1], [2, 2]]:
                break
            assert clock.monotonic() < end, view.workers
        assert run.end(40) == 0, run.error
    finally:
        run.close()
