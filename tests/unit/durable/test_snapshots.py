"""Operators with private state go on from their snapshots, with any number of workers, as if nothing had happened."""

from __future__ import annotations

import tempfile
import time as clock
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, new_input
from differential.durable import Directory, Shard, State, durable_input, persist, stateful
from differential.durable.local import LocalStore
from differential.durable.writer import Writer
from tests.thorough import examples
from timely import Config, Worker, execute, execute_directly
from timely.errors import BuildError, ConfigError, DataError, OperatorError, StateError
from timely.lowlevel import destinations, hash_columns

Update = tuple[tuple[int, int], int, int]


class Streaks:
    """For each number, the longest run of epochs in a row at which it was inserted: no function of the contents."""

    restored = 0

    def __init__(self) -> None:
        self.last: dict[int, tuple[int, int]] = {}
        self.best: dict[int, int] = {}

    def update(self, time: int, columns: tuple[Any, ...], diffs: Any) -> Any:
        made: list[tuple[int, int, int]] = []
        for number in sorted(set(columns[0][diffs > 0].tolist())):
            before, length = self.last.get(number, (-2, 0))
            self.last[number] = time, length = time, length + 1 if before == time - 1 else 1
            best = self.best.get(number, 0)
            if length > best:
                self.best[number] = length
                made += [(number, best, -1), (number, length, 1)] if best else [(number, length, 1)]
        number, best, diff = np.array(made, np.int64).reshape(-1, 3).T
        return (number, best), diff

    def snapshot(self) -> dict[str, Any]:
        rows = [(number, *self.last[number], self.best[number]) for number in sorted(self.last)]
        return {"rows": np.array(rows, np.int64).reshape(-1, 4)}

    def restore(self, states: Sequence[Any], index: int, peers: int) -> Any:
        type(self).restored += 1
        rows = np.concatenate([state["rows"] for state in states])
        mine = rows[owners(rows[:, 0], peers) == index]
        for number, last, length, best in mine.tolist():
            self.last[number], self.best[number] = (last, length), best
        return (mine[:, 0], mine[:, 3]), np.ones(len(mine), np.int64)


def owners(numbers: Any, peers: int) -> Any:
    """Return the worker of each number, as keys are divided."""
    return destinations(hash_columns((numbers,)), peers)


class Crashed(Exception):
    pass


def run(
    where: str,
    epochs: Sequence[Sequence[int]],
    workers: int = 1,
    crash: int = -1,
    every: int = 2,
    is_ahead: bool = False,
    is_paced: bool = True,
    replay: bool = False,
    keep: int | None = 0,
) -> int:
    """Make the epochs that are not durable; return the first of them. Worker 0 may crash before one."""

    def program(worker: Worker) -> int:
        state = State.open(worker, where, replay=replay)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers", keep=keep), ahead=is_ahead)
            streaks = stateful(numbers, Streaks, state.shard("streaks"), every=every)
            lengths = streaks.map(lambda number, best: best).count()
            answers = [persist(streaks, state.shard("answer")), persist(lengths, state.shard("lengths"))]
        first = session.epoch
        for epoch in range(first, len(epochs)):
            if epoch == crash and worker.index == 0:
                raise Crashed
            for number in epochs[epoch]:
                if number % worker.peers == worker.index:
                    session.insert(number)
            session.advance_to(epoch + 1)
            worker.step()
            if is_paced and epoch % 2:
                worker.step_while(lambda: not all(answer.is_durable(session.epoch) for answer in answers))
        session.close()
        worker.step_while(lambda: not all(answer.done() for answer in answers))
        return first

    return execute(program, Config(workers=workers))[0]


def expected(epochs: Sequence[Sequence[int]]) -> list[Update]:
    """Return the updates of the answer, from the definition."""
    found: list[Update] = []
    for number in sorted({number for epoch in epochs for number in epoch}):
        best = length = 0
        for time, epoch in enumerate(epochs):
            length = length + 1 if number in epoch else 0
            if length > best:
                found += [((number, length), time, 1)] + ([((number, best), time, -1)] if best else [])
                best = length
    return sorted(found)


def updates(where: str, name: str = "answer") -> list[Any]:
    table = Shard(name, Directory(where).store(name)).updates()
    return sorted((tuple(record), time, diff) for *record, time, diff in zip(*(c.to_pylist() for c in table.columns)))


EPOCHS = [[1, 2], [1], [1, 2], [], [1, 2], [1, 2, 3], [2], [3], [1, 2], [2, 3]]


