"""What a reader may and may not do."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from differential.kernels.compile import NOTHING
from differential.trace.as_of import AsOf
from differential.trace.batch import Batch
from differential.trace.claims import Claim
from differential.trace.description import Description
from differential.trace.entered import Entered
from differential.trace.handle import TraceHandle
from differential.trace.reader import TraceReader
from differential.trace.spine import Spine
from tests.invariants import check
from timely.errors import TimelyError
from timely.progress.antichain import Antichain


def _at(epoch: int) -> Antichain:
    return Antichain([(epoch,)])


@pytest.fixture
def spine() -> Spine:
    spine = Spine(1)
    for epoch in range(3):
        _insert(spine, epoch)
    return spine


def _insert(spine: Spine, epoch: int) -> None:
    columns = np.array([epoch]), NOTHING, NOTHING, NOTHING, np.array([[epoch]])
    spine.insert(Batch.build(*columns, Description(_at(epoch), _at(epoch + 1), _at(0))))


def test_a_batch_that_leaves_a_gap_is_refused(spine: Spine) -> None:
    with pytest.raises(AssertionError, match="does not follow"):
        _insert(spine, 4)


def test_frontiers_of_a_reader_do_not_go_back(spine: Spine) -> None:
    handle = TraceHandle(spine)
    handle.set_logical_compaction(_at(2))
    handle.set_physical_compaction(_at(2))
    with pytest.raises(AssertionError, match="again"):
        handle.set_logical_compaction(_at(1))
    with pytest.raises(AssertionError, match="again"):
        handle.set_physical_compaction(_at(1))


def test_the_slowest_reader_decides(spine: Spine) -> None:
    fast, slow = TraceHandle(spine), TraceHandle(spine)
    fast.set_logical_compaction(_at(3))
    assert spine.logical == _at(0)
    slow.set_logical_compaction(_at(2))
    assert spine.logical == _at(2)
    slow.drop()
    assert spine.logical == _at(3)


def test_both_frontiers_can_be_moved_at_once(spine: Spine) -> None:
    plain, inner = TraceHandle(spine), Entered(TraceHandle(spine))
    for handle, frontier in (
        (plain, _at(1)),
        (inner, Antichain([(1, 0)])),
        (plain, _at(2)),
        (inner, Antichain([(2, 0)])),
    ):
        handle.allow_compaction(frontier)
        assert (handle.logical, handle.physical) == (frontier, frontier)
    plain.set_logical_compaction(_at(3))
    plain.allow_compaction(_at(3))
    assert (spine.logical, spine.physical, plain.physical) == (_at(2), _at(2), _at(3))
    with pytest.raises(AssertionError, match="again"):
        plain.allow_compaction(_at(2))


def test_cuts_that_a_reader_may_still_request_are_kept(spine: Spine) -> None:
    handle, other = TraceHandle(spine), TraceHandle(spine)
    other.set_physical_compaction(_at(3))
    for epoch in range(3, 40):
        _insert(spine, epoch)
    assert [len(handle.batches_through(_at(epoch))) for epoch in range(40)] == list(range(40))
    handle.set_physical_compaction(_at(40))
    other.set_physical_compaction(_at(40))
    spine.exert(1)
    assert len(handle.batches()) == 1


def test_a_released_cut_is_refused(spine: Spine) -> None:
    handle = TraceHandle(spine)
    handle.set_physical_compaction(_at(2))
    with pytest.raises(TimelyError, match="released cuts"):
        handle.batches_through(_at(1))


def test_a_cut_inside_a_batch_is_refused() -> None:
    spine = Spine(1)
    columns = np.array([1]), NOTHING, NOTHING, NOTHING, np.array([[1]])
    spine.insert(Batch.build(*columns, Description(_at(0), _at(3), _at(0))))
    with pytest.raises(TimelyError, match="inside"):
        TraceHandle(spine).batches_through(_at(1))


def test_a_cut_that_the_trace_has_not_reached_is_refused(spine: Spine) -> None:
    with pytest.raises(TimelyError, match="only the updates up to"):
        TraceHandle(spine).batches_through(_at(4))


def test_a_dropped_handle_reports_that_it_is_dropped(spine: Spine) -> None:
    handle = TraceHandle(spine)
    handle.drop()
    handle.drop()
    for use in (handle.batches, handle.clone):
        with pytest.raises(TimelyError, match="was dropped"):
            use()


def test_a_forgotten_handle_holds_nothing_back(spine: Spine) -> None:
    kept = TraceHandle(spine)
    forgotten = TraceHandle(spine)
    kept.set_logical_compaction(_at(2))
    assert spine.logical == _at(0)
    del forgotten
    gc.collect()
    assert spine.logical == _at(2)


def test_a_handle_forgotten_before_there_are_batches_holds_nothing_back() -> None:
    spine = Spine(1)
    kept, forgotten = TraceHandle(spine), TraceHandle(spine)
    kept.set_logical_compaction(_at(2))
    del forgotten
    gc.collect()
    assert spine.logical == _at(2)


class Collecting:
    """An observer that does what the garbage collector might do at that moment."""

    def __init__(self, forgotten: list[TraceHandle]) -> None:
        self.forgotten = forgotten
        self.events: list[str] = []

    def inserted(self, batch: Batch) -> None:
        self.forgotten.clear()
        self.events.append("inserted")

    def merged(self, sources: Sequence[Batch], result: Batch) -> None:
        self.events.append("merged")

    def dropped(self, batches: Sequence[Batch]) -> None:
        self.events.append(f"dropped {len(batches)}")


def test_a_reader_found_to_be_forgotten_while_a_batch_is_inserted_is_released_afterwards() -> None:
    spine = Spine(1)
    spine.observer = observer = Collecting([TraceHandle(spine)])
    _insert(spine, 0)
    assert observer.events == ["inserted", "dropped 1"]
    assert spine.readers == spine.statistics().layers == 0


class Counting(Collecting):
    """An observer that counts the readers at that moment."""

    def __init__(self, spine: Spine, forgotten: list[TraceHandle]) -> None:
        super().__init__(forgotten)
        self._spine = spine
        self.counts: list[int] = []

    def inserted(self, batch: Batch) -> None:
        super().inserted(batch)
        self.counts.append(self._spine.readers)


def test_a_forgotten_reader_is_no_longer_counted_and_a_dropped_one_is_released_only_once() -> None:
    spine = Spine(1)
    kept, dropped = TraceHandle(spine), TraceHandle(spine)
    dropped.drop()
    spine.observer = observer = Counting(spine, [TraceHandle(spine), dropped])
    del dropped
    _insert(spine, 0)
    assert observer.counts == [1]
    assert spine.readers == 1
    assert kept.logical == _at(0)


def test_a_reader_found_to_be_forgotten_in_another_thread_is_released_by_the_spines_own(spine: Spine) -> None:
    kept, forgotten = TraceHandle(spine), [TraceHandle(spine)]
    kept.set_logical_compaction(_at(2))
    thread = threading.Thread(target=forgotten.clear)
    thread.start()
    thread.join()
    assert spine.logical == _at(0)
    _insert(spine, 3)
    assert spine.logical == _at(2)


def test_readers_may_be_found_to_be_forgotten_while_frontiers_are_met() -> None:
    spine = Spine(1)
    _insert(spine, 0)
    kept = TraceHandle(spine)
    thresholds = gc.get_threshold()
    try:
        for often in range(1, 40):
            for _ in range(10):
                forgotten: list[object] = [kept.clone()]
                forgotten.append(forgotten)
            del forgotten
            gc.set_threshold(often)
            assert spine.logical == spine.physical == _at(0)
            gc.set_threshold(*thresholds)
    finally:
        gc.set_threshold(*thresholds)


def test_without_readers_nothing_is_kept(spine: Spine) -> None:
    TraceHandle(spine).drop()
    assert spine.statistics().rows == 0
    _insert(spine, 3)
    assert spine.statistics().rows == 0
    assert spine.upper == _at(4)


def test_a_table_is_kept_for_the_same_batches(spine: Spine) -> None:
    handle = TraceHandle(spine)
    batches = handle.batches()
    table = handle.table(batches)
    assert handle.table(batches) is table
    assert len(table) == len(batches)


def test_batches_stay_valid_after_merging(spine: Spine) -> None:
    handle = TraceHandle(spine)
    before = handle.batches()
    handle.set_physical_compaction(_at(3))
    for epoch in range(3, 60):
        _insert(spine, epoch)
        handle.set_physical_compaction(_at(epoch + 1))
    for batch in before:
        check(batch)
    assert [batch.keys.tolist() for batch in before] == [[0], [1], [2]]


def test_a_repeated_cut_is_of_the_present_batches(spine: Spine) -> None:
    handle = TraceHandle(spine)
    for epoch in range(3, 13):
        _insert(spine, epoch)
    handle.set_logical_compaction(_at(10))
    handle.set_physical_compaction(_at(10))
    before = handle.batches_through(_at(10))
    _insert(spine, 13)
    after = handle.batches_through(_at(10))
    assert len(after) < len(before)
    assert all(batch in spine.batches() for batch in after)


def test_a_dropped_reader_is_not_consulted(spine: Spine) -> None:
    handle = TraceHandle(spine)
    handle.drop()
    for ask in (handle.batches, lambda: handle.batches_through(_at(3)), handle.clone):
        with pytest.raises(TimelyError, match="dropped"):
            ask()


def test_a_cut_two_loops_deep_is_at_counters_of_zero(spine: Spine) -> None:
    inner = Entered(Entered(TraceHandle(spine)))
    for frontier in ([(2, 0, 0)], [(1, 0, 3), (2, 0, 0)], [(1, 4, 0), (2, 0, 0)]):
        assert [batch.keys.tolist() for batch in inner.batches_through(Antichain(frontier))] == [[0], [1]]


def test_a_reader_as_of_a_frontier_takes_promises_about_earlier_times_as_promises_about_the_frontier(
    spine: Spine,
) -> None:
    reader = AsOf.of(TraceHandle(spine), _at(2))
    reader.set_logical_compaction(_at(1))
    assert reader.logical == _at(2)
    reader.set_logical_compaction(_at(3))
    assert reader.logical == _at(3)


def test_a_reader_as_of_a_frontier_releases_no_cut_beyond_what_it_has_received(spine: Spine) -> None:
    reader = AsOf.of(TraceHandle(spine), _at(0))
    for batch in spine.batches():
        reader.receive(batch)
    _insert(spine, 3)
    reader.set_physical_compaction(_at(4))
    assert reader.physical == _at(3)


def test_a_reader_as_of_a_frontier_sees_the_batches_received_and_each_is_made_once(spine: Spine) -> None:
    reader = AsOf.of(TraceHandle(spine), _at(2))
    assert reader.batches() == ()
    shown = [reader.receive(batch) for batch in spine.batches()]
    assert [batch.times.tolist() for batch in shown] == [[[2]], [[2]], [[2]]]
    seen = reader.batches()
    assert [batch.keys.tolist() for batch in seen] == [[0], [1], [2]]
    assert [batch.times.tolist() for batch in seen] == [[[2]], [[2]], [[2]]]
    _insert(spine, 3)
    reader.receive(spine.batches()[-1])
    assert all(before is after for before, after in zip(seen, reader.batches()))


def test_a_reader_two_scopes_further_in_sees_two_more_coordinates(spine: Spine) -> None:
    handle = Entered(Entered(TraceHandle(spine)))
    assert [batch.depth for batch in handle.batches()] == [3, 3, 3]
    handle.set_logical_compaction(Antichain([(1, 0, 0)]))
    assert handle.logical == Antichain([(1, 0, 0)])


@pytest.mark.parametrize("levels", [1, 2])
def test_a_promise_made_in_an_inner_scope_is_about_the_outer_coordinates(levels: int) -> None:
    handle: TraceReader = TraceHandle(Spine(3))
    for _ in range(levels):
        handle = Entered(handle)
    handle.set_logical_compaction(Antichain([(4, 1, 2, *[7] * levels), (5, 0, 1, *[3] * levels)]))
    assert handle.logical == Antichain([(4, 1, 2, *[0] * levels), (5, 0, 1, *[0] * levels)])


@pytest.mark.interpreted
def test_a_reader_that_ctrl_c_kept_from_being_made_is_forgotten_in_silence(
    spine: Spine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*frontiers: Antichain) -> Claim:
        raise KeyboardInterrupt

    errors: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    monkeypatch.setattr("differential.trace.handle.Claim", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TraceHandle(spine)
    gc.collect()
    monkeypatch.undo()
    assert errors == []
    handle = TraceHandle(spine)
    del handle
    assert spine.readers == 0
