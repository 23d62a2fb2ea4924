"""An interrupt at any moment of a commit leaves all of the commit, or nothing of it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from differential import session as package
from differential.errors import SessionError
from differential.session import Session, sinks, sources
from differential.session.call import Call
from differential.session.catalog import Catalog
from differential.session.engine import Engine
from differential.session.site import Site
from differential.session.storage import SessionStorage

HOME = str(Path(package.__file__).parent)
Place = tuple[str, int, str]
"""A file, a line, and whether a function is called there, returns, or just reaches it."""


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing wait for the disk: the machine does not stop here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Kind(NamedTuple):
    """What a session has: its disk, a source and a sink, event times."""

    is_durable: bool
    has_ends: bool
    has_times: bool

    def __str__(self) -> str:
        names = ("durable", "ends", "times")
        return "-".join(name for name, value in zip(names, self) if value) or "plain"


KINDS = [Kind(*map(bool, flags)) for flags in ((0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1))]
ALL = [pytest.param(kind, id=str(kind), marks=[pytest.mark.lengthy] * kind.is_durable) for kind in KINDS]


class Case:
    """A session that has made one commit, and is to make the second one."""

    def __init__(self, kind: Kind, directory: Path) -> None:
        self.kind, self.directory = kind, directory
        directory.mkdir()
        (directory / "in.jsonl").write_text("")
        self.open()
        self.insert(1, 10)
        self.arrive(2, 10)
        self.db.commit()
        self.insert(3, 20)
        self.table.delete(k=1)
        self.arrive(4, 20)

    def open(self) -> None:
        kind = self.kind
        self.db = Session(state=self.directory / "state" if kind.is_durable else None, progress=False)
        self.table = self.db.table("t", {"k": int, "at": int}, key="k")
        if kind.has_times:
            self.table.event_time("at", lateness=0)
        seen = self.db.view("seen", lambda t: t.t, durable=kind.is_durable)
        if kind.has_ends:
            self.feed = self.table.read_from(sources.json_lines(self.directory / "in.jsonl", follow=True))
            seen.write_to(sinks.json_lines(self.directory / "out.jsonl"))

    def insert(self, k: int, at: int) -> None:
        self.table.insert(k=k, at=at)

    def arrive(self, k: int, at: int) -> None:
        """Let the source have a row for the next commit."""
        if self.kind.has_ends:
            with open(self.directory / "in.jsonl", "a") as file:
                print(json.dumps({"k": k, "at": at}), file=file)
            while not self.db._catalog.arrived():
                pass

    @property
    def state(self) -> dict[str, Any]:
        """What the session shows."""
        found: dict[str, Any] = {name: sorted(self.db[name].records()) for name in self.db}
        found["watermark"] = self.table.watermark if self.kind.has_times else None
        return found

    def go_on(self) -> dict[str, Any]:
        """Make two more commits; return what the session shows, the sink has, and the source has delivered."""
        self.insert(5, 15)
        self.db.commit()
        self.insert(6, 30)
        self.arrive(7, 30)
        self.db.commit()
        found = self.state
        if self.kind.has_ends:
            found["written"] = self.written()
            found["read"] = self.feed.rows
        return found

    def written(self) -> list[tuple[Any, ...]]:
        lines = [json.loads(line) for line in (self.directory / "out.jsonl").read_text().splitlines()]
        return netted(((line["k"], line["at"]), line["diff"]) for line in lines)

    def reopened(self) -> dict[str, Any]:
        """Return what the session shows after it is opened again."""
        self.db.close()
        self.open()
        return self.state


def netted(changes: Iterable[tuple[Any, int]]) -> list[tuple[Any, ...]]:
    total: Counter[Any] = Counter()
    for row, diff in changes:
        total[row] += diff
    return sorted((*row, diff) for row, diff in total.items() if diff)


@contextmanager
def traced(strike: Callable[[Place], object]) -> Iterator[None]:
    """Call `strike` at each moment of this block in which this thread is in the session."""

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(HOME):
            return None
        if event != "exception":
            strike((name.removeprefix(f"{HOME}/"), frame.f_lineno, event))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def places(kind: Kind, directory: Path) -> dict[Place, int]:
    """Return the moments of the commit, and how often each comes."""
    case, found = Case(kind, directory), Counter[Place]()
    with traced(lambda place: found.update([place])):
        case.db.commit()
    case.db.close()
    return found


def references(kind: Kind, directory: Path) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return what a session shows when all or nothing of the commit was made: then, and after two more commits."""
    found = {}
    for name in ("all", "none"):
        case = Case(kind, directory / name)
        if name == "all":
            case.db.commit()
        found[name] = case.state, case.go_on()
        case.db.close()
    assert found["all"] != found["none"]
    return found


def struck(case: Case, at: Place, times: int, strike: Callable[[], object]) -> bool:
    """Make the commit; at the moment when a place comes for this time, call `strike`. Return whether it has raised."""
    left = [times]

    def count(place: Place) -> None:
        left[0] -= place == at
        if place == at and left[0] == 0:
            strike()

    try:
        with traced(count):
            case.db.commit()
    except (KeyboardInterrupt, SystemExit):
        return True
    return False


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def leave() -> None:
    """Raise what a handler of SIGTERM may raise: nothing defers it."""
    raise SystemExit(143)


