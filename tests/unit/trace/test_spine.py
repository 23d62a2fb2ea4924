"""What a spine holds when its readers do not look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from differential.kernels.compile import Ints, Table
from differential.kernels.times import intern
from differential.trace.batch import Batch
from differential.trace.handle import TraceHandle
from differential.trace.spine import Spine
from timely.progress.antichain import Antichain

NOTHING = np.empty(0, np.int64)


def batch_of(rows: int, epoch: int) -> Batch:
    """Return the batch of an epoch that inserts so many records."""
    keys, lower, upper = np.arange(rows), Antichain([(epoch,)]), Antichain([(epoch + 1,)])
    return Batch.build(keys, NOTHING, NOTHING, NOTHING, np.array([[epoch]]), lower, upper, Antichain([(0,)]))


@pytest.mark.parametrize("rows", [(600, 600, 600), (600, 10, 10, 10, 10, 10, 600), (10, 600), (0, 600, 0)])
def test_batches_that_a_reader_may_cut_between_are_not_merged(rows: tuple[int, ...]) -> None:
    spine = Spine(1)
    reader, batches = TraceHandle(spine), []
    for epoch, size in enumerate(rows):
        batches.append(spine.insert(batch_of(size, epoch)))
        spine.exert(10_000)
    assert spine.batches() == tuple(batches)
    for epoch in range(len(rows)):
        assert reader.batches_through(Antichain([(epoch + 1,)])) == tuple(batches[: epoch + 1])


@pytest.mark.parametrize("rows", [(1000, 1000), (1000, 1000, 1000, 1000)])
def test_layers_are_merged_when_the_reader_who_might_have_cut_between_them_moves_on(rows: tuple[int, ...]) -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    for epoch, size in enumerate(rows):
        spine.insert(batch_of(size, epoch))
    while spine.exert(1000):
        pass
    assert spine.statistics().layers == len(rows)
    reader.set_physical_compaction(spine.upper)
    for _ in range(20):
        spine.exert(1000)
    spine.validate()
    assert spine.statistics()[:3] == (1, 0, sum(rows))


def test_an_epoch_without_changes_after_a_merge_that_is_under_way_becomes_part_of_it() -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    reader.set_physical_compaction(Antichain())
    for epoch, rows in enumerate((5000, 5000, 0, 0)):
        spine.insert(batch_of(rows, epoch))
        spine.validate()
    assert spine.statistics()[:2] == (1, 1)
    assert [batch.upper for batch in spine.batches()] == [Antichain([(1,)]), Antichain([(4,)])]
    while spine.exert(1000):
        pass
    spine.validate()
    assert [(len(batch), batch.upper) for batch in spine.batches()] == [(10_000, Antichain([(4,)]))]


def test_epochs_that_change_nothing_leave_nothing_behind_though_no_reader_looks() -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    least = Antichain([(0,)])
    first = Batch.build(np.arange(3), NOTHING, NOTHING, NOTHING, np.array([[0]]), least, Antichain([(1,)]), least)
    spine.insert(first)
    for epoch in range(1, 100):
        spine.insert(Batch.empty(Antichain([(epoch,)]), Antichain([(epoch + 1,)]), least, 1))
        assert spine.statistics().layers <= 2
        assert reader.batches_through(Antichain([(1,)])) == (first,)
        assert reader.batches_through(Antichain([(epoch,)]))[:1] == (first,)
        spine.validate()


def test_an_observer_and_a_watch_are_told_of_every_merge_that_is_done_bit_by_bit() -> None:
    class Ledger:
        """The batches there are, by what was said."""

        def __init__(self) -> None:
            self.alive: list[Batch] = []

        def inserted(self, batch: Batch) -> None:
            self.alive.append(batch)

        def merged(self, sources: Sequence[Batch], result: Batch) -> None:
            self.alive = [batch for batch in self.alive if not any(batch is source for source in sources)] + [result]

        def dropped(self, batches: Sequence[Batch]) -> None:
            self.alive.clear()

    spine, ledger, watched = Spine(1), Ledger(), list[Ints]()
    spine.observer = ledger
    spine.watch = lambda keys, vals: watched.append(keys)
    reader, least = TraceHandle(spine), Antichain([(0,)])
    for epoch in range(12):
        upper = Antichain([(epoch + 1,)])
        keys = np.arange(3000 // (epoch + 1)) * 100 + epoch
        spine.insert(
            Batch.build(keys, NOTHING, NOTHING, NOTHING, np.array([[epoch]]), Antichain([(epoch,)]), upper, least)
        )
        reader.set_logical_compaction(upper)
        reader.set_physical_compaction(upper)
        while spine.exert(700):
            pass
        assert {id(batch) for batch in ledger.alive} == {id(batch) for batch in spine.batches()}
        assert all(any(batch.keys is keys for keys in watched) for batch in spine.batches())
    assert ledger.alive
    reader.drop()
    assert not ledger.alive
    assert not spine.batches()


def test_an_observer_is_told_what_becomes_of_small_layers_when_many_rows_come() -> None:
    merged: list[tuple[int, int]] = []

    class Listener:
        def inserted(self, batch: Batch) -> None: ...

        def merged(self, sources: Sequence[Batch], result: Batch) -> None:
            merged.append((sum(map(len, sources)), len(result)))

        def dropped(self, batches: Sequence[Batch]) -> None: ...

    spine = Spine(1)
    spine.observer = Listener()
    reader = TraceHandle(spine)
    reader.set_physical_compaction(Antichain())
    for epoch, rows in enumerate((2900, 700, 650)):
        spine.insert(batch_of(rows, epoch))
    assert (spine.statistics()[:2], merged) == ((2, 1), [])
    spine.insert(batch_of(3000, 3))
    assert merged == [(1350, 1350), (4250, 4250)]


def test_every_layer_forgets_times_that_have_become_the_same_though_nothing_is_merged() -> None:
    spine = Spine(1)
    reader, least = TraceHandle(spine), Antichain([(0,)])
    for epoch, rows in ((0, 4000), (10, 900), (20, 100)):
        lower, upper = Antichain([(epoch,)]), Antichain([(epoch + 10,)])
        times, index = np.array([[epoch], [epoch + 1]]), np.arange(rows) % 2
        spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, lower, upper, least))
    assert [len(batch.times) for batch in spine.batches()] == [2, 2, 2]
    reader.set_logical_compaction(Antichain([(30,)]))
    for _ in range(20):
        spine.exert(5000)
    assert [(len(batch), len(batch.times)) for batch in spine.batches()] == [(4000, 1), (900, 1), (100, 1)]
    assert spine.statistics().moved == 5000
    spine.validate()


@pytest.mark.parametrize(("distinct", "left"), [(100, 13), (63, 8)])
def test_a_layer_at_many_times_is_compacted_before_as_much_is_inserted_as_it_has_rows(distinct: int, left: int) -> None:
    spine, rows = Spine(1), 20_000
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(100,)])
    times, index = np.arange(distinct)[:, None], np.arange(rows) % distinct
    spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, least, end, least))
    since = distinct - left
    reader.set_logical_compaction(Antichain([(since,)]))
    for _ in range(40):
        spine.exert(40)
    assert len(spine.batches()[0].times) == distinct  # too many times can still be told apart
    reader.set_logical_compaction(Antichain([(since + 1,)]))
    for _ in range(40):
        spine.exert(40)
    few = left - 1 if distinct == 100 else distinct
    assert [(len(batch), len(batch.times)) for batch in spine.batches()] == [(rows, few)]
    assert spine.statistics().moved == (rows if few < distinct else 0)
    spine.validate()


@pytest.mark.parametrize(("distinct", "inserts"), [(100, 8), (4, 1000)])
def test_a_layer_is_compacted_at_once_only_where_it_is_at_many_times(distinct: int, inserts: int) -> None:
    spine, rows = Spine(1), 20_000
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(distinct,)])
    times, index = np.arange(distinct)[:, None], np.arange(rows) % distinct
    spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, least, end, least))
    reader.set_logical_compaction(end)
    spine.exert(20_001)
    worked = 0
    while len(spine.batches()[0].times) > 1:
        spine.exert(20)
        worked += 1
    assert inserts / 2 < worked <= inserts


@pytest.mark.interpreted
def test_times_are_looked_at_as_seldom_as_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    spine, rows, distinct = Spine(1), 20_000, 5000
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(distinct,)])
    times, index = np.arange(distinct)[:, None], np.arange(rows) % distinct
    spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, least, end, least))
    looks: list[int] = []

    def interned(times: Table) -> tuple[Table, Ints]:
        looks.append(len(times))
        return intern(times)

    monkeypatch.setattr("differential.trace.spine.intern", interned)
    for _ in range(300):
        spine.exert(40)
    assert looks == [distinct] * 2
    assert reader.logical == least


def test_a_layer_of_one_time_keeps_no_other_from_being_compacted() -> None:
    spine = Spine(1)
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(10,)])
    spine.insert(batch_of(4000, 0))
    times, index = np.array([[1], [2]]), np.arange(900) % 2
    spine.insert(Batch.build(np.arange(900), NOTHING, index, NOTHING, times, Antichain([(1,)]), end, least))
    reader.set_logical_compaction(end)
    for _ in range(20):
        spine.exert(5000)
    assert [len(batch.times) for batch in spine.batches()] == [1, 1]


def test_layers_of_which_most_times_can_be_told_apart_are_left_alone() -> None:
    spine = Spine(1)
    reader, least = TraceHandle(spine), Antichain([(0,)])
    times, index = np.arange(10)[:, None], np.arange(1000) % 10
    batch = Batch.build(np.arange(1000), NOTHING, index, NOTHING, times, least, Antichain([(10,)]), least)
    spine.insert(batch)
    reader.set_logical_compaction(Antichain([(4,)]))
    for _ in range(20):
        spine.exert(5000)
    assert spine.batches() == (batch,)


def test_each_row_is_merged_logarithmically_often() -> None:
    spine, least, epochs, rows = Spine(1), Antichain([(0,)]), 256, 100
    reader = TraceHandle(spine)
    for epoch in range(epochs):
        upper = Antichain([(epoch + 1,)])
        columns = np.arange(rows) * epochs + epoch, NOTHING, NOTHING, NOTHING, np.array([[epoch]])
        spine.insert(Batch.build(*columns, Antichain([(epoch,)]), upper, least))
        reader.set_logical_compaction(upper)
        reader.set_physical_compaction(upper)
    statistics = spine.statistics()
    assert statistics.rows == statistics.inserted == epochs * rows
    assert 2 * statistics.inserted <= statistics.moved <= statistics.inserted * np.log2(epochs)
    assert statistics.layers <= np.log2(epochs)
