"""A durable collection is a multiset at each time, whatever was claimed, appended, merged and given up in between."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings, strategies as st

from differential import Collection, Updates
from differential.durable import Directory, Shard, State, compaction, durable_input, persist, rows
from differential.durable.keep import Keep
from differential.durable.local import LocalStore
from differential.durable.writer import Writer
from tests.thorough import examples
from timely import Config, Worker, execute

Update = tuple[tuple[Any, ...], int, int]

small = st.integers(-2, 2)
records = st.one_of(
    st.lists(st.tuples(small, small), max_size=6),
    st.lists(st.tuples(st.sampled_from(["", "a", "b", "ä"]), small), max_size=6),
    st.lists(st.tuples(st.sampled_from([0.5, -0.0, 0.0, 1e300]), st.booleans()), max_size=6),
    st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([b"", b"\0", b"ab"])), max_size=6),
)


def updates_of(records: Sequence[tuple[Any, ...]], times: Sequence[int], diffs: Sequence[int]) -> Updates:
    columns = []
    for column in zip(*records):
        array = np.array(column, np.dtypes.StringDType() if type(column[0]) is str else None)
        if type(column[0]) is bytes:
            array = np.empty(len(column), np.object_)
            array[:] = column
        columns.append(array)
    index = np.arange(len(times)) if len(times) > 1 else np.zeros(0, np.int64)
    return Updates(tuple(columns), np.array(times)[:, None], index, np.array(diffs))


@given(st.data())
def test_consolidated_is_sorted_and_adds_up(data: st.DataObject) -> None:
    chosen = data.draw(records.filter(len))
    number = len(chosen)
    times = data.draw(st.lists(st.integers(0, 3), min_size=number, max_size=number))
    diffs = data.draw(st.lists(small, min_size=number, max_size=number))
    since = data.draw(st.none() | st.integers(0, 4))
    updates = updates_of(chosen, times, diffs)
    table = rows.table_of([updates], rows.fields_of(updates, None))
    found = rows.consolidated(table, since)
    expected: Counter[Any] = Counter()
    for record, time, diff in zip(chosen, times, diffs):
        expected[*record, max(time, since or 0)] += diff
    listed = [tuple(row.values()) for row in found.to_pylist()]
    assert listed == sorted((*key, diff) for key, diff in expected.items() if diff)
    assert rows.digest(found) == rows.digest(table)
    assert rows.from_bytes(rows.to_bytes(found), rows.fields_of(updates, None)) == found
    assert len(rows.difference(found, found)) == 0
    if listed:
        again = rows.updates_of(found)
        assert rows.consolidated(rows.table_of([again], rows.fields_of(again, None))) == found


@given(st.data())
def test_a_shard_is_a_multiset_at_each_time(data: st.DataObject) -> None:
    """Claims, appends, compactions and retention, in any order, against a list of updates."""
    run = data.draw(st.integers(2, 4))
    with tempfile.TemporaryDirectory() as directory, patch.object(compaction, "RUN", run):
        shard = Shard("numbers", LocalStore(directory))
        writer = Writer.claim(shard, "input")
        made: list[Update] = []
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["append", "append", "compact", "claim", "keep"])):
                case "append":
                    lower = writer.manifest.upper
                    upper = lower + data.draw(st.integers(1, 3))
                    update = st.tuples(st.tuples(small), st.integers(lower, upper - 1), small)
                    made += (new := data.draw(st.lists(update, max_size=5)))
                    batch = [updates_of(*zip(*new))] if new else []
                    writer.append(upper, batch, limit=data.draw(st.none() | st.integers(0, upper)))
                case "compact":
                    writer.compact()
                case "claim":
                    writer = Writer.claim(shard, "input")
                    writer.remove_garbage()
                case "keep":
                    writer.keep = Keep(data.draw(st.none() | st.integers(0, 3)))
        manifest = shard.manifest()
        assert sorted(part.name for part in manifest.parts) == shard.store.names()
        for as_of in range(manifest.since, manifest.upper):
            assert shard.read(as_of) == contents(made, as_of)
        if manifest.upper:
            assert rows.digest(shard.updates()) == manifest.digest
        for lower in range(manifest.since + 1, manifest.upper):
            found = {tuple(row.values()) for row in shard.updates(lower, lower + 1).to_pylist()}
            total = Counter[tuple[Any, ...]]()
            for record, time, diff in made:
                if time == lower:
                    total[*record, time] += diff
            assert found == {(*key, diff) for key, diff in total.items() if diff}


def contents(updates: Sequence[Update], as_of: int) -> dict[tuple[Any, ...], int]:
    """Return what updates add up to as of a time."""
    total = Counter[tuple[Any, ...]]()
    for record, time, diff in updates:
        if time <= as_of:
            total[record] += diff
    return {record: diff for record, diff in total.items() if diff}


class Crashed(Exception):
    pass


def program(
    worker: Worker, where: str, epochs: Sequence[Sequence[tuple[tuple[int], int]]], crash: int, **keep: Any
) -> None:
    """Make the changes of all epochs that are not durable, this worker's share of each; perhaps crash at one."""
    state = State.open(worker, where)
    with worker.dataflow() as scope:
        session, numbers = durable_input(scope, state.shard("numbers", **keep))
        answer = persist(least(numbers), state.shard("answer"))
    for epoch in range(session.epoch, len(epochs)):
        for (number,), diff in epochs[epoch][worker.index :: worker.peers]:
            session.update(number, diff=diff)
        if epoch == crash and worker.index == 0:
            raise Crashed
        session.advance_to(epoch + 1)
        worker.step()
    session.close()
    worker.step_while(lambda: not answer.done())


def least(numbers: Collection) -> Collection:
    """Return (number, how often it occurs), of those that occur: neither a negative nor a zero number of times."""
    return numbers.count()


@settings(max_examples=examples(45), deadline=None)
@given(st.data())
def test_the_answers_at_each_epoch_are_those_of_the_changes(data: st.DataObject) -> None:
    """Runs that crash anywhere, with any numbers of workers, against the definition."""
    change = st.tuples(st.tuples(st.integers(0, 3)), st.just(1))
    epochs = data.draw(st.lists(st.lists(change, max_size=3), min_size=1, max_size=8))
    keep = data.draw(st.sampled_from([{}, {"keep": 0}, {"keep": 1}]))
    with tempfile.TemporaryDirectory() as where, patch.object(compaction, "RUN", 2):
        for crash in [*data.draw(st.lists(st.integers(0, len(epochs) - 1), max_size=3)), -1]:
            workers = data.draw(st.integers(1, 2))
            try:
                execute(lambda worker, c=crash: program(worker, where, epochs, c, **keep), Config(workers=workers))
            except Crashed:
                continue
        shard = Shard("answer", Directory(where).store("answer"))
        assert shard.manifest().since == 0
        made = [(record, epoch, diff) for epoch, changes in enumerate(epochs) for record, diff in changes]
        for epoch in range(len(epochs)):
            now = contents(made, epoch)
            assert shard.read(epoch) == {(number, count): 1 for (number,), count in now.items()}
        numbers = Shard("numbers", Directory(where).store("numbers"))
        assert numbers.read() == contents(made, len(epochs))
