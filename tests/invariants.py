"""What always holds of the parts of the engine, checked from scratch with a pass over everything.

`check(part)` raises AssertionError, in words, if an invariant does not hold.
"""

from __future__ import annotations

import itertools
from functools import singledispatch
from typing import Any

from differential.trace.batch import Batch
from differential.trace.description import Description
from differential.trace.spine import Spine
from timely.communication.link import Link
from timely.dataflow.ports import OutputPort
from timely.dataflow.schedule import Schedule
from timely.order import Time, less_equal
from timely.progress.antichain import Antichain, MutableAntichain, minimal
from timely.progress.reachability import Tracker


@singledispatch
def check(part: Any) -> None:
    raise TypeError(f"no invariants are known of {part!r}")


@check.register
def _(tracker: Tracker) -> None:
    assert not tracker._pending, "changes are pending although propagation has ended"
    assert not tracker._agenda, "keys are on the agenda although propagation has ended"
    assert tracker._nonzero == sum(map(len, tracker._own)), "the number of pointstamps is wrong"
    recomputed = _frontiers(tracker)
    supports: list[dict[Time, int]] = [{} for _ in tracker._lengths]
    for location, time, count in tracker.pointstamps():
        assert count, f"a count of zero is kept at {tracker._describe(location)} for {time}"
        if count > 0:
            supports[location][time] = 1
    for edge in tracker._edges:
        for element in tracker._fronts[edge.source]:
            if (image := edge.summary.results_in(element)) is not None:
                support = supports[edge.target]
                support[image] = support.get(image, 0) + 1
    for location, support in enumerate(supports):
        name, front = tracker._describe(location), tracker._fronts[location]
        assert tracker._support[location] == support, f"supports at {name} are not what its sources give"
        assert front == minimal(list(support)), f"the frontier at {name} is not the minimal supported times"
        assert set(front) == recomputed[location], f"the frontier at {name} supports itself"
        assert tracker.frontier(location).elements == front, f"the cached frontier at {name} is out of date"


def _frontiers(tracker: Tracker) -> list[set[Time]]:
    """Return the frontiers, computed from the live pointstamps alone by following every path."""
    reached: list[set[Time]] = [set() for _ in tracker._lengths]
    pending = [(location, time) for location, time, count in tracker.pointstamps() if count > 0]
    while pending:
        location, time = pending.pop()
        known = reached[location]
        if any(less_equal(other, time) for other in known):
            continue
        reached[location] = {other for other in known if not less_equal(time, other)} | {time}
        for edge in tracker._edges:
            if edge.source == location and (image := edge.summary.results_in(time)) is not None:
                pending.append((edge.target, image))
    return reached


@check.register
def _(counts: MutableAntichain) -> None:
    assert all(counts._counts.values()), "a count of zero is kept"
    positive = Antichain(time for time, count in counts._counts.items() if count > 0)
    assert counts._frontier == positive, "the frontier is not the minimal times with a positive count"


@check.register
def _(schedule: Schedule) -> None:
    queued = sorted([*schedule._ready, *(-rank for rank in schedule._partway), *schedule._sources])
    assert len(queued) == len(set(queued)), f"an operator is queued twice: {queued}"
    active = [operator.rank for operator in schedule.operators if operator.active]
    assert queued == active, f"operators {queued} are queued, but {active} are marked so"


@check.register
def _(output: OutputPort) -> None:
    assert all(held.output is output for held in output.live), f"{output} counts what is held elsewhere"


@check.register
def _(link: Link) -> None:
    assert 0 <= link.acknowledged <= link.sent, "more bytes are acknowledged than were sent"
    assert 0 <= link.reported <= link.received, "more bytes are reported to the peer than were received"


@check.register
def _(description: Description) -> None:
    lower, upper, since = description.lower, description.upper, description.since
    elements = (*lower.elements, *upper.elements, *since.elements)
    coordinates = {len(time) for time in elements}
    assert len(coordinates) <= 1, f"the times of {description} have different numbers of coordinates"
    assert lower.dominates(upper), f"{description} ends before it begins"


@check.register
def _(batch: Batch) -> None:
    check(batch.description)
    rows, distinct = len(batch), batch.time_count
    assert (len(batch.keys), len(batch.times)) == (rows, distinct), "the columns are not as long as stated"
    for name in ("vals", "time_index", "diffs"):
        assert len(getattr(batch, name)) in (0, rows), f"{name} has neither 0 nor {rows} rows"
    times = [tuple(time) for time in batch.times.tolist()]
    index = batch.time_index.tolist() or [0] * rows
    assert times == sorted(set(times)), "the times are not sorted and distinct"
    assert set(index) == set(range(distinct)), "the times are not those in use"
    assert len(batch.time_index) == 0 or distinct > 1, "one time is spelled out"
    assert len(batch.vals) == 0 or bool(batch.vals.any()), "values that are all 0 are spelled out"
    assert len(batch.diffs) == 0 or bool((batch.diffs != 1).any()), "diffs that are all 1 are spelled out"
    assert bool((batch.diffs != 0).all()), "a diff is 0"
    data = list(zip(batch.keys.tolist(), batch.vals.tolist() or [0] * rows, index))
    assert all(a < b for a, b in itertools.pairwise(data)), "the rows are not sorted and consolidated"
    if batch.since == Antichain([(0,) * batch.depth]):
        outside = [time for time in times if batch.upper.less_equal(time) or not batch.lower.less_equal(time)]
        assert not outside, f"times outside the interval: {outside}"
    at = [index.count(time) for time in range(distinct)]
    assert batch.columns.rows_at.tolist() == at, f"{batch.columns.rows_at} rows at each time are {at}"


@check.register
def _(spine: Spine) -> None:
    lower = spine.origin
    for batch in spine.batches():
        check(batch)
        assert batch.lower == lower, f"{batch} does not begin at {lower}, where the batch before it ends"
        assert batch.since.dominates(spine.logical), f"{batch} is compacted beyond {spine.logical}"
        lower = batch.upper
    assert spine._claims.is_abandoned or lower == spine.upper, f"the batches end at {lower}, not at {spine.upper}"
