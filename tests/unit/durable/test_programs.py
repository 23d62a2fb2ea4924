"""Programs with durable inputs and outputs: what they go on with, and what they refuse."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import obstore.store
import pytest

from differential import Collection, new_input
from differential.durable import (
    Directory,
    DurableOutput,
    DurableSession,
    LocalStore,
    OpenShard,
    Shard,
    State,
    committing,
    durable_input,
    persist,
    writer,
)
from differential.durable.objects import Objects
from differential.durable.store import Stores
from timely import Config, Worker, execute, execute_directly
from timely.errors import BuildError, ConfigError, DataError, FencedError, OperatorError, StateError, StoreError
from timely.lowlevel import typed

Step = Callable[[DurableSession, int], None]


def counts(collection: Collection) -> Collection:
    return collection.count()


def program(
    where: str | Stores,
    epochs: int,
    change: Step,
    define: Callable[[Collection], Collection] = counts,
    *,
    on_difference: str = "raise",
    replay: bool = False,
    keep: int | None = None,
    flush: str | None = None,
    ahead: bool = False,
) -> Callable[[Worker], tuple[int, dict[str, Any]]]:
    """Return a program that makes changes in each epoch, up to a last one, and returns where it began."""

    def run(worker: Worker) -> tuple[int, dict[str, Any]]:
        state = State.open(worker, where, replay=replay)
        with worker.dataflow() as scope:
            session, collection = durable_input(scope, state.shard("numbers", keep=keep), flush=flush, ahead=ahead)
            answer = persist(define(collection), state.shard("answer"), on_difference=on_difference, flush=flush)
        begun, offsets = session.epoch, session.offsets
        for epoch in range(begun, epochs):
            change(session, epoch)
            session.advance_to(epoch + 1)
            worker.step()
        session.close()
        worker.step_while(lambda: not answer.done())
        return begun, offsets

    return run


def share(worker: int, workers: int) -> Step:
    """Return a change that inserts an epoch's numbers, the share of one worker."""

    def change(session: DurableSession, epoch: int) -> None:
        for number in range(epoch % 5 + 1):
            if number % workers == worker:
                session.insert(number)
        session.at(f"file {worker}", epoch)

    return change


alone = share(0, 1)


def expected(epochs: int) -> list[tuple[tuple[int, int], int, int]]:
    """Return the updates of the answer of `alone`: (record, time, diff)."""
    found, before = [], dict[tuple[int, int], int]()
    totals: dict[int, int] = {}
    for epoch in range(epochs):
        for number in range(epoch % 5 + 1):
            totals[number] = totals.get(number, 0) + 1
        after = dict.fromkeys(totals.items(), 1)
        changed = {*before, *after}
        found += [(record, epoch, after.get(record, 0) - before.get(record, 0)) for record in changed]
        before = after
    return sorted(update for update in found if update[2])


def updates(where: str | Stores, name: str = "answer") -> list[tuple[tuple[Any, ...], int, int]]:
    place = Directory(where) if isinstance(where, str) else where
    table = Shard(name, place.store(name)).updates()
    return sorted((tuple(record), time, diff) for *record, time, diff in zip(*(c.to_pylist() for c in table.columns)))


