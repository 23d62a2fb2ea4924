"""Could-result-in: from live pointstamps to the frontier of every location.

A pointstamp is a location and a time: a message queued at an input, or a capability held at an output. Pointstamp
(l1, t1) could-result-in (l2, t2) if some path summary s from l1 to l2 has s(t1) ≤ t2. The frontier of l is the
antichain of the minimal s(t) over all live pointstamps and all paths to l. `Tracker` maintains it by these invariants:

    own(l, t)     = the sum of the reported differences; the pointstamp is live while this is positive
    support(l, t) = [own(l, t) > 0] + the number of edges (k, l, s) and f in frontier(k) with s(f) = t
    frontier(l)   = the minimal times t with support(l, t) > 0

A negative count does not lower the support: a consumption that is counted before its production must not hide what is
upstream.

**Propagation.** What travels along edges are changes of frontiers, `-f` and `+f`. At the target they change supports,
and these may change its frontier. Changes are settled in the order of the key of `timely.progress.cycles`, which
strictly increases along every edge. Hence:

- Whatever is settled is final: no later step changes a support at the same key or a smaller one. So each pair of
  location and key is settled once.
- A loop that loses its last pointstamp does not count through its own echo (`-0 +1 -1 +2 ...`): the echo `+1` is
  cancelled before its turn comes.
- Propagation ends, since it passes on only supports that differ between the old fixed point and the new one.

All changes with one key are settled together: the pair `-t +t'` outside loops, all epochs of one iteration inside.

The cost is proportional to the frontiers that change and the edges that leave them. An element that leaves a frontier
also costs the logarithm of the number of distinct times supported at that location, where times have one coordinate,
and a pass over these times where they have several. Times must have the right lengths, and loop
counters must not be negative; neither is checked here.

>>> tracker = Tracker([1, 1], [Edge(0, 1, PathSummary.identity(1))])
>>> tracker.update(0, (3,), 1)
>>> tracker.propagate()
[0, 1]
>>> tracker.frontier(1)
Antichain([(3,)])
>>> tracker.update(0, (3,), -1), tracker.update(0, (4,), 1), tracker.propagate()
(None, None, [0, 1])
>>> tracker.holders(1, (9,))
[(0, (4,), 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from timely.errors import BuildError
from timely.order import LIMIT, Time, less_equal
from timely.progress.antichain import CLOSED, Antichain, is_among, minimal
from timely.progress.cycles import Position, positions
from timely.progress.due import Agenda, Due
from timely.progress.earliest import FEW, appear, earliest
from timely.progress.graph import Edge, leads_within, summaries_to
from timely.progress.summary import PathSummary

Key = tuple[int, ...]
Image = Callable[[Time], Time | None]
Outgoing = tuple[Image | None, Key, Callable[[Time], Key] | None]


class Tracker:
    """The frontiers of all locations of one dataflow, maintained as its pointstamps come and go.

    Here location 0 is outside of a loop, and 1 inside. A message in round 2 holds back what comes after it.

    >>> tracker = Tracker([1, 2], [Edge(0, 1, PathSummary.enter(1)), Edge(1, 1, PathSummary.feedback(2))])
    >>> tracker.update_all([(0, (5,), 1), (1, (4, 2), 1)])
    >>> tracker.propagate(), tracker.frontier(0), tracker.frontier(1)
    ([0, 1], Antichain([(5,)]), Antichain([(4, 2), (5, 0)]))
    >>> tracker.holders(1, (4, 9)), tracker.holders(1, (5, 1))
    ([(1, (4, 2), 1)], [(0, (5,), 1)])
    >>> tracker.update(1, (4, 2), -1)
    >>> tracker.propagate(), tracker.frontier(1), tracker.pointstamps()
    ([1], Antichain([(5, 0)]), [(0, (5,), 1)])
    """

    def __init__(
        self,
        lengths: Sequence[int],
        edges: Iterable[Edge],
        describe: Callable[[int], str] = str,
        due: Due | None = None,
    ) -> None:
        """Track a graph whose location `l` has times of `lengths[l]` coordinates; set `due` when there are updates.

        Raises `CycleError` if a cycle does not advance time, and `BuildError` if a summary does not fit the lengths.
        Both errors name locations by `describe`.
        """
        self.due = due or Due(Agenda(), 0)
        self._lengths = tuple(lengths)
        self._edges = list(dict.fromkeys(edges))
        self._describe = describe
        for edge in self._edges:
            self._check(edge)
        places = positions(len(lengths), self._edges, describe)
        self._constant_keys = [place.components if not place.coordinates else () for place in places]
        self._keys = [_key(place) for place in places]
        # The ranks are 0 to n - 1 in some order, so sorting the locations by rank inverts them.
        ranks = [place.rank for place in places]
        self._by_rank = sorted(range(len(ranks)), key=ranks.__getitem__)
        self._outgoing: list[list[Outgoing]] = [[] for _ in lengths]
        for edge in self._edges:
            image = _image(edge.summary, self._lengths[edge.source])
            target = edge.target
            self._outgoing[edge.source].append((image, self._constant_keys[target], self._keys[target]))
        self._buffer: list[tuple[int, Time, int]] = []
        self._own: list[dict[Time, int]] = [{} for _ in lengths]
        self._nonzero = 0  # pointstamps in `_own`
        self.revision = 0
        """Increases with each propagation that had updates to apply."""
        self._support: list[dict[Time, int]] = [{} for _ in lengths]
        self._heaps: list[list[Time]] = [[] for _ in lengths]  # see `timely.progress.earliest`
        self._fronts: list[tuple[Time, ...]] = [() for _ in lengths]
        self._frontiers: list[Antichain | None] = [CLOSED for _ in lengths]  # None: to be made when somebody asks
        # Changes of support to be settled, by key. The heap holds the same keys. A key belongs to one location.
        self._pending: dict[Key, dict[Time, int]] = {}
        self._agenda: list[Key] = []

    def update(self, location: int, time: Time, diff: int) -> None:
        """Record that the count of a pointstamp changed by `diff`. Takes effect with the next `propagate`."""
        self._buffer.append((location, time, diff))
        if not self.due.is_set:
            self.due.set()

    def update_all(self, changes: Iterable[tuple[int, Time, int]]) -> None:
        """Record many changes, which take effect together."""
        self._buffer.extend(changes)
        if not self.due.is_set:
            self.due.set()

    def propagate(self) -> list[int]:
        """Apply the recorded updates; return the locations whose frontier is different from before."""
        if not self._buffer:
            return []
        self.revision += 1
        self._absorb()
        agenda, pending, by_rank, fronts = self._agenda, self._pending, self._by_rank, self._fronts
        supports, heaps, outgoing = self._support, self._heaps, self._outgoing
        before: dict[int, tuple[Time, ...]] = {}
        while agenda:
            key = heappop(agenda)
            location = by_rank[key[-1]]  # a key ends with the rank of its location, which no other location has
            old = fronts[location]
            new = _settle(supports[location], old, pending.pop(key), heaps[location])
            if new is old:
                continue  # `_settle` returns `old` itself if the frontier is unchanged
            if location not in before:
                before[location] = old
            fronts[location] = new
            lost, gained = old, new  # they differ, so if each has one element at most, they have none in common
            if len(old) > 1 or len(new) > 1:
                lost, gained = _without(old, new), _without(new, old)
            # Keys increase along edges. What enters or leaves the frontier here is at or after a time whose support
            # has just changed, so its key is at least `key`, and that of its image is larger: nothing that has been
            # settled changes again.
            for edge in outgoing[location]:
                for time in lost:
                    self._pass_on(edge, time, -1)
                for time in gained:
                    self._pass_on(edge, time, 1)
        # In a loop a location is settled once for each of several keys, so its frontier may have changed and returned.
        changed = [location for location, old in before.items() if fronts[location] != old]
        for location in changed:
            self._frontiers[location] = None
        return changed

    def _pass_on(self, edge: Outgoing, time: Time, diff: int) -> None:
        """Change the support of what `time` results in at the end of an edge."""
        image, constant_key, key_of = edge
        if image is not None:
            moved = image(time)
            if moved is None:
                return  # past the limit of coordinates: results in no time
            time = moved
        self._put_off(constant_key if key_of is None else key_of(time), time, diff)

    def _put_off(self, key: Key, time: Time, diff: int) -> None:
        """Change the support of a time by `diff` when it is the turn of its key."""
        changes = self._pending.get(key)
        if changes is None:
            self._pending[key] = {time: diff}
            heappush(self._agenda, key)
        else:
            changes[time] = changes.get(time, 0) + diff  # a sum of 0 stays, and `_settle` skips it

    @property
    def is_idle(self) -> bool:
        """Whether all counts are zero and no update waits: the dataflow is complete."""
        return not self._nonzero and not self._buffer

    @property
    def is_behind(self) -> bool:
        """Whether recorded updates wait for `propagate`."""
        return bool(self._buffer)

    def frontier(self, location: int) -> Antichain:
        """Return the minimal times that may still arrive at `location`; the same object until it changes."""
        frontier = self._frontiers[location]
        if frontier is None:
            frontier = self._frontiers[location] = Antichain.of_minimal(self._fronts[location])
        return frontier

    def fronts(self) -> tuple[tuple[Time, ...], ...]:
        """Return a snapshot of the elements of all frontiers. May be called from other threads."""
        # The worker cannot intervene in this one call, and it replaces fronts but never changes one.
        return tuple(self._fronts)

    def is_sole_holder(self, location: int, time: Time) -> bool:
        """Return whether the pointstamp is live and its end would remove its time from the location's frontier."""
        # A live pointstamp supports its own time exactly once, so a support of 1 comes from it alone. It has a support:
        # `propagate` changes counts and supports together.
        return (
            self._own[location].get(time, 0) > 0
            and self._support[location][time] == 1
            and time in self._fronts[location]
        )

    def pointstamps(self) -> list[tuple[int, Time, int]]:
        """Return (location, time, count) as of the last `propagate`; no count is zero, some may be negative."""
        return [(location, time, count) for location, own in enumerate(self._own) for time, count in own.items()]

    def holders(self, location: int, time: Time) -> list[tuple[int, Time, int]]:
        """Return (location, time, count) of the live pointstamps that could-result-in `time` at `location`.

        These are what a wait for this time waits for. Costs a search of the graph; meant for explanations.
        """
        holds = self.holding(location, time)
        return [(holder, at, count) for holder, at, count in self.pointstamps() if count > 0 and holds(holder, at)]

    def holding(self, location: int, time: Time) -> Callable[[int, Time], bool]:
        """Return a function of a location and a time: whether that pointstamp holds back `time` at `location`.

        Costs one search of the graph.
        """
        paths = summaries_to(location, self._lengths[location], self._edges)
        return lambda holder, at: any(leads_within(path, at, time) for path in paths.get(holder, ()))

    def _absorb(self) -> None:
        """Apply the recorded updates to the counts; a pointstamp that becomes live or ends changes its support."""
        for location, time, diff in self._buffer:
            own = self._own[location]
            before = own.get(time, 0)
            after = before + diff
            if after:
                own[time] = after
                self._nonzero += not before
            elif before:
                del own[time]
                self._nonzero -= 1
            # Only liveness supports a time: a count below zero must not hide what is upstream.
            if (before > 0) != (after > 0):
                key_of = self._keys[location]
                key = key_of(time) if key_of else self._constant_keys[location]
                self._put_off(key, time, 1 if after > 0 else -1)
        self._buffer.clear()

    def _check(self, edge: Edge) -> None:
        """Raise `BuildError` unless a summary maps the source's times to the target's."""
        source, target, summary = edge
        fits = len(summary.increments) == summary.keep <= self._lengths[source]
        if not fits or summary.length != self._lengths[target]:
            raise BuildError(
                f"{summary} does not lead from the {self._lengths[source]} time coordinates of "
                f"{self._describe(source)} to the {self._lengths[target]} of {self._describe(target)}"
            )


