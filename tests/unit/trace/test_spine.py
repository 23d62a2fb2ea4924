"""The contents of a spine whose readers do not read it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from differential.kernels.compile import Ints, Table
from differential.kernels.times import intern
from differential.trace import merge as merge_module
from differential.trace.batch import Batch
from differential.trace.cursor import accumulate
from differential.trace.description import Description
from differential.trace.handle import TraceHandle
from differential.trace.spine import EFFORT, FEW, LEAST_EFFORT, TINY, Spine
from differential.trace.storage import Storage, is_mapped
from tests.invariants import check
from timely.progress.antichain import Antichain

NOTHING = np.empty(0, np.int64)


def batch_of(rows: int, epoch: int) -> Batch:
    """Return the batch of an epoch that inserts this many records."""
    keys, lower, upper = np.arange(rows), Antichain([(epoch,)]), Antichain([(epoch + 1,)])
    return Batch.build(
        keys, NOTHING, NOTHING, NOTHING, np.array([[epoch]]), Description(lower, upper, Antichain([(0,)]))
    )


@pytest.mark.parametrize("rows", [(600, 600, 600), (600, 10, 10, 10, 10, 10, 600), (10, 600), (0, 600, 0)])
def test_batches_between_which_a_reader_may_cut_are_not_merged(rows: tuple[int, ...]) -> None:
    spine = Spine(1)
    reader, batches = TraceHandle(spine), []
    for epoch, size in enumerate(rows):
        batches.append(spine.insert(batch_of(size, epoch)))
        spine.exert(10_000)
    assert spine.batches() == tuple(batches)
    for epoch in range(len(rows)):
        assert reader.batches_through(Antichain([(epoch + 1,)])) == tuple(batches[: epoch + 1])


@pytest.mark.parametrize("rows", [(1000, 1000), (1000, 1000, 1000, 1000)])
def test_layers_are_merged_when_the_reader_that_might_cut_between_them_advances(rows: tuple[int, ...]) -> None:
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
    check(spine)
    assert spine.statistics()[:3] == (1, 0, sum(rows))


def test_an_epoch_without_changes_after_a_merge_that_is_under_way_becomes_part_of_it() -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    reader.set_physical_compaction(Antichain())
    for epoch, rows in enumerate((5000, 5000, 0, 0)):
        spine.insert(batch_of(rows, epoch))
        check(spine)
    assert spine.statistics()[:2] == (1, 1)
    assert [batch.upper for batch in spine.batches()] == [Antichain([(1,)]), Antichain([(4,)])]
    while spine.exert(1000):
        pass
    check(spine)
    assert [(len(batch), batch.upper) for batch in spine.batches()] == [(10_000, Antichain([(4,)]))]


def test_epochs_without_changes_leave_nothing_behind_even_if_no_reader_looks() -> None:
    spine = Spine(1)
    reader = TraceHandle(spine)
    least = Antichain([(0,)])
    first = Batch.build(
        np.arange(3), NOTHING, NOTHING, NOTHING, np.array([[0]]), Description(least, Antichain([(1,)]), least)
    )
    spine.insert(first)
    for epoch in range(1, 100):
        spine.insert(Batch.empty(Description(Antichain([(epoch,)]), Antichain([(epoch + 1,)]), least), 1))
        assert spine.statistics().layers <= 2
        assert reader.batches_through(Antichain([(1,)])) == (first,)
        assert reader.batches_through(Antichain([(epoch,)]))[:1] == (first,)
        check(spine)


def test_an_observer_and_a_watch_receive_every_merge_that_is_done_in_steps() -> None:
    class Ledger:
        """The batches of the spine, according to the calls received."""

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
    spine.watch = lambda batch: watched.append(batch.keys)
    reader, least = TraceHandle(spine), Antichain([(0,)])
    for epoch in range(12):
        upper = Antichain([(epoch + 1,)])
        keys = np.arange(3000 // (epoch + 1)) * 100 + epoch
        spine.insert(
            Batch.build(
                keys, NOTHING, NOTHING, NOTHING, np.array([[epoch]]), Description(Antichain([(epoch,)]), upper, least)
            )
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


def test_an_observer_receives_the_merges_of_small_layers_when_many_rows_arrive() -> None:
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


def test_every_layer_unites_times_that_have_become_equal_even_if_nothing_is_merged() -> None:
    spine = Spine(1)
    reader, least = TraceHandle(spine), Antichain([(0,)])
    for epoch, rows in ((0, 4000), (10, 900), (20, 100)):
        lower, upper = Antichain([(epoch,)]), Antichain([(epoch + 10,)])
        times, index = np.array([[epoch], [epoch + 1]]), np.arange(rows) % 2
        spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, Description(lower, upper, least)))
    assert [len(batch.times) for batch in spine.batches()] == [2, 2, 2]
    reader.set_logical_compaction(Antichain([(30,)]))
    for _ in range(20):
        spine.exert(5000)
    assert [(len(batch), len(batch.times)) for batch in spine.batches()] == [(4000, 1), (900, 1), (100, 1)]
    assert spine.statistics().moved == 5000
    check(spine)


@pytest.mark.parametrize(("distinct", "left"), [(100, 13), (63, 8)])
def test_a_layer_of_many_times_is_compacted_before_as_many_rows_are_inserted_as_it_has(
    distinct: int, left: int
) -> None:
    spine, rows = Spine(1), 20_000
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(100,)])
    times, index = np.arange(distinct)[:, None], np.arange(rows) % distinct
    spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, Description(least, end, least)))
    since = distinct - left
    reader.set_logical_compaction(Antichain([(since,)]))
    for _ in range(40):
        spine.exert(40)
    assert len(spine.batches()[0].times) == distinct  # too many times can still be distinguished
    reader.set_logical_compaction(Antichain([(since + 1,)]))
    for _ in range(40):
        spine.exert(40)
    few = left - 1 if distinct == 100 else distinct
    assert [(len(batch), len(batch.times)) for batch in spine.batches()] == [(rows, few)]
    assert spine.statistics().moved == (rows if few < distinct else 0)
    check(spine)


@pytest.mark.parametrize(("distinct", "inserts"), [(100, 8), (4, 1000)])
def test_a_layer_is_compacted_at_once_only_if_it_has_many_times(distinct: int, inserts: int) -> None:
    spine, rows = Spine(1), 20_000
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(distinct,)])
    times, index = np.arange(distinct)[:, None], np.arange(rows) % distinct
    spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, Description(least, end, least)))
    reader.set_logical_compaction(end)
    spine.exert(20_001)
    worked = 0
    while len(spine.batches()[0].times) > 1:
        spine.exert(20)
        worked += 1
    assert inserts / 2 < worked <= inserts


@pytest.mark.interpreted
def test_the_more_times_a_layer_has_the_less_often_they_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    spine, rows, distinct = Spine(1), 20_000, 5000
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(distinct,)])
    times, index = np.arange(distinct)[:, None], np.arange(rows) % distinct
    spine.insert(Batch.build(np.arange(rows), NOTHING, index, NOTHING, times, Description(least, end, least)))
    looks: list[int] = []

    def interned(times: Table) -> tuple[Table, Ints]:
        looks.append(len(times))
        return intern(times)

    monkeypatch.setattr("differential.trace.classes.intern", interned)
    for _ in range(300):
        spine.exert(40)
    assert looks == [distinct] * 2
    assert reader.logical == least


def test_a_layer_of_one_time_does_not_prevent_the_compaction_of_another() -> None:
    spine = Spine(1)
    reader, least, end = TraceHandle(spine), Antichain([(0,)]), Antichain([(10,)])
    spine.insert(batch_of(4000, 0))
    times, index = np.array([[1], [2]]), np.arange(900) % 2
    spine.insert(
        Batch.build(np.arange(900), NOTHING, index, NOTHING, times, Description(Antichain([(1,)]), end, least))
    )
    reader.set_logical_compaction(end)
    for _ in range(20):
        spine.exert(5000)
    assert [len(batch.times) for batch in spine.batches()] == [1, 1]


def test_layers_most_of_whose_times_can_be_distinguished_are_not_compacted() -> None:
    spine = Spine(1)
    reader, least = TraceHandle(spine), Antichain([(0,)])
    times, index = np.arange(10)[:, None], np.arange(1000) % 10
    batch = Batch.build(np.arange(1000), NOTHING, index, NOTHING, times, Description(least, Antichain([(10,)]), least))
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
        spine.insert(Batch.build(*columns, Description(Antichain([(epoch,)]), upper, least)))
        reader.set_logical_compaction(upper)
        reader.set_physical_compaction(upper)
    statistics = spine.statistics()
    assert statistics.rows == statistics.inserted == epochs * rows
    assert 2 * statistics.inserted <= statistics.moved <= statistics.inserted * np.log2(epochs)
    assert statistics.layers <= np.log2(epochs)


ROWS = 200_000


def purged(rows: int = ROWS, storage: Storage | None = None) -> tuple[Spine, TraceHandle]:
    """Return a spine in which `rows` rows are inserted and then removed, and its reader, which allows no compaction."""
    spine = Spine(1) if storage is None else Spine(1, storage)
    reader, least = TraceHandle(spine), Antichain([(0,)])
    spine.insert(batch_of(rows, 0))
    keys, removed = np.arange(rows), np.full(rows, -1)
    bounds = Antichain([(1,)]), Antichain([(2,)])
    spine.insert(Batch.build(keys, NOTHING, NOTHING, removed, np.array([[1]]), Description(*bounds, least)))
    assert spine.statistics().rows == 2 * rows
    return spine, reader


def advance(reader: TraceHandle, epoch: int) -> None:
    reader.allow_compaction(Antichain([(epoch,)]))


def insert_nothing(spine: Spine) -> None:
    (epoch,) = spine.upper.elements[0]
    spine.insert(Batch.empty(Description(spine.upper, Antichain([(epoch + 1,)]), Antichain([(0,)])), 1))


class Work:
    """The number of rows that merges read or settle, and of merges."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        work = merge_module.Merge.work

        def counted(merge: merge_module.Merge, fuel: int) -> Batch | None:
            before = merge.remaining
            result = work(merge, fuel)
            self.rows += abs(before - merge.remaining)
            return result

        monkeypatch.setattr(merge_module.Merge, "work", counted)

    def taken(self) -> int:
        rows, self.rows = self.rows, 0
        return rows


