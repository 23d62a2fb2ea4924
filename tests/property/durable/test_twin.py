"""A durable collection is a multiset at each time, whatever was claimed, appended, merged and given up in between."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings, strategies as st

from differential import Collection, Updates
from differential.durable import Directory, Shard, State, compaction, durable_input, persist, rows
from differential.durable.kinds import items, kind_of
from differential.durable.local import LocalStore
from differential.durable.manifest import Keep
from differential.durable.writer import Writer
from tests.simulation.stores import Seeded, SimulatedDisk
from tests.thorough import examples
from timely import Config, Worker, execute
from timely.lowlevel import Items, typed

Update = tuple[tuple[Any, ...], int, int]

small = st.integers(-2, 2)
values: dict[str, st.SearchStrategy[Any]] = {
    "int64": small | st.sampled_from([-(1 << 63), (1 << 63) - 1]),
    "text": st.sampled_from(["", "a", "b", "\u00e4", "\U0001f600"]),
    "float64": st.sampled_from([0.5, -0.0, 0.0, 1e300, np.nan, -np.inf]),
    "float16": st.sampled_from([0.5, -0.0, np.nan]),
    "bool": st.booleans(),
    "bytes": st.sampled_from([b"", b"\0", b"ab"]),
    "int64?": small | st.none(),
    "uint64": st.sampled_from([0, 1, 1 << 63, (1 << 64) - 1]),
    "float64?": st.sampled_from([0.5, -1.5, np.nan, None]),
    "bool?": st.sampled_from([True, False, None]),
    "text?": st.sampled_from(["", "a", "\u00e4", None]),
    "bytes?": st.sampled_from([b"", b"\0", None]),
    "date": st.dates() | st.none(),
    "timestamp[us]": st.datetimes() | st.none(),
    "timestamp[s, Europe/Berlin]": st.sampled_from([dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC), None]),
    "timestamp[ns]": st.sampled_from([dt.datetime(1969, 3, 1), None]),
    "duration[ms]": st.sampled_from([dt.timedelta(days=-1), dt.timedelta(0), None]),
    "duration[D]": st.sampled_from([dt.timedelta(days=-1), None]),
    "time[s]": st.sampled_from([dt.time(0), dt.time(1, 2, 3), None]),
    "time[us]": st.times() | st.none(),
    "decimal(9, 2)": st.sampled_from([Decimal("-0.01"), Decimal("9999999.99"), None]),
    "decimal(30, 1)": st.sampled_from([Decimal("-0.1"), Decimal("1e20"), None]),
    "decimal(60, 0)": st.sampled_from([Decimal(10) ** 59, Decimal(-1), None]),
    "value": st.sampled_from([None, [], ["a", None, 1.5], {"x": [1]}]),
}
"""For each kind of column, values to draw from."""
kinds = st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=3)


def drawn(data: st.DataObject, names: Sequence[str], length: int) -> tuple[Any, ...]:
    """Return columns of these kinds."""
    return tuple(
        typed(data.draw(st.lists(values[name], min_size=length, max_size=length), label=name), name) for name in names
    )


def updates_of(columns: tuple[Any, ...], times: Sequence[int], diffs: Sequence[int]) -> Updates:
    index = np.arange(len(times)) if len(times) > 1 else np.zeros(0, np.int64)
    return Updates(columns, np.array(times)[:, None], index, np.array(diffs))


def rank(value: Any) -> tuple[int, Any]:
    """Return a key that orders values as columns are ordered: NaN after numbers, null last."""
    if value is None:
        return 2, 0
    if isinstance(value, Items):
        return 0, value.key
    return (1, 0) if value != value else (0, value)


@given(st.data())
def test_consolidated_is_sorted_and_adds_up(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 6))
    columns = drawn(data, data.draw(kinds), number)
    times = data.draw(st.lists(st.integers(0, 3), min_size=number, max_size=number))
    diffs = data.draw(st.lists(small, min_size=number, max_size=number))
    since = data.draw(st.none() | st.integers(0, 4))
    updates = updates_of(columns, times, diffs)
    fields = rows.fields_of(updates, None)
    table = rows.table_of([updates], fields)
    found = rows.consolidated(table, since)
    expected: Counter[Any] = Counter()
    for record, (time,), diff in updates.rows():
        expected[*record, max(time, since or 0)] += diff
    listed = [(*record, time, diff) for record, (time,), diff in rows.updates_of(found).rows()] if len(found) else []
    in_order = sorted(expected, key=lambda record: [*map(rank, record)])
    assert listed == [(*record, expected[record]) for record in in_order if expected[record]]
    assert rows.digest(found) == rows.digest(table)
    with patch.object(rows, "LARGE", data.draw(st.sampled_from([0, 9]))):
        read = rows.from_bytes(rows.to_bytes(found), fields)
    assert (read.schema, len(read), len(rows.difference(read, found))) == (found.schema, len(found), 0)
    assert rows.digest(read) == rows.digest(found)
    later = rows.updates_of(table, 2)
    assert [time for _, (time,), _ in later.rows()] == [max(time, 2) for time in times]
    if listed:
        again = rows.updates_of(found)
        assert rows.fields_of(again, None) == fields, "columns come back as they were"
        assert len(rows.difference(rows.table_of([again], fields), found)) == 0
        assert rows.records(found.drop_columns(["time"])).keys() == {record[:-2] for record in listed}


@given(st.data())
def test_more_fields_are_a_value_in_all_records(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(values)))
    value = data.draw(values[kind])
    fields = [("number", "int64")]
    table = rows.table_of([Updates.at((3,), (np.array([5, 7]),))], fields)
    column = typed([value], kind)
    wider = rows.with_fields(table, {"more": (kind_of(column), column.tolist()[0])})
    more = rows.columns_of(wider)[1]
    assert wider.schema == rows.schema_of([*fields, ("more", kind_of(column))])
    assert (kind_of(more), items(more)) == (kind_of(column), items(column) * 2)


def numbers_of(updates: Sequence[Update]) -> Updates:
    records, times, diffs = zip(*updates)
    return updates_of((np.array([number for (number,) in records]),), times, diffs)


@given(st.data())
def test_a_shard_is_a_multiset_at_each_time(data: st.DataObject) -> None:
    """Claims, appends, compactions and retention, in any order, against a list of updates."""
    run = data.draw(st.integers(2, 4))
    with patch.object(compaction, "RUN", run):
        shard = Shard("numbers", LocalStore("numbers", SimulatedDisk(Seeded(1))))
        writer = Writer.claim(shard, "output")
        made: list[Update] = []
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["append", "append", "compact", "claim", "keep"])):
                case "append":
                    lower = writer.manifest.upper
                    upper = lower + data.draw(st.integers(1, 3))
                    update = st.tuples(st.tuples(small), st.integers(lower, upper - 1), small)
                    made += (new := data.draw(st.lists(update, max_size=5)))
                    batch = [numbers_of(new)] if new else []
                    writer.append(upper, batch, limit=data.draw(st.none() | st.integers(0, upper)))
                case "compact":
                    writer.compact()
                case "claim":
                    writer = Writer.claim(shard, "output")
                    writer.remove_garbage()
                case "keep":
                    writer.keep = Keep(data.draw(st.none() | st.integers(0, 3)))
        manifest = shard.manifest()
        assert sorted(part.name for part in manifest.parts) == shard.store.names()
        for as_of in range(manifest.since, manifest.upper):
            assert shard.read(as_of) == contents(made, as_of)
        if manifest.upper:
            assert rows.digest(shard.updates()) == manifest.digest
        for lower in range(manifest.upper):
            for upper in {lower + 1, manifest.upper}:
                found = {tuple(row.values()) for row in shard.updates(lower, upper).to_pylist()}
                total = Counter[tuple[Any, ...]]()
                for record, time, diff in made:
                    if lower <= max(time, manifest.since) < upper:
                        total[*record, max(time, manifest.since)] += diff
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
