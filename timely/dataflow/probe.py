"""Knowing how far a dataflow has come. It is asked at each change, and compiled (docs/design/0019-compiled-to-c.md)."""

from __future__ import annotations

from timely.dataflow.core import DataflowCore
from timely.dataflow.explain import PATIENCE, explain
from timely.dataflow.operator import Operator
from timely.dataflow.streams import StreamCore
from timely.errors import BuildError
from timely.order import LIMIT, Moment, Time, as_time
from timely.origin import user_origin
from timely.progress.antichain import Antichain


class Probe:
    """Knows the frontier of a stream: which times may still appear on it, on any worker.

    Made by `Stream.probe`, or before there is a stream: then `Stream.probe_with` states what it looks at, and with
    several streams its frontier is of what may still appear on any of them. Times may be given as a tuple or, where
    they have one coordinate, as an int.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = new_input(scope)
    ...         probe = stream.probe()
    ...     numbers.advance_to(4)
    ...     worker.step()
    ...     print(probe.frontier, probe.less_than(4), probe.less_equal(4))
    ...     numbers.close()
    ...     worker.step_while(lambda: not probe.done())
    >>> execute_directly(program)
    Antichain([(4,)]) False True
    """

    def __init__(self) -> None:
        self._watched: list[tuple[DataflowCore, int]] = []
        self._located: list[tuple[DataflowCore, int]] = []  # the same by tracked location, once all is built
        self._width = 0

    def watch(self, stream: StreamCore) -> None:
        """Look at `stream`, too."""
        if self._watched and stream.scope.width != self._width:
            raise BuildError(
                f"at {user_origin()}: a probe looks at times of {self._width} coordinate(s), so it cannot look at "
                f"{stream.scope}, whose times have {stream.scope.width}"
            )
        self._width = stream.scope.width
        stream.scope.dataflow.observe(stream.location)
        self._located = []
        self._watched.append((stream.scope.dataflow, stream.location))

    def schedule(self, operator: Operator) -> None:
        """Have `operator` run whenever the frontier of a stream of its dataflow, looked at here, moves."""
        for dataflow, location in self._locations():
            if dataflow is not operator.dataflow:
                raise BuildError(f"{operator} cannot be driven by a probe of {dataflow}: it is in {operator.dataflow}")
            dataflow.listen(location, operator)

    @property
    def frontier(self) -> Antichain:
        """The least times that may still appear."""
        located = self._located or self._locations()
        if len(located) == 1:
            dataflow, location = located[0]
            return dataflow.tracker.frontier(location)
        fronts = [dataflow.tracker.frontier(location) for dataflow, location in located]
        return Antichain([time for front in fronts for time in front.elements])

    def less_than(self, time: Moment) -> bool:
        """Return whether times before `time` may still appear."""
        return self.frontier.less_than(self._time(time))

    def less_equal(self, time: Moment) -> bool:
        """Return whether `time` or times before it may still appear."""
        return self.frontier.admits(self._time(time))

    def done(self) -> bool:
        """Return whether nothing at all may still appear."""
        return not self.frontier

    def explain(self, time: Moment | None = None, *, patience: float = PATIENCE) -> str:
        """Return, for people, who holds this frontier back at `time` (at any time when not given).

        Other workers are asked, and given `patience` seconds to answer; with 0 they are not, and only counted.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope, name="numbers")
        ...         probe = stream.probe()
        ...     numbers.advance_to(3)
        ...     worker.step()
        ...     return probe.explain(2), probe.explain(3)
        >>> early, late = execute_directly(program)
        >>> early
        'nothing holds this frontier back'
        >>> print(late)
        held back at (3,) by:
          a capability for (3,) on output 0 of operator 'numbers' (built at ...), made at ..., worker 0
        """
        located = self._locations()
        at = (LIMIT,) * self._width if time is None else self._time(time)
        held = [each for each in located if each[0].tracker.frontier(each[1]).less_equal(at)] or located[:1]
        return "\n".join([explain(dataflow, place, at, patience) for dataflow, place in held])

    def __repr__(self) -> str:
        is_built = bool(self._watched) and all(dataflow.built for dataflow, _ in self._watched)
        return f"Probe(frontier={self.frontier})" if is_built else "Probe(not built)"

    def _locations(self) -> list[tuple[DataflowCore, int]]:
        """Return the tracked locations looked at."""
        if not self._watched:
            raise BuildError("this probe looks at no stream: use `stream.probe_with(probe)`")
        for dataflow, _ in self._watched:
            if not dataflow.built:
                raise BuildError(dataflow.until_built("a probe can be asked"))
        self._located = [(dataflow, dataflow.location(place)) for dataflow, place in self._watched]
        return self._located

    def _time(self, time: Moment) -> Time:
        given = as_time(time)
        if len(given) != self._width:
            raise BuildError(f"{given} is not a time of the probed scope, whose times have {self._width} coordinate(s)")
        return given
