"""A spine and its readers, under random inserts, compactions, cuts and idle work, against the list of all updates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.kernels.times import advance
from differential.trace import merge as merge_module, spine as spine_module
from differential.trace.batch import Batch, frontier_table
from differential.trace.cursor import accumulate
from differential.trace.description import Description
from differential.trace.entered import Entered
from differential.trace.handle import TraceHandle, Uncut
from differential.trace.spine import Spine
from differential.trace.storage import Storage
from tests.invariants import check
from tests.oracle.trace import Row, as_of
from tests.strategies_batches import frontiers, rows_of, times, updates
from tests.thorough import examples
from timely.errors import TimelyError
from timely.order import Time, less_equal
from timely.progress.antichain import Antichain


class Reader:
    """A handle, and the times that it may read."""

    def __init__(self, handle: TraceHandle, cuts: list[Antichain]) -> None:
        self.handle = handle
        self.cuts = cuts

    def advance(self, upper: Antichain) -> None:
        """Note that the trace has a new upper: of an uncut reader's trace, the only cut."""
        self.cuts = [upper] if isinstance(self.handle, Uncut) else [*self.cuts, upper]


def _contents(batches: tuple[Batch, ...], time: Time) -> list[tuple[int, int, int]]:
    columns = accumulate(batches, time)
    return list(zip(*(column.tolist() for column in columns)))