def _settle(
    support: dict[Time, int], front: tuple[Time, ...], changes: dict[Time, int], heap: list[Time]
) -> tuple[Time, ...]:
    """Apply changes to the support of a location; return its new frontier, or `front` itself if unchanged."""
    appeared: list[Time] = []
    vanished: list[Time] = []
    for time, diff in changes.items():
        if not diff:
            continue
        if time not in support:
            # All changes to a time have the same key, so they are summed up here, and a support is never negative.
            support[time] = diff
            appeared.append(time)
        elif after := support[time] + diff:
            support[time] = after
        else:
            del support[time]
            if is_among(time, front):
                vanished.append(time)
    if heap:
        for time in appeared:
            appear(heap, time, support)
    if not vanished:
        # The frontier has lost nothing, so only a time that has appeared can enter it.
        uncovered = _uncovered(appeared, front)
        return minimal((*front, *uncovered)) if uncovered else front
    if len(support) > FEW and len(front[0]) == 1:
        return earliest(heap, support)
    heap.clear()  # it would have to contain every supported time, and is not needed for few of them
    if len(front) <= FEW or len(front[0]) <= 2:
        # Any supported time may be minimal now, not only those that have just appeared.
        return minimal(list(support.keys()))
    # `minimal` would compare every pair. But the times that may be minimal now have just appeared, or come after one
    # that has vanished; and of the elements that are left, only the former can displace some.
    left = _without(front, tuple(vanished))
    later = [time for time in support if any(less_equal(element, time) for element in vanished)]
    found = minimal(_uncovered([*appeared, *later], left))  # which drops a time that is in both
    return tuple(sorted([*_uncovered(left, appeared), *found]))