@pytest.mark.parametrize("is_ahead", [False, True])
def test_an_operator_goes_on_from_its_snapshot(tmp_path: Path, is_ahead: bool) -> None:
    where, before = str(tmp_path), Streaks.restored
    for last, crash in ((5, 5), (9, 8), (9, -1), (10, -1)):
        try:
            run(where, EPOCHS[:last] if crash < 0 else EPOCHS, crash=crash, is_ahead=is_ahead)
        except Crashed:
            continue
    assert Streaks.restored > before
    assert updates(where) == expected(EPOCHS)
    manifest = Shard("streaks", Directory(where).store("streaks")).manifest()
    assert (manifest.role, manifest.upper % 2, len(manifest.states)) == ("snapshot", 0, 1)
    assert Shard("streaks", Directory(where).store("streaks")).store.names() == [manifest.states[0].name]
    Shard("streaks", Directory(where).store("streaks")).verify()


@settings(max_examples=examples(12), deadline=None)
@given(st.data())
def test_the_answers_are_those_of_an_undisturbed_run(data: st.DataObject) -> None:
    epochs = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=3, unique=True), min_size=1, max_size=8))
    every = data.draw(st.integers(1, 4))
    with tempfile.TemporaryDirectory() as where:
        for crash in [*data.draw(st.lists(st.integers(1, len(epochs)), max_size=3)), -1]:
            try:
                run(
                    where,
                    epochs,
                    data.draw(st.integers(1, 2)),
                    crash,
                    every,
                    *data.draw(st.tuples(*[st.booleans()] * 2)),
                )
            except Crashed:
                continue
        assert updates(where) == expected(epochs)


