"""`timely top` beside a running job."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time as clock
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run
from tests.integration.live.browsing import PROGRAMS, job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def top(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timely", "top", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"COLUMNS": "160"},
        check=False,
    )


@pytest.mark.parametrize("by", ["process", "address"])
def test_it_prints_what_a_job_does(by: str) -> None:
    with job("-n", "2", "-w", "2", program="hops.py", seconds="100") as (run, address):
        end = clock.monotonic() + 80
        while True:  # the page is there before the workers are
            shown = top("--once", str(run.process.pid) if by == "process" else address)
            assert shown.returncode == 0, shown.stderr
            lines = shown.stdout.splitlines()
            if re.search(r"^join_map +[1-9.]", shown.stdout, re.MULTILINE):
                break
            assert clock.monotonic() < end, shown.stdout
        assert re.match(r"4 workers, [\d.]+ % busy", lines[0])
        assert sum(bool(re.match(r" +[0-3] +[01] +\d+ ", line)) for line in lines) == 4
        joins = [line for line in lines if line.startswith("join_map")]
        assert len(joins) == 1
        assert "hops.py:" in joins[0]
        assert re.search(r"join_map +[\d.]+ % +[\d.]+k? ", joins[0])
        assert "UserWarning" in shown.stdout
        assert "token" not in shown.stdout


def test_it_shows_who_holds_a_frontier() -> None:
    with job(program="hops.py", seconds="1") as (_, address):
        end = clock.monotonic() + 40
        while "waits for edges.advance_to(" not in (text := top("--once", address).stdout):
            assert clock.monotonic() < end, text


def test_in_a_terminal_it_goes_on_until_the_job_ends() -> None:
    with job(program="hops.py", seconds="15", more=("end",)) as (_, address):
        master, slave = pty.openpty()
        shown = subprocess.Popen([sys.executable, "-m", "timely", "top", address], stdout=slave, stderr=slave)
        os.close(slave)
        text, end = b"", clock.monotonic() + 60
        while clock.monotonic() < end:
            if select.select([master], [], [], 1.0)[0]:
                try:
                    text += os.read(master, 1 << 16)
                except OSError:
                    break
        os.close(master)
        assert shown.wait(20) == 0
        assert text.count(b"join_map") > 4
        assert text.rstrip().endswith(b"the job has ended")


def shown_once(pid: int, condition: str) -> str:
    """Return what is shown of a process as soon as it has this, as a pattern."""
    end = clock.monotonic() + 40
    while not re.search(condition, (shown := top("--once", str(pid))).stdout, re.MULTILINE):
        assert clock.monotonic() < end, (shown.stdout, shown.stderr)
    return shown.stdout


JOIN = r"^join_map +[\d.]+ % +[\d.]+k? .*hops\.py:"


def test_it_shows_a_program_that_asked_for_nothing() -> None:
    with subprocess.Popen([sys.executable, PROGRAMS / "hops.py", "60"], stderr=subprocess.DEVNULL) as process:
        try:
            text = shown_once(process.pid, JOIN)
            assert re.match(r"1 worker, [\d.]+ % busy", text)
            assert re.search(r"^dataflow 0 'graph', epochs: median [\d.]+ .?s", text, re.MULTILINE), text
            assert re.search(r"^edges .* \d+ +hops\.py:", text, re.MULTILINE), "there is no frontier"
        finally:
            process.kill()


def test_it_shows_all_processes_of_a_run_without_a_page_by_any_of_them_and_the_launcher() -> None:
    run = Run("run", "-n", "2", PROGRAMS / "hops.py", "60")
    try:
        shown_once(run.process.pid, JOIN)
        text = shown_once(run.process.pid, r"^ +1 +1 +\d+ ")
        pids = re.findall(r"^ +[01] +[01] +(\d+) ", text, re.MULTILINE)
        assert len(pids) == 2
        for pid in pids:
            shown_once(int(pid), r"^ +1 +1 +\d+ ")
        assert "live view" not in run.error
    finally:
        run.close()


def test_it_shows_the_processes_of_a_session(tmp_path: Path) -> None:
    script = tmp_path / "session.py"
    script.write_text(
        "import sys\nfrom differential import Session\n"
        "with Session(3, processes=True) as db:\n"
        "    db.table('words', {'word': ['to']})\n    db.commit()\n    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE) as process:
        try:
            shown_once(process.pid, r"^ +2 +2 +\d+ ")
            process.communicate(timeout=30)
            assert process.returncode == 0
        finally:
            process.kill()


def test_it_ends_with_a_job_that_has_no_page() -> None:
    with subprocess.Popen([sys.executable, PROGRAMS / "hops.py", "25", "end"], stderr=subprocess.DEVNULL) as process:
        shown_once(process.pid, "^dataflow 0 'graph'")
        shown = top(str(process.pid))
        assert shown.returncode == 0, shown.stderr
        assert "dataflow 0 'graph'" in shown.stdout
        assert process.wait(20) == 0
