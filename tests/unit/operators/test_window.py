"""Tests of `window`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, example, new_input
from differential.data.updates import Updates
from tests.oracle.grid import Multiset, Update, contents, run
from tests.strategies_updates import History, histories
from tests.thorough import examples
from timely import TimelyError, Worker, execute_directly
from timely.errors import BuildError, LateWarning, OperatorError
from timely.order import Time, less_equal

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 4))


def window(updates: list[Update], time: Time, size: int, slide: int, by_event: bool) -> Multiset:
    """Return the contents of a window at a time, by trying each multiple of `slide`."""
    total: Multiset = Counter()
    for record, when, diff in updates:
        happened = record[1] if by_event else when[0]
        first, last = (
            next(n for n in range(100) if n >= each and n % slide == 0) for each in (happened, happened + size)
        )
        if less_equal(when, time) and first <= time[0] < last:
            total[record] += diff
    return Counter({record: count for record, count in total.items() if count})


@settings(max_examples=examples(60), deadline=None)
@given(histories(), SIZES, st.booleans())
def test_a_window_holds_the_recent_records_at_every_time(
    history: History, bounds: tuple[int, int], by_event: bool
) -> None:
    updates, (size, slide) = history.inputs[0], bounds
    if not by_event:
        updates = [(record, time, abs(diff)) for record, time, diff in updates]
    at = (lambda _, value: value) if by_event else None
    changes = run(lambda records: records.window(size, slide, at=at, late=late), updates, **history.run)
    for time in product(range(14), *[range(3)] * (history.outer - 1)):
        assert contents(changes, time) == window(updates, time, size, slide, by_event), time


@pytest.mark.parametrize("at", [None, lambda key, value: value])
@pytest.mark.parametrize("integer", [np.int8, np.int32, np.uint64])
def test_sizes_may_be_integers_of_numpy(integer: Any, at: Callable[..., Any] | None) -> None:
    def recent(of: Any) -> list[Update]:
        return run(lambda records: records.window(of(100), of(50), at=at), [((1, 2), (3,), 1)])

    assert recent(integer) == recent(int) != []


def late(updates: Updates) -> None:
    """Receive late records."""


@settings(max_examples=examples(40), deadline=None)
@given(histories(), SIZES)
def test_records_inserted_after_their_window_has_ended_go_to_late(history: History, bounds: tuple[int, int]) -> None:
    updates, (size, slide) = history.inputs[0], bounds
    found: Counter[Update] = Counter()

    def program(records: Collection) -> Collection:
        return records.window(size, slide, at=lambda _, value: value, late=lambda batch: found.update(batch.rows()))

    run(program, updates, **history.run)
    end = {value: next(n for n in range(100) if n >= value + size and n % slide == 0) for value in range(4)}
    assert found == Counter(
        (record, time, diff) for record, time, diff in updates if diff > 0 and end[record[1]] <= time[0]
    )


def on_line(events: list[tuple[int, int]], **options: Any) -> list[warnings.WarningMessage]:
    """Return the warnings of a window of 2 over (event time, epoch)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        updates = [((event,), (epoch,), 1) for event, epoch in events]
        run(lambda records: records.window(2, at=lambda event: event, name="lately", **options), updates)
    return caught


def test_late_records_are_reported_once_at_the_users_line_and_counted_at_the_end() -> None:
    assert on_line([(0, 0), (1, 2)]) == []
    (only,) = on_line([(0, 0), (1, 3)])
    assert only.category is LateWarning
    assert only.filename == __file__
    assert "lately (built at " in str(only.message)
    assert "the record 1 arrived at (3,), when its window had ended" in str(only.message)
    first, last = on_line([(0, 2), (1, 4), (2, 9), (9, 9)])
    assert "the record 0 arrived at (2,)" in str(first.message)
    assert "on worker 0: 3 records arrived when their windows had ended" in str(last.message)
    assert on_line([(0, 2), (1, 4)], late=late) == []


