"""A session of several processes gives what one of threads gives, and ends with all of them in any state."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from differential import Session
from differential.errors import SessionError
from differential.session.call import Call
from differential.session.channel import Channel
from differential.session.coordinator import Coordinator
from differential.session.site import Site
from differential.session.storage import SessionStorage
from tests.api.modules import ROOT
from tests.integration.durable.killing import children
from tests.integration.session.test_ending import interrupted_when, threads
from tests.property.session.test_programs import DEFINITIONS, compare, steps

WAIT = 60.0
"""Seconds after which something that was to happen soon has not, on a busy machine."""


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = clock.monotonic() + WAIT
    while not condition():
        assert clock.monotonic() < end, f"not within {WAIT} s: {what}"
        clock.sleep(0.01)


def members(db: Session) -> list[int]:
    """Return the processes of a session besides this one."""
    cluster = db._catalog.engine.cluster
    assert isinstance(cluster, Coordinator)
    return [member._process.pid for member in cluster._members]


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def there(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a definition that maps the numbers with a function in the other processes, not in this one."""
    here = os.getpid()
    return lambda t: t.numbers.map(lambda x: function(x) if os.getpid() != here and len(x) else x)


@pytest.fixture
def db() -> Iterator[Session]:
    with Session(2, processes=True) as session:
        pids = members(session)
        session._catalog.engine.patience = 0.5
        session.table("numbers", {"x": list(range(20))})
        session.commit()
        yield session
    assert not any(map(is_alive, pids))


def check_alive(db: Session) -> None:
    """The session still commits, and answers."""
    seen = db.view("seen", lambda t: t.numbers.filter(lambda x: x < 50))
    db["numbers"].insert(x=27)  # type: ignore[union-attr]
    db.commit()
    assert (27,) in seen.records()