@pytest.fixture(params=["directory", "objects"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Stores:
    return str(tmp_path / "state") if request.param == "directory" else Objects(obstore.store.MemoryStore(), "state")


@pytest.mark.parametrize(
    ("keep", "flush", "ahead"), [(None, None, False), (0, "1ms", False), (2, None, True), (0, "1ms", True)]
)
def test_a_program_goes_on_where_it_stopped(
    where: str | Stores, keep: int | None, flush: str | None, ahead: bool
) -> None:
    begun = 0
    for epochs in (4, 4, 5, 11):
        assert execute_directly(program(where, epochs, alone, keep=keep, flush=flush, ahead=ahead)) == (
            begun,
            {"file 0": begun - 1} if begun else {},
        )
        assert updates(where) == expected(epochs)
        begun = epochs


@pytest.mark.parametrize("ahead", [False, True])
def test_a_program_goes_on_with_another_number_of_workers(tmp_path: Path, ahead: bool) -> None:
    where, begun = str(tmp_path), 0
    for workers, epochs in ((2, 5), (1, 9), (3, 12), (2, 13)):
        results = execute(
            lambda worker, w=workers, e=epochs: program(where, e, share(worker.index, w), ahead=ahead)(worker),
            Config(workers=workers),
        )
        assert {result[0] for result in results} == {begun}
        assert updates(where) == expected(epochs)
        begun = epochs


class Crashed(Exception):
    pass


def crashing_at(epoch: int) -> Step:
    def change(session: DurableSession, at: int) -> None:
        if at == epoch:
            raise Crashed
        alone(session, at)

    return change


def test_an_epoch_that_was_not_durable_is_made_again(tmp_path: Path) -> None:
    for epoch in (0, 3, 4, 9):
        with pytest.raises(Crashed):
            execute_directly(program(str(tmp_path), 12, crashing_at(epoch)))
    begun, _ = execute_directly(program(str(tmp_path), 12, alone))
    assert begun <= 9
    assert updates(str(tmp_path)) == expected(12)


def test_a_crash_in_an_operator_loses_nothing(tmp_path: Path) -> None:
    def failing(number: Any) -> Any:
        if (number == 4).any():
            raise Crashed
        return number

    with pytest.raises(OperatorError, match="Crashed"):
        execute_directly(program(str(tmp_path), 12, alone, lambda numbers: numbers.map(failing).count()))
    begun, _ = execute_directly(program(str(tmp_path), 12, alone))
    assert begun > 0, "the epoch at which the operator failed is durable"
    assert updates(str(tmp_path)) == expected(12)


def doubled(collection: Collection) -> Collection:
    return collection.count().map(lambda number, count: (number, 2 * count))


def test_another_answer_than_before_is_refused_and_names_a_record(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 3, alone))
    before = updates(where)
    with pytest.raises(
        OperatorError, match=r"as of 2, \(0, 3\) occurs 1 time\(s\) less often now \(6 record\(s\) differ\)"
    ):
        execute_directly(program(where, 5, alone, doubled))
    assert updates(where) == before
    assert execute_directly(program(where, 5, alone))[0] >= 3
    assert updates(where) == expected(5)


@pytest.mark.parametrize("replay", [False, True])
def test_an_answer_whose_columns_have_changed_places_is_another_one(tmp_path: Path, replay: bool) -> None:
    def pairs(collection: Collection) -> Collection:
        return collection.map(lambda number: (number, number + 1))

    def swapped(collection: Collection) -> Collection:
        return collection.map(lambda number: (number + 1, number))

    execute_directly(program(str(tmp_path), 3, alone, pairs))
    with pytest.raises(OperatorError, match="has other contents than the program computes"):
        execute_directly(program(str(tmp_path), 4, alone, swapped, replay=replay))


def test_another_answer_than_before_is_corrected_at_the_first_open_time(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 3, alone))
    execute_directly(program(where, 5, alone, doubled, on_difference="correct"))
    shard = Shard("answer", Directory(where).store("answer"))
    assert shard.read(2) == {(0, 3): 1, (1, 2): 1, (2, 1): 1}
    assert shard.read(3) == {(0, 8): 1, (1, 6): 1, (2, 4): 1, (3, 2): 1}
    execute_directly(program(where, 6, alone, doubled))


def test_a_difference_that_later_changes_undo_is_found(tmp_path: Path) -> None:
    """The contents agree at the end, not before."""
    where = str(tmp_path)

    def change(session: DurableSession, epoch: int) -> None:
        session.update(1, diff=[1, -1][epoch % 2])

    def odd(collection: Collection) -> Collection:
        return collection.map(lambda number: number + 1)

    def both(define: Callable[[Collection], Collection], epochs: int) -> None:
        execute_directly(program(where, epochs, change, define, replay=True))

    both(lambda collection: collection, 4)
    with pytest.raises(OperatorError, match=r"as of 0, \(1,\) occurs 1 time\(s\) less often now"):
        both(odd, 4)
    both(lambda collection: collection, 6)


def test_windows_go_on_if_what_they_need_is_retained_and_replayed(tmp_path: Path) -> None:
    def window(collection: Collection) -> Collection:
        return collection.window(3)

    def whole(where: str, *epochs: int) -> list[tuple[tuple[Any, ...], int, int]]:
        for last in epochs:
            execute_directly(program(where, last, alone, window, replay=True))
        return updates(where)

    assert whole(str(tmp_path / "a"), 2, 6, 7, 12) == whole(str(tmp_path / "b"), 12)


def test_a_new_output_begins_where_the_others_are(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 4, alone))

    def two(worker: Worker) -> None:
        state = State.open(worker, where)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"))
            answers = [persist(numbers.count(), state.shard("answer")), persist(numbers, state.shard("copy"))]
        alone(session, session.epoch)
        session.close()
        worker.step_while(lambda: not all(answer.done() for answer in answers))

    execute_directly(two)
    copy = Shard("copy", Directory(where).store("copy"))
    assert (copy.manifest().since, copy.manifest().upper) == (3, 5)
    assert copy.read(3) == {(0,): 4, (1,): 3, (2,): 2, (3,): 1}
    assert updates(where) == expected(5)