@pytest.mark.parametrize("workers", [1, 3])
def test_times_of_the_clock_as_epochs_are_as_good_as_numbers(tmp_path: Path, workers: int) -> None:
    """States between two epochs that are far apart are the same, so few of them are kept."""
    made: list[int] = []
    first = 1_700_000_000

    def program(worker: Worker, last: int) -> tuple[int, Any]:
        state = State.open(worker, tmp_path)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers", keep=0))
            answer = persist(stateful(numbers, Streaks, state.shard("streaks"), every=10), state.shard("answer"))
        begun = session.epoch
        for epoch in range(max(first, -(-begun // 60) * 60), last, 60):
            session.advance_to(epoch)
            session.insert(7) if worker.index == 0 else None
            session.advance_to(epoch + 1)
            worker.step_while(lambda: not answer.is_durable(session.epoch))
            made.append(len(list((tmp_path / "streaks" / "parts").iterdir())))
        session.close()
        worker.step_while(lambda: not answer.done())
        return begun, state.shard("streaks").shard.manifest().upper

    begun, upper = execute(lambda worker: program(worker, first + 180), Config(workers=workers))[0]
    assert (begun, first < upper) == (0, True)
    assert max(made) < 200 * workers, "and not one for each ten seconds since 1970"
    begun, again = execute(lambda worker: program(worker, first + 360), Config(workers=workers))[0]
    assert (begun >= upper, again > upper) == (True, True)
    assert Shard("answer", Directory(str(tmp_path)).store("answer")).read() == {(7, 1): 1}


def test_many_epochs_at_once_cost_no_more_each_than_few(tmp_path: Path) -> None:
    epochs, seen = 20_000, []

    class Seen(Streaks):
        def update(self, time: int, columns: tuple[Any, ...], diffs: Any) -> Any:
            seen.append((time, columns[0].tolist()))

    def program(worker: Worker, is_first: bool) -> None:
        state = State.open(worker, str(tmp_path), replay=True)
        with worker.dataflow() as scope:
            numbers, collection = durable_input(scope, state.shard("numbers"))
            end = (collection if is_first else stateful(collection, Seen, state.shard("seen"), every=1 << 30)).probe()
        for epoch in range(epochs * is_first):
            numbers.insert(epoch)
            numbers.advance_to(epoch + 1)
        numbers.close()
        worker.step_while(lambda: not end.done())

    execute_directly(lambda worker: program(worker, True))
    begun = clock.monotonic()
    execute_directly(lambda worker: program(worker, False))
    assert seen == [(epoch, [epoch]) for epoch in range(epochs)]
    assert clock.monotonic() - begun < 5


def test_a_snapshot_waits_for_the_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is restored and loaded is of one time: no output may need changes that the snapshot has swallowed."""
    kept: list[tuple[int, list[int]]] = []

    def keep_states(self: Writer, upper: int, states: Any, *_: Any, before: Any = Writer.keep_states) -> None:
        uppers = [Shard(name, Directory(str(tmp_path)).store(name)).manifest().upper for name in ("answer", "lengths")]
        kept.append((upper, uppers))
        before(self, upper, states)

    monkeypatch.setattr(Writer, "keep_states", keep_states)
    run(str(tmp_path), EPOCHS)
    run(str(tmp_path), EPOCHS * 2, workers=2)
    assert kept
    assert all(upper <= min(uppers) for upper, uppers in kept)


def test_a_snapshot_has_the_parts_of_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker writes its part after the other."""
    kept: list[int] = []
    put_new, keep_states = LocalStore.put_new, Writer.keep_states

    def late(self: LocalStore, name: str, data: bytes) -> None:
        if name.endswith(".npz") and "-0001-" in name:
            clock.sleep(0.02)
        put_new(self, name, data)

    def keep(self: Writer, upper: int, states: Any, *_: Any) -> None:
        kept.append(len(states))
        keep_states(self, upper, states)

    monkeypatch.setattr(LocalStore, "put_new", late)
    monkeypatch.setattr(Writer, "keep_states", keep)
    run(str(tmp_path), EPOCHS, workers=2)
    assert set(kept) == {2}


def test_a_snapshot_of_another_time_than_that_of_the_inputs_is_not_restored(tmp_path: Path) -> None:
    run(str(tmp_path), EPOCHS[:6], keep=None)
    assert Shard("streaks", Directory(str(tmp_path)).store("streaks")).manifest().states
    before = Streaks.restored
    run(str(tmp_path), EPOCHS, replay=True, keep=None)
    assert (Streaks.restored, updates(str(tmp_path))) == (before, expected(EPOCHS))


def test_a_damaged_snapshot_is_refused(tmp_path: Path) -> None:
    run(str(tmp_path), EPOCHS)
    shard = Shard("streaks", Directory(str(tmp_path)).store("streaks"))
    path = Path(shard.store.path(shard.manifest().states[0].name))  # type: ignore[attr-defined]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateError, match=f"{path.name} is damaged"):
        shard.verify()
    with pytest.raises(OperatorError, match=f"{path.name} is damaged"):
        run(str(tmp_path), EPOCHS * 2)
    path.unlink()
    with pytest.raises(OperatorError, match=f"{path.name} is missing"):
        run(str(tmp_path), EPOCHS * 2)


def built(tmp_path: Path, make: Callable[[], Any], outer: int = 1, every: int = 1) -> None:
    def program(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow(outer=outer) as scope:
            session, numbers = new_input(scope)
            output = stateful(Collection(numbers.stream), make, state.shard("kept"), every=every).output()
        session.insert(7)
        session.advance_to(5)
        worker.step_while(lambda: output.less_than(5))
        session.close()
        worker.step_while(lambda: not output.done())

    execute_directly(program)


class Wrong(Streaks):
    def snapshot(self) -> dict[str, Any]:
        return {"names": np.array(["a"], np.dtypes.StringDType())}


class Named(Streaks):
    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"file": np.array(["a"]), "allow_pickle": np.array([True])}


def test_one_worker_at_a_time_parses_what_an_array_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy lets Python parse it, and Python 3.11 counts how deep it is for all threads together (gh-106905)."""
    parsing: list[int] = []
    read_array = np.lib.format.read_array

    def slow(*arguments: Any, **options: Any) -> Any:
        assert not parsing, "two workers parse at once"
        parsing.append(1)
        clock.sleep(0.005)
        parsing.pop()
        return read_array(*arguments, **options)

    run(str(tmp_path), EPOCHS, workers=2)
    monkeypatch.setattr(np.lib.format, "read_array", slow)
    before = Streaks.restored
    run(str(tmp_path), EPOCHS * 2, workers=3)
    assert Streaks.restored > before
    assert updates(str(tmp_path)) == expected(EPOCHS * 2)


def test_an_array_of_a_snapshot_may_have_any_name(tmp_path: Path) -> None:
    built(tmp_path, Named)
    shard = Shard("kept", Directory(str(tmp_path)).store("kept"))
    [part] = shard.manifest().states
    with np.load(shard.store.path(part.name)) as file:  # type: ignore[attr-defined]
        assert sorted(file.files) == ["allow_pickle", "file", "rows"]


class Short(Streaks):
    def update(self, time: int, columns: tuple[Any, ...], diffs: Any) -> Any:
        return (np.array([1, 2]),), np.array([1])


class Halved(Streaks):
    def update(self, time: int, columns: tuple[Any, ...], diffs: Any) -> Any:
        return (np.array([1, 2]),), np.array([0.5, 1.5])


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="times of one coordinate"):
        built(tmp_path, Streaks, outer=2)
    with pytest.raises(ConfigError, match="at least 1, not 0"):
        built(tmp_path, Streaks, every=0)
    with pytest.raises((OperatorError, DataError), match="2 records need as many diffs, and there are 1"):
        built(tmp_path, Short)
    with pytest.raises((OperatorError, DataError), match="must be one integer for each of the 2 rows, not float64"):
        built(tmp_path, Halved)
    with pytest.raises(
        (OperatorError, DataError), match=r"'names' of a snapshot must be an array of numbers or of text"
    ):
        built(tmp_path / "other", Wrong)