def test_processes_share_tables_views_changes_and_errors(db: Session) -> None:
    table = db.table("words", {"word": ["to", "be", "or", "not", "to", "be"], "at": range(6)}, key="word")
    counts = db.view("counts", lambda t: t.words.select("word").count().named("word", "times"))
    changes = counts.changes()
    db.commit()
    assert counts.records() == [("be", 2), ("not", 1), ("or", 1), ("to", 2)]
    assert len(counts) == 4
    assert len(table) == 6
    table.insert(word="whether", at=7)
    table.delete(word="be")
    table.upsert(word="to", at=9)
    db.commit()
    found = {row: diff for change in changes.read_nowait()[1:] for row, diff in change.records()}
    assert found == {("be", 2): -1, ("to", 1): 1, ("to", 2): -1, ("whether", 1): 1}
    assert db.ask(lambda t: t.words.join(t.counts)).records() == sorted(
        (word, at, 1) for word, at in (("not", 3), ("or", 2), ("to", 9), ("whether", 7))
    )
    db.status()
    assert db._catalog.items["words"].nbytes[1] > 0
    with pytest.raises(SessionError, match=r"'bad' failed: operator 'map' failed .* on worker 1 .*test_processes\.py"):
        db.view("bad", there(lambda x: x[:1]))
    with pytest.raises(SessionError, match=r"'bad' failed \(.*test_processes\.py:.*ZeroDivisionError"):
        db.view("bad", lambda t: 1 // 0)
    with pytest.raises(SessionError, match="cannot be sent to the other processes"):
        db.view("bad", lambda t: db)
    table.delete(word="nobody", at=0)
    with pytest.raises(SessionError, match="does not have the row"):
        db.commit()
    check_alive(db)


class Unloadable:
    """A value that can be sent but not loaded."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_a_definition_that_cannot_be_loaded_is_refused_by_all(
    db: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "later.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))  # after the processes were started
    double, value = importlib.import_module("later").double, Unloadable()
    for definition, why in (
        (lambda t: t.numbers.map(double), "ModuleNotFoundError: No module named 'later'"),
        (lambda t: t.numbers.map(lambda x: x[: value is None]), "ValueError: invalid literal"),
    ):
        for ask in (db.ask, lambda definition: db.view("bad", definition)):
            with pytest.raises(SessionError, match=rf"cannot be loaded in another process of the session \({why}"):
                ask(definition)
    check_alive(db)


class Result(list[int]):
    """What a call returns, to be counted."""


def objects(site: Site, kind: type) -> int:
    """Return how many objects of a kind the process of a worker has."""
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


@pytest.mark.lengthy
def test_no_process_keeps_calls_or_results_of_calls_that_are_over(db: Session) -> None:
    engine = db._catalog.engine
    db["numbers"].records()
    before = engine.call(objects, Call)
    for number in range(50):
        assert engine.call(lambda site, number: Result([number]), number) == [[number]] * 2
    assert engine.call(objects, Result) == [0, 0]
    for number in range(50):
        db["numbers"].insert(x=number)  # type: ignore[union-attr]
        db.commit()
    assert max(engine.call(objects, Call)) <= max(before) + 2


def test_a_message_that_cannot_be_read_ends_the_session_with_the_reason(
    db: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(self: Channel) -> None:
        raise ValueError("no message")

    monkeypatch.setattr(Channel, "receive", unreadable)
    db["numbers"].insert(x=1)  # type: ignore[union-attr]
    db.commit()  # whose answer was waited for already
    with pytest.raises(SessionError, match=r"process 1 of the session has ended: no message"):
        db.commit()


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(2, 3),
    st.lists(st.sampled_from(list(DEFINITIONS)), min_size=2, unique=True),
    st.lists(steps, min_size=5, max_size=25),
)
def test_processes_have_what_a_database_that_recomputes_everything_has(
    workers: int, views: list[str], program: list[Any]
) -> None:
    with Session(workers, processes=True) as db:
        compare(db, views, program)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "where"), [(ValueError("too large"), "worker 1"), (SystemExit("too large"), r"test_processes.py:\d+")]
)
def test_a_view_that_fails_in_one_process_is_dropped_in_all(db: Session, error: BaseException, where: str) -> None:
    def fails(x: Any) -> Any:
        if x.max() >= 100:
            raise error
        return x

    bad = db.view("bad", there(fails))
    db.view("reader", lambda t: t.bad.count())
    db["numbers"].insert(x=list(range(100, 120)))  # type: ignore[union-attr]
    with pytest.raises(SessionError, match=rf"'bad' failed.*{where}.*too large.*commit 2 is complete.*'reader'"):
        db.commit()
    with pytest.raises(SessionError, match="'bad'"):
        bad.records()
    check_alive(db)


def test_processes_know_the_types_of_tables(db: Session) -> None:
    prices = db.table("prices", {"x": int, "price": float})
    view = db.view("all", lambda t: t.numbers.left_join(t.prices, on="x", missing={"price": 0}))
    prices.insert(x=3, price=0.5)
    db.commit()
    assert view.records() == [(x, 0.5 if x == 3 else 0.0) for x in range(20)]


class Stuck:
    """A function that does not return once it sees a number of at least 100, and leaves a file when it does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, x: Any) -> Any:
        if x.max() >= 100:
            self.path.touch()
            while True:
                pass
        return x

    def wait(self, timeout: float) -> bool:
        """Wait until it is stuck, in any process, as for an event."""
        wait_until(self.path.exists, "the function runs")
        return True


@pytest.mark.slow
@pytest.mark.parametrize("what", ["ask", "commit"])
def test_an_interrupt_ends_a_function_that_runs_in_another_process(db: Session, what: str, tmp_path: Path) -> None:
    stuck = Stuck(tmp_path / "stuck")
    if what == "commit":
        db.view("bad", there(stuck))
        db["numbers"].insert(x=list(range(100, 120)))  # type: ignore[union-attr]
    with interrupted_when(stuck):
        if what == "commit":
            db.commit()
        else:
            db.ask(there(lambda x: stuck(x + 100)))
    check_alive(db)