@pytest.mark.parametrize("replay", [False, True])
def test_a_new_output_that_a_crash_left_empty_has_all_records(tmp_path: Path, replay: bool) -> None:
    """It was to begin at the last epoch of the others, and with `replay` changes before it are made again."""
    execute_directly(program(str(tmp_path), 4, share(0, 1)))

    def run(worker: Worker, *, crashes: bool) -> None:
        state = State.open(worker, str(tmp_path), replay=replay and not crashes)
        with worker.dataflow() as scope:
            session, collection = durable_input(scope, state.shard("numbers"))
            persist(collection.count(), state.shard("answer"))
            copy = persist(collection, state.shard("copy"))
        if crashes:
            raise KeyboardInterrupt
        session.close()
        worker.step_while(lambda: not copy.done())

    with pytest.raises(KeyboardInterrupt):
        execute_directly(lambda worker: run(worker, crashes=True))
    copy = Shard("copy", Directory(str(tmp_path)).store("copy"))
    assert (copy.manifest().since, copy.manifest().upper) == (3, 3)
    execute_directly(lambda worker: run(worker, crashes=False))
    assert copy.read() == Shard("numbers", Directory(str(tmp_path)).store("numbers")).read()


def test_a_new_input_begins_where_the_outputs_end(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 4, alone, lambda numbers: numbers))

    def two(worker: Worker) -> tuple[int, int]:
        state = State.open(worker, where)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"))
            more, others = durable_input(scope, state.shard("more"))
            answer = persist(numbers.concat(others), state.shard("answer"))
        epochs = session.epoch, more.epoch
        more.insert(17)
        more.close()
        session.close()
        worker.step_while(lambda: not answer.done())
        return epochs

    assert execute_directly(two) == (4, 4)
    shard = Shard("answer", Directory(where).store("answer"))
    assert (17,) not in shard.read(3)
    assert shard.manifest().upper == 5, "an input that is closed does not hold the others back"
    assert execute_directly(two) == (5, 5)


def test_an_input_that_was_closed_keeps_no_past_of_the_others(tmp_path: Path) -> None:
    def run(worker: Worker, first: int, last: int) -> dict[Any, int]:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            table, static = durable_input(scope, state.shard("table", keep=0))
            session, numbers = durable_input(scope, state.shard("numbers", keep=0))
            answer = persist(numbers.concat(static), state.shard("answer", keep=0))
        if table.epoch == 0:
            table.insert(17)
        table.close()
        for epoch in range(first, last):
            session.insert(epoch)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: not answer.is_durable(session.epoch))
        session.close()
        worker.step_while(lambda: not answer.done())
        return state.shard("answer").shard.read()

    for first, last in ((0, 5), (5, 9)):
        assert execute_directly(lambda worker, f=first, t=last: run(worker, f, t)) == {
            (number,): 1 for number in (17, *range(last))
        }
        place = Directory(str(tmp_path))
        sinces = [Shard(name, place.store(name)).manifest().since for name in ("numbers", "answer")]
        assert sinces == [last - 2, last - 1], "the input as of what the answer was durable when it was appended to"


def test_an_output_that_needs_what_the_inputs_gave_up_is_refused(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 4, alone))

    def without(worker: Worker) -> None:
        state = State.open(worker, where)
        with worker.dataflow() as scope:
            session, _ = durable_input(scope, state.shard("numbers", keep=0))
        session.insert(7)
        session.advance_to(9)
        session.close()
        worker.step_while(lambda: not session.is_durable(9))

    execute_directly(without)
    with pytest.raises(
        StateError, match=r"'answer' .* is final before 4, but the inputs .* compacted up to 8.* remove it"
    ):
        execute_directly(program(where, 12, alone))


def test_what_crashed_programs_have_left_is_removed_when_the_state_is_opened(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 3, alone))
    stores = [Directory(where).store(name) for name in ("numbers", "answer")]
    for store in stores:
        store.put_new("00000001-00000999-abc.parquet", b"torn")
    execute_directly(program(where, 5, alone))
    for store in stores:
        assert store.names() == sorted(part.name for part in Shard("", store).manifest().parts)


class Failing(Directory):
    """A place in which a collection takes so many parts, and no more."""

    def __init__(self, path: str, name: str, parts: int) -> None:
        super().__init__(path)
        self.name = name
        self.left = parts

    def store(self, name: str) -> LocalStore:
        store = super().store(name)
        if name == self.name:
            whole = store.put_new

            def put_new(name: str, data: bytes) -> None:
                if not self.left:
                    raise StoreError("the disk is full")
                self.left -= 1
                whole(name, data)

            store.put_new = put_new  # type: ignore[method-assign]
        return store