@pytest.mark.interpreted
def test_a_purged_trace_holds_few_rows_after_epochs_without_changes_none_of_which_costs_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spine, reader = purged()
    work, most = Work(monkeypatch), 0
    for epoch in range(2, 502):
        advance(reader, epoch)
        insert_nothing(spine)
        most = max(most, work.taken())
    assert (spine.statistics().layers, spine.statistics().rows) == (2, 0)  # the reader may cut before the last epoch
    assert LEAST_EFFORT <= most <= 2 * LEAST_EFFORT
    check(spine)


@pytest.mark.interpreted
def test_a_purged_trace_holds_few_rows_after_some_idle_steps_and_then_stays_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spine, reader = purged()
    assert not spine.tend()
    advance(reader, 2)
    work, steps, most = Work(monkeypatch), 0, 0
    while spine.tend():
        steps, most = steps + 1, max(most, work.taken())
    assert spine.statistics()[:3] == (1, 0, 0)
    assert 2 * ROWS / LEAST_EFFORT <= steps <= 4 * ROWS / LEAST_EFFORT
    assert most <= 2 * LEAST_EFFORT
    assert not spine.tend()
    check(spine)


@pytest.mark.interpreted
def test_a_purged_trace_into_which_single_rows_are_inserted_holds_few_rows_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spine, reader = purged()
    work, most, inserts = Work(monkeypatch), 0, 2 * ROWS // (EFFORT * TINY)
    for epoch in range(2, 2 + inserts + 200):
        advance(reader, epoch)
        key, bounds = np.array([ROWS + epoch]), (Antichain([(epoch,)]), Antichain([(epoch + 1,)]))
        spine.insert(
            Batch.build(key, NOTHING, NOTHING, NOTHING, np.array([[epoch]]), Description(*bounds, Antichain([(0,)])))
        )
        most = max(most, work.taken())
    assert spine.statistics().rows == inserts + 200
    assert most <= 2 * LEAST_EFFORT