@pytest.mark.slow
def test_a_view_that_is_stuck_in_another_process_can_be_dropped(db: Session, tmp_path: Path) -> None:
    stuck = Stuck(tmp_path / "stuck")
    db.view("bad", there(stuck))
    db["numbers"].insert(x=list(range(100, 120)))  # type: ignore[union-attr]
    committing = threading.Thread(target=db.commit)
    committing.start()
    stuck.wait(WAIT)
    db.drop("bad")
    committing.join(WAIT)
    assert not committing.is_alive()
    check_alive(db)


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(SessionError):
        call()


@pytest.mark.slow
@pytest.mark.parametrize("is_stuck", [False, True])
def test_close_ends_all_processes(is_stuck: bool, tmp_path: Path) -> None:
    db = Session(3, processes=True)
    db._catalog.engine.patience = 0.5
    pids = members(db)
    db.table("numbers", {"x": list(range(100, 120))})
    waiting = threading.Thread(target=refused, args=(db.commit,))
    if is_stuck:
        stuck = Stuck(tmp_path / "stuck")
        db.view("bad", there(stuck))
        waiting.start()
        stuck.wait(WAIT)
    begun = clock.monotonic()
    db.close()
    assert clock.monotonic() - begun < 20
    assert not any(map(is_alive, pids))
    if is_stuck:
        waiting.join(WAIT)
        assert not waiting.is_alive()


@pytest.mark.slow
def test_the_loss_of_a_process_ends_the_session_with_its_name() -> None:
    db = Session(3, processes=True)
    pids = members(db)
    db.table("numbers", {"x": [1, 2, 3]})
    db.commit()
    changes = db["numbers"].changes()
    os.kill(pids[1], signal.SIGKILL)
    begun = clock.monotonic()
    with pytest.raises(SessionError, match="process 2 of the session was ended by SIGKILL"):
        list(changes)
    with pytest.raises(SessionError, match="process 2 of the session was ended by SIGKILL"):
        db.commit()
    assert clock.monotonic() - begun < 20
    db.close()
    assert not any(map(is_alive, pids))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "outcome", "rows"),
    [
        ("before", "commit 2 is not made", 20),
        ("decided", "commit 2 is complete", 40),
        ("begun", "commit 2 is complete", 40),
    ],
)
def test_the_loss_of_a_process_states_what_a_durable_session_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, outcome: str, rows: int
) -> None:
    db = Session(2, processes=True, state=tmp_path)
    numbers = db.table("numbers", {"x": list(range(20))})
    db.view("deadly", there(lambda x: os.kill(os.getpid(), signal.SIGKILL) if x.max() >= 1000 else x))
    db.commit()
    engine, commit = db._catalog.engine, SessionStorage.commit

    def lose() -> None:
        os.kill(members(db)[0], signal.SIGKILL)
        wait_until(lambda: engine.ended is not None, "the session has ended")

    def lost_after(self: SessionStorage, *arguments: Any) -> None:
        commit(self, *arguments)
        lose()

    numbers.insert(x=list(range(1000, 1020)))  # some of which the other process has
    if moment == "before":
        lose()
    elif moment == "decided":
        monkeypatch.setattr(SessionStorage, "commit", lost_after)
    for _ in range(2):
        with pytest.raises(SessionError, match=rf"process 1 .* was ended by SIGKILL \({outcome}\)$"):
            db.commit()
    db.close()
    with Session(state=tmp_path) as again:
        assert len(again.table("numbers")) == rows