EPOCHS = 100_000
"""More than a program makes before it has appended four times, however long the disk takes."""


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_answers_computed_ahead_wait_for_the_changes_that_they_are_made_of(
    tmp_path: Path, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_FIRST_PAUSE", 0.0)
    monkeypatch.setattr(committing, "REST", 0)  # so that there are enough appends to fill the disk
    seen: list[tuple[int, int]] = []

    def change(session: DurableSession, epoch: int) -> None:
        alone(session, epoch)
        seen.append(tuple(Shard(name, place.store(name)).manifest().upper for name in ("answer", "numbers")))  # type: ignore[arg-type]

    place = Directory(str(tmp_path))
    with pytest.raises(OperatorError, match="the disk is full"):
        execute_directly(program(Failing(str(tmp_path), "numbers", parts), EPOCHS, change, ahead=True))
    answer, numbers = (Shard(name, place.store(name)).manifest().upper for name in ("answer", "numbers"))
    assert answer <= numbers <= EPOCHS
    assert all(answer <= numbers for answer, numbers in seen[1:])
    begun, _ = execute_directly(program(str(tmp_path), 12, alone, ahead=True))
    assert begun == numbers
    assert updates(str(tmp_path)) == expected(max(12, numbers))


class Silent(Directory):
    """A place in which writes of parts, of all collections or of one, do not return until they may."""

    def __init__(self, path: str, only: str | None = None) -> None:
        super().__init__(path)
        self.only = only
        self.may_return = Event()

    def store(self, name: str) -> LocalStore:
        store, whole = super().store(name), LocalStore.put_new
        if self.only not in (None, name):
            return store

        def put_new(part: str, data: bytes) -> None:
            assert self.may_return.wait(30), "the test never lets the store answer"
            whole(store, part, data)

        store.put_new = put_new  # type: ignore[method-assign]
        return store


@pytest.mark.parametrize("ahead", [False, True])
def test_a_store_that_does_not_answer_holds_answers_back_and_loses_none(tmp_path: Path, ahead: bool) -> None:
    place = Silent(str(tmp_path))

    def run(worker: Worker) -> None:
        state = State.open(worker, place)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"), ahead=ahead)
            answer = persist(numbers.count(), state.shard("answer"))
        for epoch in range(6):
            alone(session, epoch)
            session.advance_to(epoch + 1)
            for _ in range(20):
                worker.step()
        assert not session.is_durable(1)
        assert not answer.is_durable(1)
        assert updates(place) == []
        place.may_return.set()
        session.close()
        worker.step_while(lambda: not answer.done())

    execute_directly(run)
    assert updates(str(tmp_path)) == expected(6)


def test_an_input_that_is_ahead_rests_between_appends_unless_the_program_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rest lasts for ages here, so the test ends only if there is none where the program waits."""
    monkeypatch.setattr(committing, "REST", 1e9)
    monkeypatch.setattr(committing, "LONGEST_REST", 1e9)
    place = Silent(str(tmp_path))
    place.may_return.set()

    def run(worker: Worker) -> list[int]:
        state = State.open(worker, place)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"), ahead=True)
            answer = persist(numbers.count(), state.shard("answer"))
        for epoch in range(4):
            alone(session, epoch)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: not answer.is_durable(session.epoch))
        place.may_return.clear()
        for epoch in range(4, 8):
            alone(session, epoch)
            session.advance_to(epoch + 1)
            for _ in range(20):
                worker.step()
        place.may_return.set()
        worker.step_while(lambda: not session.is_durable(5))
        for _ in range(50):
            worker.step()
        assert not session.is_durable(6), "the next append began at once"
        session.close()
        worker.step_while(lambda: not answer.done())
        return [part.upper for part in state.shard("numbers").shard.manifest().parts]

    assert execute_directly(run) == [1, 2, 3, 4, 5, 8]
    assert updates(str(tmp_path)) == expected(8)


def test_changes_of_an_epoch_have_no_effect_before_they_are_durable(tmp_path: Path) -> None:
    place = Silent(str(tmp_path))
    place.may_return.set()
    seen: list[int] = []

    def see(numbers: Any) -> Any:
        seen.extend(numbers.tolist())
        return numbers

    def run(worker: Worker) -> None:
        state = State.open(worker, place)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"))
            output = numbers.map(see).output()
        session.insert(0)
        session.advance_to(1)
        worker.step_while(lambda: output.less_than(1))
        place.may_return.clear()
        for epoch in (1, 2):
            session.insert(epoch)
            session.advance_to(epoch + 1)
            for _ in range(20):
                worker.step()
        assert seen == [0]
        place.may_return.set()
        session.close()
        worker.step_while(lambda: not output.done())
        assert seen == [0, 1, 2]

    execute_directly(run)


@pytest.mark.parametrize("slow", ["left", "right"])
def test_answers_computed_ahead_wait_for_the_input_that_is_behind(
    tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Silent(str(tmp_path), slow)
    seen: list[tuple[int, int]] = []
    append = writer.Writer.append

    def seeing(self: writer.Writer, upper: int, *rest: Any, **options: Any) -> None:
        if self.shard.name == "answer":
            seen.append((upper, Shard(slow, place.store(slow)).manifest().upper))
        append(self, upper, *rest, **options)

    monkeypatch.setattr(writer.Writer, "append", seeing)

    def run(worker: Worker) -> None:
        state = State.open(worker, place)
        with worker.dataflow() as scope:
            left, one = durable_input(scope, state.shard("left"), ahead=True)
            right, other = durable_input(scope, state.shard("right"), ahead=True)
            answer = persist(one.concat(other), state.shard("answer"))
        fast = right if slow == "left" else left
        for session in (left, right):
            session.insert(7)
            session.advance_to(1)
        worker.step_while(lambda: not fast.is_durable(1))
        for _ in range(50):
            worker.step()
        assert not answer.is_durable(1)
        assert updates(place) == []
        place.may_return.set()
        left.close()
        right.close()
        worker.step_while(lambda: not answer.done())

    execute_directly(run)
    assert updates(str(tmp_path)) == [((7,), 0, 2)]
    assert seen
    assert all(upper <= durable for upper, durable in seen)


def test_an_input_keeps_what_the_output_that_is_behind_needs(tmp_path: Path) -> None:
    place = Silent(str(tmp_path), "slow")

    def run(worker: Worker) -> None:
        state = State.open(worker, place)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers", keep=0))
            fast, slow = (persist(numbers, state.shard(name)) for name in ("fast", "slow"))
        for epoch in range(4):
            session.insert(epoch)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: not fast.is_durable(session.epoch))
        assert not slow.is_durable(1)
        assert Shard("numbers", place.store("numbers")).manifest().since == 0
        place.may_return.set()
        session.close()
        worker.step_while(lambda: not slow.done())

    execute_directly(run)
    assert updates(str(tmp_path), "slow") == updates(str(tmp_path), "fast") == [((x,), x, 1) for x in range(4)]


def test_an_input_that_is_ahead_and_closed_ends_with_its_last_change(tmp_path: Path) -> None:
    def run(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            table, static = durable_input(scope, state.shard("table"), ahead=True, flush="10ms")
            session, numbers = durable_input(scope, state.shard("numbers"), ahead=True)
            answer = persist(numbers.concat(static), state.shard("answer"))
        if not table.epoch:
            table.insert(17)
        table.close()
        first = session.epoch
        for epoch in range(first, first + 3):
            session.insert(epoch)
            session.advance_to(epoch + 1)
        session.close()
        worker.step_while(lambda: not answer.done())

    for epochs in (3, 6):
        execute_directly(run)
        answer = Shard("answer", Directory(str(tmp_path)).store("answer"))
        assert answer.read() == {(number,): 1 for number in (17, *range(epochs))}
        assert answer.read(0) == {(0,): 1, (17,): 1}


def test_a_view_that_was_left_out_for_a_while_goes_on_where_it_was(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 4, alone))

    def without(worker: Worker) -> None:
        state = State.open(worker, where)
        with worker.dataflow() as scope:
            session, _ = durable_input(scope, state.shard("numbers"))
        for epoch in range(session.epoch, 9):
            alone(session, epoch)
            session.advance_to(epoch + 1)
        session.close()

    execute_directly(without)
    assert Shard("answer", Directory(where).store("answer")).manifest().upper == 4
    assert execute_directly(program(where, 11, alone))[0] == 9
    assert updates(where) == expected(11)


def test_fields_are_added_with_a_value(tmp_path: Path) -> None:
    def run(worker: Worker, names: list[str], records: list[Any], more: dict[str, Any]) -> dict[Any, int]:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            session, stock = durable_input(scope, state.shard("stock", fields=names, added=more))
            shard = state.shard("copy", fields=names, added=more)
            copy = persist(stock, shard, on_difference="correct")
        for record in records[worker.index :: worker.peers]:
            session.insert(*record)
        session.close()
        worker.step_while(lambda: not copy.done())
        return shard.shard.read()

    def twice(*arguments: Any) -> dict[Any, int]:
        first, second = execute(lambda worker: run(worker, *arguments), Config(workers=2))
        return first or second

    assert twice(["part"], [("nut",), ("cog",)], {}) == {("nut",): 1, ("cog",): 1}
    with pytest.raises(StateError, match=r"has the fields part, but not price: added=\{'price': value\}"):
        execute_directly(lambda worker: run(worker, ["part", "price"], [], {}))
    more = {"price": 0.5, "since": typed([None], "date")}
    names, bolt = ["part", "price", "since"], ("bolt", 2.0, np.datetime64("2026-03-01"))
    columns = [np.array(["bolt"]), np.array([2.0]), typed([dt.date(2026, 3, 1)], "date")]
    expected = {("nut", 0.5, None): 1, ("cog", 0.5, None): 1, ("bolt", 2.0, bolt[2].item()): 1}
    assert twice(names, [columns], more) == expected
    assert twice(names, [], more) == expected
    shard = Shard("copy", Directory(str(tmp_path)).store("copy"))
    assert shard.read(0) == {("nut", 0.5, None): 1, ("cog", 0.5, None): 1}
    shard.verify()


def test_an_answer_with_other_columns_names_its_collection_and_the_types_that_it_has(tmp_path: Path) -> None:
    def run(worker: Worker, answer: Any) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            session, words = durable_input(scope, state.shard("words"))
            found = persist(answer(words), state.shard("counts"), on_difference="correct")
        session.insert("to")
        session.close()
        worker.step_while(lambda: not found.done())

    execute_directly(lambda worker: run(worker, lambda words: words.count()))
    has = rf"'counts' in .*{tmp_path}.* has records of \(column_0 text, column_1 int64\), so records of \(text\) cannot"
    with pytest.raises(OperatorError, match=has):
        execute_directly(lambda worker: run(worker, lambda words: words.distinct()))


def test_typed_columns_come_back_as_they_were(tmp_path: Path) -> None:
    columns = [
        typed([None, Decimal("9.99")], "decimal(18, 2)"),
        typed([dt.date(2026, 3, 1), None], "date"),
        typed(["a", None], "text?"),
        typed([None, [1, "x"]], "value"),
        np.array([np.nan, 0.5]),
    ]

    def run(worker: Worker) -> list[Any]:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            session, collection = durable_input(scope, state.shard("rows"))
            output = collection.output()
            copied = persist(collection, state.shard("copy"))
        if session.epoch == 0:
            session.insert(*columns)
        session.close()
        worker.step_while(lambda: not (output.done() and copied.done()))
        return output.records()

    assert execute_directly(run) == execute_directly(run)
    copy = Shard("copy", Directory(str(tmp_path)).store("copy")).read()
    assert copy.keys() == {record for record, _ in execute_directly(run)}


def test_two_programs_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    """The second fences off the first, which ends; nothing is lost or there twice."""
    where = str(tmp_path)

    def first(worker: Worker) -> None:
        state = State.open(worker, where)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"))
            persist(numbers.count(), state.shard("answer"))
        for epoch in range(9):
            if epoch == 5:
                worker.step_while(lambda: not session.is_durable(5))
                execute_directly(program(where, 7, alone))
            alone(session, epoch)
            session.advance_to(epoch + 1)
        worker.step_while(lambda: not session.is_durable(9))

    with pytest.raises(OperatorError, match="one program at a time can write to it"):
        execute_directly(first)
    assert updates(where) == expected(7)
    execute_directly(program(where, 9, alone))
    assert updates(where) == expected(9)


def test_a_program_that_begins_late_takes_nothing_from_one_that_opened_the_state_after_it(tmp_path: Path) -> None:
    def late(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path))
        execute_directly(program(str(tmp_path), 3, share(0, 1)))
        with worker.dataflow() as scope:
            session, collection = durable_input(scope, state.shard("numbers"))
            persist(collection, state.shard("answer"))
        session.close()
        worker.step_while(lambda: not session.is_durable(0))

    with pytest.raises(FencedError, match=r"'numbers' in .* was made by process \d+ on .* this program must end"):
        execute_directly(late)
    for name in ("numbers", "answer"):
        assert Shard(name, Directory(str(tmp_path)).store(name)).manifest().fence == 1
    assert execute_directly(program(str(tmp_path), 4, share(0, 1)))[0] == 3


class Interrupted(Directory):
    """A place in which something happens before the manifest of a collection is read for the second time."""

    def __init__(self, path: str, name: str, happens: Callable[[], object]) -> None:
        super().__init__(path)
        self.name = name
        self.happens: Callable[[], object] | None = happens
        self.reads = 0

    def store(self, name: str) -> LocalStore:
        store = super().store(name)
        if name == self.name:
            read = store.get_manifest

            def get_manifest() -> bytes | None:
                self.reads += 1
                if self.reads == 2 and (happens := self.happens):
                    self.happens = None
                    happens()
                return read()

            store.get_manifest = get_manifest  # type: ignore[method-assign]
        return store


@pytest.mark.parametrize("name", ["answer", "numbers"])
def test_of_two_programs_that_open_the_state_at_once_not_both_go_on(tmp_path: Path, name: str) -> None:
    """One that has some collections while the other one has the rest could make final what lacks changes."""
    execute_directly(program(str(tmp_path), 3, alone))
    opened: list[State] = []

    def other() -> None:
        execute_directly(lambda worker: opened.append(State.open(worker, str(tmp_path))))

    place = Interrupted(str(tmp_path), name, other)
    if name == "answer":  # it is claimed first, so the other program has opened the state before this one
        execute_directly(lambda worker: opened.append(State.open(worker, place)))
        for each in opened[1].writers.values():
            each.check()
    else:
        with pytest.raises(FencedError, match=r"'answer' in .* was claimed by process \d+ on .* must end"):
            execute_directly(lambda worker: opened.append(State.open(worker, place)))
    assert len(opened) == (2 if name == "answer" else 1)
    with pytest.raises(FencedError, match=r"was claimed by"):
        opened[0].writers["numbers"].check()


def test_a_program_that_was_replaced_does_not_take_the_answers_of_the_other_one_for_its_own(tmp_path: Path) -> None:
    execute_directly(program(str(tmp_path), 3, alone))

    def late(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path), replay=True)
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"))
            answer = persist(numbers.count(), state.shard("answer"))
        execute_directly(program(str(tmp_path), 5, alone))
        session.close()
        worker.step_while(lambda: not answer.done())

    with pytest.raises(OperatorError, match=r"'answer' in .* was claimed by process \d+ on .* must end"):
        execute_directly(late)


def test_a_program_that_was_replaced_makes_no_collections(tmp_path: Path) -> None:
    execute_directly(program(str(tmp_path), 3, alone))

    def late(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path))
        execute_directly(program(str(tmp_path), 5, alone))
        with worker.dataflow() as scope:
            session, collection = durable_input(scope, state.shard("numbers"))
            persist(collection, state.shard("copy"))
        session.close()

    with pytest.raises(FencedError, match=r"'\w+' in .* was claimed by process \d+ on .* must end"):
        execute_directly(late)
    assert Directory(str(tmp_path)).names() == ["answer", "numbers"]


def test_text_bytes_floats_and_booleans_come_back_as_they_were(tmp_path: Path) -> None:
    records = [("to", b"\0x", 0.5, True), ("", b"", -0.0, False), ("ünï", b"\xff", 1e300, True)]

    def run(worker: Worker) -> dict[Any, int]:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            session, rows = durable_input(scope, state.shard("rows"))
            output = rows.output()
            copied = persist(rows.filter(lambda *_: np.ones(len(_[0]), np.bool_)), state.shard("copy"))
        if session.epoch == 0:
            for record in records:
                session.insert(*record)
        session.close()
        worker.step_while(lambda: not (output.done() and copied.done()))
        return output.contents()

    assert execute_directly(run) == execute_directly(run) == dict.fromkeys(records, 1)
    assert Shard("copy", Directory(str(tmp_path)).store("copy")).read() == dict.fromkeys(records, 1)


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        (np.array([1 << 63], np.uint64), "2 \\*\\* 63"),
        (np.array([2j]), "complex128"),
    ],
)
def test_what_cannot_be_durable_is_refused(tmp_path: Path, column: Any, complaint: str) -> None:
    with pytest.raises((OperatorError, DataError), match=complaint):
        execute_directly(program(str(tmp_path), 1, lambda session, _: session.insert(column)))
    assert execute_directly(program(str(tmp_path), 0, alone))[0] == 0


@pytest.mark.parametrize("position", [1.5, None, True, 1 << 63, b"x"])
def test_a_position_is_a_number_or_text(tmp_path: Path, position: Any) -> None:
    with pytest.raises(DataError, match="position of 'file' must be"):
        execute_directly(program(str(tmp_path), 1, lambda session, _: session.at("file", position)))


@pytest.mark.parametrize("source", [1, 0, Path("file"), None, b"file", ""])
def test_the_name_of_a_source_is_text(tmp_path: Path, source: Any) -> None:
    """Others are not names in a manifest: a program would not find its position again, and read the source twice."""
    with pytest.raises(DataError, match=f"{re.escape(repr(source))} cannot name a source"):
        execute_directly(program(str(tmp_path), 1, lambda session, _: session.at(source, 7)))


def opened(tmp_path: Path, use: Callable[[Any, State], object]) -> None:
    def run(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            use(scope, state)

    execute_directly(run)


def test_names_and_roles_are_checked_when_a_program_is_built(tmp_path: Path) -> None:
    where = str(tmp_path)
    execute_directly(program(where, 1, alone))

    def numbers(state: State, **options: Any) -> OpenShard:
        return state.shard("numbers", **options)

    def refused(error: type[Exception], match: str, use: Callable[[Any, State], object]) -> None:
        with pytest.raises(error, match=match):
            opened(tmp_path, use)

    refused(StateError, "is an input of the program", lambda s, state: persist(new_input(s)[1], numbers(state)))
    refused(StateError, "has the fields column_0, not a", lambda _, state: numbers(state, fields=["a"]))
    refused(ConfigError, "need different names", lambda _, state: state.shard("x", fields=["a", "a"]))
    refused(ConfigError, "none of them time", lambda _, state: state.shard("x", fields=["time"]))
    refused(ConfigError, "is not a duration", lambda s, state: durable_input(s, numbers(state), flush="soon"))
    refused(
        ConfigError,
        "on_difference is one of",
        lambda s, state: persist(new_input(s)[1], state.shard("answer"), on_difference="x"),
    )
    refused(
        BuildError,
        rf"^at {__file__}:\d+: 'numbers' is already used",
        lambda s, state: [durable_input(s, numbers(state)) for _ in range(2)],
    )

    def twice(scope: Any, state: State) -> None:
        shard = numbers(state)
        durable_input(scope, shard)
        durable_input(scope, shard)

    refused(BuildError, rf"^at {__file__}:\d+: 'numbers' is already an input of this program", twice)

    def in_a_loop(scope: Any, state: State) -> None:
        with scope.iterative() as loop:
            durable_input(loop, numbers(state))

    refused(BuildError, rf"^at {__file__}:\d+: the durable input 'numbers' needs times of one", in_a_loop)

    def out_of_a_loop(scope: Any, state: State) -> None:
        with scope.iterative() as loop:
            persist(new_input(scope)[1].enter(loop), state.shard("answer"))

    refused(BuildError, rf"^at {__file__}:\d+: the durable output 'answer' needs times of one", out_of_a_loop)
    execute_directly(program(where, 2, alone))


def test_what_uses_the_state_is_built_before_the_first_step(tmp_path: Path) -> None:
    def run(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            durable_input(scope, state.shard("numbers"))
        with worker.dataflow() as scope:
            durable_input(scope, state.shard("more"))

    with pytest.raises(BuildError, match=rf"^at {__file__}:\d+: 'more' was opened too late"):
        execute_directly(run)


def test_a_dataflow_that_is_dropped_leaves_the_state_whole(tmp_path: Path) -> None:
    def run(worker: Worker) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow() as scope:
            session, numbers = durable_input(scope, state.shard("numbers"))
            answer = persist(numbers.count(), state.shard("answer"))
        for epoch in range(4):
            alone(session, epoch)
            session.advance_to(epoch + 1)
            if epoch == 1:
                worker.step_while(lambda: not answer.is_durable(2))
            worker.step()
        worker.drop_dataflow(scope.dataflow)
        for _ in range(50):
            worker.step()

    execute_directly(run)
    assert 2 <= execute_directly(program(str(tmp_path), 6, alone))[0] <= 4
    assert updates(str(tmp_path)) == expected(6)


def test_times_of_two_coordinates_are_refused(tmp_path: Path) -> None:
    def run(worker: Worker, use: Callable[[Any, State], object]) -> None:
        state = State.open(worker, str(tmp_path))
        with worker.dataflow(outer=2) as scope:
            use(scope, state)

    for use in (
        lambda scope, state: durable_input(scope, state.shard("numbers")),
        lambda scope, state: persist(new_input(scope)[1], state.shard("answer")),
    ):
        with pytest.raises(BuildError, match="times of one coordinate"):
            execute_directly(lambda worker, use=use: run(worker, use))


def test_handles_describe_themselves(tmp_path: Path) -> None:
    found: list[DurableSession | DurableOutput | OpenShard] = []

    def use(scope: Any, state: State) -> None:
        session, numbers = durable_input(scope, shard := state.shard("numbers"))
        found.extend([session, persist(numbers, state.shard("answer")), shard])

    opened(tmp_path, use)
    assert [repr(each).partition("(")[0] for each in found] == ["DurableSession", "DurableOutput", "OpenShard"]
