"""Ask how far a dataflow has come."""

from __future__ import annotations

from timely.arguments import check_kind
from timely.dataflow.inline import derived, merged
from timely.dataflow.probe import Probe
from timely.dataflow.streams import S, StreamCore


def probe(stream: StreamCore) -> Probe:
    """Return a probe of the stream.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         probe = scope.to_stream(range(3)).probe()
    ...     worker.step_while(lambda: probe.less_equal(0))
    ...     return probe.done()
    >>> execute_directly(program)
    True
    """
    made = Probe()
    made.watch(derived(stream, name="probe"))
    return made


def probe_with(stream: S, probe: Probe) -> S:
    """Return the stream, at which `probe` looks from now on, too.

    >>> def program(worker):
    ...     probe = Probe()
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream(range(3)).probe_with(probe)
    ...         numbers, stream = new_input(scope)
    ...         stream.map(lambda x: x + 1).probe_with(probe)
    ...     numbers.advance_to(2)
    ...     worker.step_while(lambda: probe.less_than(2))
    ...     return probe.frontier
    >>> execute_directly(program)
    Antichain([(2,)])
    """
    check_kind("probe_with", Probe, "a probe, as Probe() and stream.probe() make", probe=probe)
    watched = merged((stream,), name="probe")
    probe.watch(watched)
    return watched