def test_rows_whose_times_have_become_equal_are_merged_even_if_most_times_differ() -> None:
    rows, times = 40_000, np.arange(100)[:, None]
    keys, index = np.repeat(np.arange(rows // 2), 2), np.tile([0, 1], rows // 2)
    index[-98:] = np.arange(2, 100)
    diffs = np.tile([1, -1], rows // 2)
    least, upper = Antichain([(0,)]), Antichain([(100,)])
    spine = Spine(1)
    reader = TraceHandle(spine)
    spine.insert(Batch.build(keys, NOTHING, index, diffs, times, Description(least, upper, least)))
    assert not spine.tend()
    reader.set_logical_compaction(Antichain([(1,)]))
    while spine.tend():
        pass
    assert spine.statistics().rows == 98
    assert len(spine.batches()[0].times) == 98
    check(spine)


@pytest.mark.parametrize("distinct", [3, 100])
def test_times_of_few_rows_do_not_cause_a_compaction(distinct: int) -> None:
    rows = 20_000
    index = np.zeros(rows, np.int64)
    index[: rows // 10] = np.arange(rows // 10) % (distinct - 1) + 1
    least, upper = Antichain([(0,)]), Antichain([(distinct,)])
    batch = Batch.build(
        np.arange(rows), NOTHING, index, NOTHING, np.arange(distinct)[:, None], Description(least, upper, least)
    )
    spine = Spine(1)
    reader = TraceHandle(spine)
    spine.insert(batch)
    advance(reader, distinct)
    while spine.tend():
        pass
    assert spine.batches() == (batch,)


def test_contents_that_a_reader_may_request_are_kept_until_it_advances_or_is_dropped() -> None:
    spine, slow = purged(20_000)
    quick, late = slow.clone(), slow.clone()
    advance(quick, 2)
    while spine.tend():
        pass
    assert spine.statistics()[:3] == (2, 0, 40_000)
    advance(slow, 1)
    while spine.tend():
        pass
    assert len(accumulate(late.batches(), (0,))[0]) == 20_000
    assert [len(batch) for batch in late.batches_through(Antichain([(1,)]))] == [20_000]
    late.set_physical_compaction(Antichain([(2,)]))
    while spine.tend():
        pass
    assert len(accumulate(late.batches(), (0,))[0]) == 20_000
    assert spine.statistics().rows == 40_000
    late.drop()
    slow.set_physical_compaction(Antichain([(2,)]))
    while spine.tend():
        pass
    assert spine.statistics()[:3] == (1, 0, 0)
    slow.drop()
    quick.drop()
    assert not spine.tend()
    assert not spine.batches()


def test_a_forgotten_reader_does_not_prevent_upkeep() -> None:
    spine, reader = purged(20_000)
    other = reader.clone()
    advance(reader, 2)
    assert not spine.tend()
    requests: list[None] = []
    spine.wake = lambda: requests.append(None)
    del other
    assert requests == [None]
    while spine.tend():
        pass
    assert spine.statistics().rows == 0


@pytest.mark.interpreted
def test_a_reader_forgotten_during_the_last_piece_of_upkeep_leaves_work(monkeypatch: pytest.MonkeyPatch) -> None:
    spine, reader = purged(20_000)
    others = [reader.clone()]
    advance(reader, 2)
    tend = spine._tend

    def interrupted() -> bool:
        is_tended = tend()
        others.clear()  # as if Python's garbage collector had found the reader
        return is_tended

    monkeypatch.setattr(spine, "_tend", interrupted)
    while spine.tend():
        pass
    assert spine.statistics().rows == 0


def test_a_trace_requests_upkeep_once_until_there_is_nothing_to_do() -> None:
    requests: list[None] = []
    spine, reader = purged(20_000)
    spine.wake = lambda: requests.append(None)
    advance(reader, 1)
    advance(reader, 2)
    insert_nothing(spine)
    assert len(requests) == 1
    while spine.tend():
        advance(reader, spine.upper.elements[0][0])
        assert len(requests) == 1
    assert not spine.tend()
    assert len(requests) == 1
    advance(reader, 7)
    assert len(requests) == 2


def test_a_trace_in_files_is_maintained() -> None:
    spine, reader = purged(20_000, Storage(above=1 << 12))
    kept = spine.batches()
    assert all(is_mapped(batch.keys) for batch in kept)
    advance(reader, 1)
    reader.set_physical_compaction(Antichain([(2,)]))
    while spine.tend():
        pass
    assert spine.statistics()[:3] == (1, 0, 0)


def test_with_upkeep_after_each_small_change_each_row_moves_logarithmically_often() -> None:
    spine, rows, epochs = Spine(1), 20_000, 3000
    reader = TraceHandle(spine)
    spine.insert(batch_of(rows, 0))
    moved = spine.statistics().moved
    draw = np.random.default_rng(5)
    for epoch in range(1, epochs):
        advance(reader, epoch)
        size = int(draw.choice([1, 3, 100]))
        keys, diffs = draw.choice(rows, size, replace=False), draw.choice([-1, 1], size)
        bounds = Antichain([(epoch,)]), Antichain([(epoch + 1,)])
        spine.insert(
            Batch.build(keys, NOTHING, NOTHING, diffs, np.array([[epoch]]), Description(*bounds, Antichain([(0,)])))
        )
        while spine.tend():
            pass
    statistics = spine.statistics()
    assert statistics.inserted > 5 * rows
    assert statistics.moved - moved <= statistics.inserted * np.log2(statistics.inserted)
    check(spine)


@pytest.mark.interpreted
def test_layers_that_a_late_reader_kept_apart_are_merged_a_bounded_number_of_rows_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spine, epochs = Spine(1), 400
    reader = TraceHandle(spine)
    for epoch in range(epochs):
        spine.insert(batch_of(TINY + 1 + epoch % 100, epoch))
    assert spine.statistics().layers == epochs
    advance(reader, epochs)
    work = Work(monkeypatch)
    moved, steps, most = spine.statistics().moved, 0, 0
    while spine.tend():
        now = spine.statistics()
        steps, most = steps + 1, max(most, work.taken(), now.moved - moved if not now.merging else 0)
        moved = now.moved
    assert most <= 2 * LEAST_EFFORT + FEW
    assert spine.statistics().layers <= 3
    check(spine)
