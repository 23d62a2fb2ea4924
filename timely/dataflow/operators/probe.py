"""Ask how far a dataflow has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from timely.dataflow.inline import derived
from timely.errors import BuildError
from timely.order import Time
from timely.progress.antichain import Antichain
from timely.progress.summary import LIMIT

if TYPE_CHECKING:
    from timely.dataflow.stream import Stream


class Probe:
    """Knows the frontier of a stream: which times may still appear on it, on any worker.

    Times may be given as a tuple or, where they have one coordinate, as an int.
    """

    def __init__(self, stream: Stream) -> None:
        self._dataflow = stream.scope.dataflow
        self._width = stream.scope.width
        self._place = stream.location
        self._dataflow.observe(stream.location)

    @property
    def location(self) -> int:
        """The tracked location this probe looks at."""
        if not self._dataflow.built:
            raise BuildError("a probe can be asked once the dataflow is complete: leave its `with` block first")
        return self._dataflow.location(self._place)

    @property
    def frontier(self) -> Antichain:
        """The least times that may still appear."""
        location = self.location
        return self._dataflow.tracker.frontier(location)

    def less_than(self, time: int | Sequence[int]) -> bool:
        """Return whether times before `time` may still appear."""
        return self.frontier.less_than(self._time(time))

    def less_equal(self, time: int | Sequence[int]) -> bool:
        """Return whether `time` or times before it may still appear."""
        return self.frontier.less_equal(self._time(time))

    def done(self) -> bool:
        """Return whether nothing at all may still appear."""
        return not self.frontier

    def explain(self, time: int | Sequence[int] | None = None, *, patience: float = 1.0) -> str:
        """Return, for people, who holds this frontier back at `time` (at any time when not given).

        Other workers are asked, and given `patience` seconds to answer; with 0 they are not, and only counted.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = scope.new_input("numbers")
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
        at = (LIMIT,) * self._width if time is None else self._time(time)
        return self._dataflow.worker.explainer.explain(self._dataflow, self.location, at, patience)

    def _time(self, time: int | Sequence[int]) -> Time:
        given = (time,) if isinstance(time, int) else tuple(time)
        if len(given) != self._width:
            raise BuildError(f"{given} is not a time of the probed scope, whose times have {self._width} coordinate(s)")
        return given


def probe(stream: Stream) -> Probe:
    """Return a probe of the stream.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         probe = scope.to_stream(range(3)).probe()
    ...     worker.step_while(lambda: probe.less_equal(0))
    ...     return probe.done()
    >>> execute_directly(program)
    True
    """
    return Probe(derived(stream, name="probe"))