class Run:
    """One random history."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.depth = data.draw(st.integers(1, 3))
        self.spine = Spine(self.depth, Storage(data.draw(st.sampled_from([None, 0, 200]))))
        self.origin = Antichain([(0,) * self.depth])
        self.rows: list[Row] = []
        self.readers = [Reader(TraceHandle(self.spine), [self.origin])]

    def insert(self) -> None:
        lower = self.spine.upper
        upper = lower.join(self.data.draw(frontiers(self.depth, top=6, least=1)))
        keys, vals, index, diffs, table = self.data.draw(updates(self.depth, most=25, wide=False))
        # Times are drawn anywhere, so bring them into the interval, or leave the batch empty.
        within = [time for time in map(tuple, table.tolist()) if lower.less_equal(time) and not upper.less_equal(time)]
        within += [time for time in lower if not upper.less_equal(time)]
        if within and len(keys):
            table = np.array([within[row % len(within)] for row in range(len(table))], np.int64)
            batch = Batch.build(keys, vals, index, diffs, table, Description(lower, upper, self.origin))
            self.rows += rows_of((keys, vals, index, diffs, table))
        else:
            batch = Batch.empty(Description(lower, upper, self.origin), self.depth)
        self.spine.insert(batch)
        for reader in self.readers:
            reader.advance(upper)

    def insert_what_is_removed_again(self) -> None:
        """Insert records and, at a time after that in the same batch, their removals."""
        lower = self.spine.upper
        upper = Antichain([tuple(coordinate + 3 for coordinate in time) for time in lower])
        least = lower.elements[0]
        count = self.data.draw(st.integers(1, 20))
        keys, index = np.repeat(np.arange(count), 2), np.tile([0, 1], count)
        table = np.array([least, (*least[:-1], least[-1] + 1)], np.int64)
        columns = keys, np.empty(0, np.int64), index, 1 - 2 * index, table
        self.rows += rows_of(columns)
        self.spine.insert(Batch.build(*columns, Description(lower, upper, self.origin)))
        for reader in self.readers:
            reader.advance(upper)

    def compact_logically(self) -> None:
        reader = self.data.draw(st.sampled_from(self.readers))
        reader.handle.set_logical_compaction(reader.handle.logical.join(self.data.draw(frontiers(self.depth, least=1))))

    def compact_physically(self) -> None:
        reader = self.data.draw(st.sampled_from(self.readers))
        cut = self.data.draw(st.sampled_from(reader.cuts))
        if reader.handle.physical.dominates(cut):
            reader.handle.set_physical_compaction(cut)
            reader.cuts = [one for one in reader.cuts if cut.dominates(one)]

    def exert(self) -> None:
        self.spine.exert(self.data.draw(st.sampled_from([1, 10, 1000])))

    def tend(self) -> None:
        for _ in range(self.data.draw(st.integers(1, 4))):
            self.spine.tend()

    def consolidate(self) -> None:
        self.spine.consolidate()

    def rest(self, tiny: int) -> None:
        """Maintain the trace until nothing is left to do, and check its contents."""
        pieces = 0
        while self.spine.tend():
            pieces += 1
        assert pieces <= 100 * len(self.rows) + 20
        self.check()
        statistics = self.spine.statistics()
        assert not statistics.merging
        assert statistics.rows <= 4 * self.distinguishable() + spine_module.TINY_LAYERS * tiny
        assert not self.spine.tend()

    def distinguishable(self) -> int:
        """Return how many rows are different for readers."""
        counts: Counter[tuple[int, int, tuple[int, ...]]] = Counter()
        since = frontier_table(self.spine.logical, self.depth)
        for key, val, time, diff in self.rows:
            counts[key, val, tuple(advance(np.array([time], np.int64), since)[0].tolist())] += diff
        return sum(count != 0 for count in counts.values())

    def clone(self) -> None:
        reader = self.data.draw(st.sampled_from(self.readers))
        self.readers.append(Reader(reader.handle.clone(), list(reader.cuts)))

    def clone_uncut(self) -> None:
        reader = self.data.draw(st.sampled_from(self.readers))
        self.readers.append(Reader(reader.handle.uncut(), [self.spine.upper]))

    def drop(self) -> None:
        if len(self.readers) > 1:
            self.readers.pop(self.data.draw(st.integers(0, len(self.readers) - 1))).handle.drop()

    def check(self) -> None:
        check(self.spine)
        for reader in self.readers:
            handle = reader.handle
            time = self.data.draw(times(self.depth, top=6))
            if handle.logical.less_equal(time) and not handle.upper.less_equal(time):
                assert _contents(handle.batches(), time) == as_of(self.rows, time)
            cut = self.data.draw(st.sampled_from(reader.cuts))
            through = handle.batches_through(cut)
            assert through == handle.batches()[: len(through)]
            if handle.logical.less_equal(time) and not cut.less_equal(time):
                assert _contents(through, time) == as_of(self.rows, time)
            if handle.logical.less_equal(time):
                before = [row for row in self.rows if not cut.less_equal(row[2])]
                assert _contents(through, time) == as_of(before, time)


@pytest.mark.timeout(300)
@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_readers_see_the_same_collection_whatever_is_merged_and_compacted(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spine_module, "FEW", data.draw(st.sampled_from([0, 30, 512])))
        patch.setattr(spine_module, "TINY", data.draw(st.sampled_from([0, 5, 64])))
        patch.setattr(spine_module, "EFFORT", data.draw(st.sampled_from([1, 4])))
        patch.setattr(merge_module, "_PIECE", data.draw(st.sampled_from([1, 10])))
        run = Run(data)
        steps = (
            [run.insert] * 4
            + [run.compact_logically, run.compact_physically] * 2
            + [run.exert, run.tend, run.clone, run.clone_uncut, run.drop, run.consolidate]
        )
        for step in data.draw(st.lists(st.sampled_from(steps), max_size=14)):
            step()
            run.check()
        while run.spine.exert(1000):
            pass
        run.check()


@pytest.mark.timeout(300)
@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_an_idle_trace_holds_at_most_a_few_copies_of_what_can_be_distinguished(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        few, tiny = data.draw(st.sampled_from([(0, 0), (30, 5), (512, 64)]))
        patch.setattr(spine_module, "FEW", few)
        patch.setattr(spine_module, "TINY", tiny)
        patch.setattr(spine_module, "LEAST_EFFORT", data.draw(st.sampled_from([1, 20, 4096])))
        patch.setattr(merge_module, "_PIECE", data.draw(st.sampled_from([1, 10])))
        run = Run(data)
        steps = [run.insert] * 3 + [run.insert_what_is_removed_again] * 2 + [run.compact_logically] * 2
        steps += [run.compact_physically, run.tend, run.clone, run.clone_uncut, run.drop]
        for step in data.draw(st.lists(st.sampled_from(steps), max_size=14)):
            step()
            run.check()
        for reader in run.readers:
            reader.handle.set_physical_compaction(run.spine.upper)
            reader.cuts = reader.cuts[-1:]
        run.rest(tiny)
        for reader in run.readers:
            reader.handle.set_logical_compaction(reader.handle.logical.join(run.spine.upper))
        run.rest(tiny)


@pytest.mark.timeout(300)
@settings(deadline=None, max_examples=examples(50))
@given(st.data())
def test_a_trace_that_is_consolidated_holds_what_can_be_distinguished_and_no_more(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spine_module, "FEW", data.draw(st.sampled_from([0, 30, 512])))
        run = Run(data)
        steps = (
            [run.insert] * 3 + [run.insert_what_is_removed_again] * 2 + [run.compact_logically, run.exert, run.clone]
        )
        for step in data.draw(st.lists(st.sampled_from(steps), max_size=14)):
            step()
        for reader in run.readers:
            reader.handle.set_physical_compaction(run.spine.upper)
            reader.cuts = reader.cuts[-1:]
        run.consolidate()
        run.check()
        assert sum(map(len, run.spine.batches())) == run.distinguishable()
        assert len(run.spine.batches()) <= 1
        run.insert()
        run.check()


def _insert_range(spine: Spine, epoch: int, keys: np.ndarray[Any, Any], diffs: np.ndarray[Any, Any]) -> None:
    nothing = np.empty(0, np.int64)
    bounds = Antichain([(epoch,)]), Antichain([(epoch + 1,)])
    spine.insert(
        Batch.build(keys, nothing, nothing, diffs, np.array([[epoch]]), Description(*bounds, Antichain([(0,)])))
    )


def test_layers_are_logarithmically_many_and_each_row_moves_logarithmically_often() -> None:
    draw = np.random.default_rng(2)
    spine = Spine(1)
    reader = TraceHandle(spine)
    most_layers = most_moved = inserted = 0
    for epoch in range(1500):
        rows = int(draw.choice([1, 3, 20, 200, 3000], p=[0.5, 0.2, 0.2, 0.08, 0.02]))
        _insert_range(spine, epoch, draw.integers(0, 2**60, rows), np.empty(0, np.int64))
        inserted += rows
        reader.set_logical_compaction(Antichain([(epoch,)]))
        reader.set_physical_compaction(Antichain([(epoch + 1,)]))
        statistics = spine.statistics()
        most_layers = max(most_layers, statistics.layers + statistics.merging)
        most_moved = max(most_moved, statistics.moved - inserted * 20)
    assert spine.statistics().rows == inserted
    assert most_layers <= 2 * np.log2(inserted)
    assert most_moved <= 0
    check(spine)


def test_a_reader_that_asks_for_no_cut_and_holds_all_times_leaves_logarithmically_many_layers() -> None:
    spine = Spine(1)
    first = TraceHandle(spine)
    reader = first.uncut()
    first.drop()
    for epoch in range(1000):
        _insert_range(spine, epoch, np.array([epoch % 10]), np.empty(0, np.int64))
    assert len(reader.batches()) <= 2 * np.log2(1000)
    assert sum(map(len, reader.batches())) == 1000
    assert sum(batch.time_count for batch in reader.batches()) == 1000
    assert _contents(reader.clone().batches(), (599,)) == [(key, 0, 60) for key in range(10)]
    assert reader.physical == Antichain([(0,)])
    assert reader.batches_through(spine.upper) == reader.batches()
    with pytest.raises(TimelyError, match="cannot cut the trace at"):
        reader.batches_through(Antichain([(999,)]))
    check(spine)


def test_memory_follows_the_collection_and_not_its_history() -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    _insert_range(spine, 0, np.arange(2000), np.empty(0, np.int64))
    for epoch in range(1, 3000):
        _insert_range(
            spine, epoch, np.array([5, 2000 + epoch, 1999 + epoch]), np.array([1, 1, -1])[: 3 if epoch > 1 else 2]
        )
        reader.set_logical_compaction(Antichain([(epoch,)]))
        reader.set_physical_compaction(Antichain([(epoch + 1,)]))
        assert spine.statistics().rows < 3 * 2000
    check(spine)


def test_a_layer_with_a_history_is_compacted_even_if_nothing_is_merged_with_it() -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    epochs = 500
    index = np.repeat(np.arange(epochs), 2)[1:]
    keys = np.zeros(2 * epochs - 1, np.int64)
    vals = np.repeat(np.arange(epochs), 2)[:-1]
    diffs = np.tile([1, -1], epochs)[:-1]
    least, upper = Antichain([(0,)]), Antichain([(epochs,)])
    spine.insert(
        Batch.build(keys, vals, index, diffs, np.arange(epochs).reshape(-1, 1), Description(least, upper, least))
    )
    assert spine.statistics().rows == 2 * epochs - 1
    reader.set_logical_compaction(upper)
    reader.set_physical_compaction(upper)
    for epoch in range(epochs, epochs + 1000):
        spine.insert(Batch.empty(Description(Antichain([(epoch,)]), Antichain([(epoch + 1,)]), least), 1))
    assert spine.statistics().rows == 1
    assert _contents(reader.batches(), (epochs,)) == [(0, epochs - 1, 1)]


def test_no_insert_pays_for_a_whole_large_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    worked: list[int] = []
    work = merge_module.Merge.work

    def counted(merge: merge_module.Merge, fuel: int) -> Batch | None:
        before = merge.remaining
        result = work(merge, fuel)
        worked.append(before - merge.remaining)
        return result

    monkeypatch.setattr(merge_module.Merge, "work", counted)
    most = 0
    for epoch in range(800):
        _insert_range(spine, epoch, np.arange(epoch * 1000, epoch * 1000 + 1000), np.empty(0, np.int64))
        reader.set_physical_compaction(Antichain([(epoch + 1,)]))
        most, worked = max(most, sum(worked)), []
    assert most < 60_000
    assert spine.statistics().rows == 800_000


def test_an_entered_trace_is_the_trace_at_inner_counter_zero() -> None:
    spine = Spine(1)
    outer = TraceHandle(spine)
    for epoch in range(4):
        _insert_range(spine, epoch, np.array([epoch, 7]), np.empty(0, np.int64))
    inner = Entered(outer.clone())
    innermost = Entered(inner.clone())
    outer.drop()
    assert inner.depth == 2
    assert inner.upper == Antichain([(4, 0)])
    assert innermost.upper == Antichain([(4, 0, 0)])
    assert _contents(inner.batches(), (2, 5)) == [(0, 0, 1), (1, 0, 1), (2, 0, 1), (7, 0, 3)]
    assert _contents(innermost.batches_through(Antichain([(2, 0, 0)])), (3, 5, 5)) == [(0, 0, 1), (1, 0, 1), (7, 0, 2)]
    assert inner.batches() is inner.batches()
    inner.set_logical_compaction(Antichain([(1, 6), (3, 0)]))
    innermost.drop()
    assert spine.logical == Antichain([(1,)])
    inner.set_physical_compaction(Antichain([(0, 6), (3, 0)]))
    assert spine.physical == Antichain([(3,)])
    assert all(less_equal((1, 0), tuple(time)) for time in inner.upper)