PROGRAM = """
import sys, time
import numpy as np
import differential as dd

def slow(x):
    if len(x) and x.max() >= 100:
        print("here", flush=True)
        time.sleep({sleep})
    return x

if __name__ == "__main__":
    db = dd.Session(workers=2, processes=True)
    numbers = db.table("numbers", {{"x": np.arange(20)}})
    view = db.view("same", lambda t: t.numbers.map(slow).map(lambda x: np.square(x)))
    db.commit()
    assert sorted(view.records()) == [(x * x,) for x in range(20)]
    numbers.insert(x=np.arange(100, 120))
    {end}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("raise ValueError", 1), ("db.commit(); db.close()", 0)],
)
def test_processes_end_with_the_program(tmp_path: Path, end: str, status: int) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(sleep=0, end=end))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=WAIT, cwd=ROOT, env=here())
    assert ran.returncode == status, ran.stderr
    assert "Fatal" not in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_first_one_however_it_ends(tmp_path: Path, how: signal.Signals) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(sleep=0.5, end="db.commit()"))
    running = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=here())
    try:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("here")
        pids = children(running.pid)
        assert pids
        running.send_signal(how)
        assert running.wait(WAIT) == -how
        wait_until(lambda: not any(map(is_alive, pids)), "the other process has ended")
    finally:
        running.kill()
        running.communicate()


@pytest.mark.slow
def test_a_process_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.session.coordinator._START", "import sys; sys.exit(7)")
    begun = clock.monotonic()
    with pytest.raises(SessionError, match="process 1 of the session has ended with status 7"):
        Session(2, processes=True)
    wait_until(lambda: threads() == [], "the threads have ended")
    assert clock.monotonic() - begun < 20


@pytest.mark.slow
def test_an_interrupt_while_processes_start_ends_them() -> None:
    """It comes after 0.05 s, in which no process has loaded NumPy. Once started, the session is garbage here."""
    before = set(children(os.getpid()))
    begun = threading.Event()
    begun.set()
    with interrupted_when(begun):
        Session(3, processes=True)
    wait_until(lambda: threads() == [] and set(children(os.getpid())) <= before, "threads and processes have ended")


def sums(t: Any) -> Any:
    return t.numbers.map(lambda x: (x * 0, x)).sum()


@pytest.mark.slow
def test_tables_are_durable_whatever_the_number_of_processes(tmp_path: Path) -> None:
    for workers in (2, 1, 3):
        with Session(workers, processes=workers > 1, state=str(tmp_path / "state")) as db:
            numbers = db.table("numbers", {"x": int})
            view = db.view("sums", sums, durable=True)
            former = numbers.records()
            numbers.insert(x=workers)
            db.commit()
            assert numbers.records() == sorted([*former, (workers,)])
            assert view.records() == [(0, sum(row[0] for row in numbers.records()))]


def test_nobody_else_has_the_sockets_between_the_processes(db: Session) -> None:
    """They have no name, so what arrives there was sent by a process that the session has started."""
    cluster = db._catalog.engine.cluster
    assert isinstance(cluster, Coordinator)
    [member] = cluster._members
    inode = os.fstat(member._channel._connection.fileno()).st_ino
    [line] = [line for line in Path("/proc/net/unix").read_text().splitlines() if line.split()[6] == str(inode)]
    assert len(line.split()) == 7  # an eighth field would be a path


def here() -> dict[str, str]:
    """Return the environment of a program that uses this library and no other installation of it."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_numbers_of_all_kinds_reach_the_other_process(db: Session) -> None:
    data = {
        "k": np.arange(40),
        "f": np.linspace(0, 1, 40),
        "b": np.arange(40) % 2 == 0,
        "s": [f"ü{n % 7}" for n in range(40)],
        "d": np.arange(40).astype("datetime64[D]"),
    }
    table = db.table("all", data, key="k")
    db.commit()
    with Session() as other:
        expected = other.table("all", data, key="k")
        other.commit()
        assert table.records() == expected.records()
        assert list(db.ask(lambda t: t.all.group_by("s").count()).records()) == list(
            other.ask(lambda t: t.all.group_by("s").count()).records()
        )