@pytest.mark.parametrize("workers", [1, 3])
def test_a_removal_without_event_times_is_refused_and_named(workers: int) -> None:
    updates = [((7, "a"), (0,), 1), ((7, "a"), (2,), -1)]
    with pytest.raises(OperatorError, match=r"'lately' failed at time \(2,\).*\(7, 'a'\) is removed.*pass `at`"):
        run(lambda records: records.window(5, name="lately"), updates, workers=workers)
    with_times = [((7, "a", 0), (0,), 1), ((7, "a", 0), (2,), -1)]
    changes = run(lambda records: records.window(5, at=lambda *columns: columns[-1]), with_times, workers=workers)
    assert [len(contents(changes, (epoch,))) for epoch in range(8)] == [1, 1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_record_inserted_and_removed_in_one_epoch_is_in_no_window(workers: int) -> None:
    updates = [((7,), (0,), 1), ((8,), (1,), 1)]
    changes = run(lambda left, right: left.concat(right.negate()).window(2), updates, updates[:1], workers=workers)
    assert changes == [((8,), (1,), 1), ((8,), (3,), -1)]


@pytest.mark.parametrize("workers", [1, 3])
def test_results_computed_from_a_window_follow_it(workers: int) -> None:
    updates = [((key,), (epoch,), 1) for epoch in range(12) for key in {epoch % 2, epoch % 3}]
    changes = run(lambda records: records.window(4).count(), updates, workers=workers)
    for epoch in range(20):
        lately = Counter(key for (key,), (when,), _ in updates if epoch - 4 < when <= epoch)
        assert contents(changes, (epoch,)) == Counter((key, count) for key, count in lately.items())


def test_a_tumbling_window_shows_the_last_complete_one() -> None:
    updates = [((epoch,), (epoch,), 1) for epoch in range(1, 7)]
    changes = run(lambda records: records.window(3, 3), updates)
    shown = [sorted(record for (record,) in contents(changes, (epoch,))) for epoch in range(10)]
    assert shown == [[], [], [], [1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5, 6], [4, 5, 6], [4, 5, 6], []]


@pytest.mark.parametrize(("size", "slide"), [("3", 1), (3, "1"), (2.5, 1), (None, 1), (True, 1), (3, True)])
def test_a_window_of_a_size_that_is_no_whole_number_is_refused(size: Any, slide: Any) -> None:
    with pytest.raises(BuildError, match=r"^window \(at .*\): `(size|slide)` must be a whole number of at least 1"):
        example(lambda scope: Collection.of(scope, 1).window(size, slide))


def test_a_window_of_size_zero_is_refused() -> None:
    with pytest.raises(TimelyError, match=r"`size` must be .* not 0"):
        example(lambda scope: Collection.of(scope, 1).window(0))


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (lambda x: x / 2, r"one integer for each of 2 record\(s\), not float64 of shape \(2,\)"),
        (lambda x: x[:1], r"not int64 of shape \(1,\)"),
        (lambda x: x + (2**63 - 3), "9223372036854775806, is too large"),
        (lambda x: np.uint64(2**63), "9223372036854775808, is too large"),
    ],
)
def test_impossible_event_times_are_refused(at: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(TimelyError, match=words):
        example(lambda scope: Collection.of(scope, np.array([0, 1])).window(1, at=at))


def test_records_that_leave_a_window_later_are_reported_when_they_leave() -> None:
    seen: list[tuple[int, int]] = []

    def program(worker: Worker) -> list[list[tuple[int, int]]]:
        with worker.dataflow() as scope:
            session, records = new_input(scope)
            lately = records.window(3).inspect_batch(
                lambda updates: seen.extend((t, d) for _, (t,), d in updates.rows())
            )
            probe = lately.probe()
        session.insert(7)
        after = []
        for epoch in range(1, 5):
            session.advance_to(epoch)
            worker.step_while(lambda: probe.less_than(session.time))
            after.append(list(seen))
        session.close()
        return after

    assert execute_directly(program) == [[(0, 1)], [(0, 1)], [(0, 1), (3, -1)], [(0, 1), (3, -1)]]