def _uncovered(times: Sequence[Time], front: Sequence[Time]) -> list[Time]:
    """Return those of some times at or before which no element of a front is."""
    found = []
    for time in times:
        for element in front:
            if less_equal(element, time):
                break
        else:
            found.append(time)
    return found


def _without(times: tuple[Time, ...], others: tuple[Time, ...]) -> tuple[Time, ...]:
    """Return those of some times that are not among others."""
    if len(others) > FEW:
        known = set(others)
        return tuple([time for time in times if time not in known])
    return tuple([time for time in times if time not in others])


def _image(summary: PathSummary, length: int) -> Image | None:
    """Return `summary.results_in`, specialised for times of `length` coordinates; None for the identity."""
    keep, increments, suffix = summary
    if not summary.advances:
        if keep == length:
            return (lambda time: time + suffix) if suffix else None
        return (lambda time: time[:keep] + suffix) if suffix else (lambda time: time[:keep])
    if keep == length and not suffix and not any(increments[:-1]):
        step, last = increments[-1], LIMIT - increments[-1]
        if length == 2:
            return lambda time: (time[0], time[1] + step) if time[1] <= last else None
        return lambda time: (*time[:-1], time[-1] + step) if time[-1] <= last else None
    return summary.results_in


def _key(place: Position) -> Callable[[Time], Key] | None:
    """Return the key of a location at `place` as a function of the time; None if it is the same for all times."""
    components, coordinates = place
    if not coordinates:
        return None
    if len(coordinates) == 1:
        first, rank = components
        only = coordinates[0]
        return lambda time: (first, time[only], rank)
    if len(coordinates) == 2:
        first, second, rank = components
        outer, inner = coordinates
        return lambda time: (first, time[outer], second, time[inner], rank)

    def key(time: Time) -> Key:
        interleaved = [components[0]]
        for coordinate, component in zip(coordinates, components[1:]):
            interleaved += (time[coordinate], component)
        return tuple(interleaved)

    return key