def check(kind: Kind, directory: Path, places: Iterable[tuple[Place, int]]) -> Counter[str]:
    """Interrupt a commit at each place, and compare the outcome with the references; return how often each came."""
    expected, outcomes = references(kind, directory), Counter[str]()
    for number, (place, times) in enumerate(places):
        case = Case(kind, directory / str(number))
        was_raised = struck(case, place, times, interrupt)
        state = case.state
        outcome = "all" if (3, 20) in state["t"] else "none"
        assert was_raised or outcome == "all", place
        assert state == expected[outcome][0], (place, times, outcome)
        assert case.go_on() == expected[outcome][1], (place, times, outcome)
        if kind.is_durable:
            shown = case.state
            assert case.reopened() == shown, (place, times, outcome)
        case.db.close()
        outcomes[outcome] += 1
    return outcomes


def test_an_interrupt_after_the_call_is_submitted_moves_the_watermark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = Kind(False, False, True)
    case, submit = Case(kind, tmp_path / "case"), Engine.submit

    def submitted(engine: Engine, call: Call[Any]) -> None:
        submit(engine, call)
        if call.function is None or call.function is Site.commit:
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "submit", submitted)
    with pytest.raises(KeyboardInterrupt):
        case.db.commit()
    assert case.table.watermark == 20
    assert (case.state, case.go_on()) == references(kind, tmp_path)["all"]
    case.db.close()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_two_interrupts_leave_the_rest_to_whoever_uses_the_session_next(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, left, settle = Case(kind, tmp_path / "case"), [2], Catalog._settle

    def interrupted(catalog: Catalog) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise KeyboardInterrupt
        settle(catalog)

    monkeypatch.setattr(Catalog, "_settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        case.db.commit()
    assert left == [0]
    assert (case.state, case.go_on()) == references(kind, tmp_path)["all"]
    case.db.close()


@pytest.mark.parametrize("comes_again", [False, True])
def test_a_commit_that_only_the_disk_has_ends_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes_again: bool
) -> None:
    kind = Kind(True, True, True)
    case, expected = Case(kind, tmp_path / "case"), references(kind, tmp_path)

    def again(storage: SessionStorage, number: int) -> None:
        monkeypatch.undo()
        raise SystemExit(143)

    def refused(engine: Engine, call: Call[Any]) -> None:
        monkeypatch.undo()
        if comes_again:
            monkeypatch.setattr(SessionStorage, "fail_beyond", again)
        raise SystemExit(143)

    submit, commit = Engine.submit, SessionStorage.commit

    def committed(storage: SessionStorage, *arguments: Any) -> None:
        commit(storage, *arguments)
        monkeypatch.setattr(Engine, "submit", refused)

    monkeypatch.setattr(SessionStorage, "commit", committed)
    with pytest.raises(SystemExit):
        case.db.commit()
    assert Engine.submit is submit
    assert case.state == expected["none"][0]
    case.insert(5, 15)
    with pytest.raises(SessionError, match=r"have not completed commit 2, .* \(commit 3 is not made\)$"):
        case.db.commit()
    assert case.reopened() == expected["all"][0]
    case.db.close()


@pytest.mark.parametrize("kind", ALL)
def test_an_interrupt_in_any_line_of_a_commit_leaves_all_of_it_or_nothing(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    found = [(place, 1) for place in places(kind, tmp_path / "first" / "case") if place[0] in ("catalog.py", "call.py")]
    outcomes = check(kind, tmp_path, found)
    assert min(outcomes["all"], outcomes["none"]) > 10


@pytest.mark.lengthy
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python drops those in finalizers
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_interrupt_in_any_line_of_the_session_leaves_all_of_a_commit_or_nothing(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    found = places(kind, tmp_path / "first" / "case")
    outcomes = check(kind, tmp_path, [(place, 1) for place in found])
    assert min(outcomes["all"], outcomes["none"]) > 50


@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore::timely.errors.UncommittedWarning")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.is_durable], ids=str)
def test_another_exception_in_any_line_of_a_commit_leaves_all_of_it_or_nothing_on_the_disk(
    kind: Kind, tmp_path: Path
) -> None:
    expected, outcomes = references(kind, tmp_path), Counter[str]()
    (tmp_path / "first").mkdir()
    for number, place in enumerate(places(kind, tmp_path / "first" / "case")):
        if place[0] == "catalog.py":
            case = Case(kind, tmp_path / str(number))
            struck(case, place, 1, leave)
            state, has_failed = case.state, case.db._catalog.is_over
            outcome = "all" if (3, 20) in state["t"] else "none"
            assert state == expected[outcome][0], place
            outcome = "all" if has_failed else outcome
            later = case.reopened()
            assert later == expected[outcome][0], place
            case.db.close()
            outcomes[outcome] += 1
    assert min(outcomes["all"], outcomes["none"]) > 10
