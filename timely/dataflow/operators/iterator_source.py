"""Epochs drawn from an iterator, no faster than a probe shows that they are consumed.

The items of the iterator are what the epochs consist of, and it is not asked for the next one before the probe permits
it: with `ahead` epochs, epoch e is drawn once epoch e - `ahead` is complete where the probe looks. So at
most `ahead` epochs are under way, however fast the iterator is. Nothing is polled: the frontier's moves run the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from timely.arguments import check_whole, refusal
from timely.data.container import Batch
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.operator import Logic
from timely.dataflow.operators.to_stream import batches_of, close_generators
from timely.dataflow.ports import OutputPort
from timely.dataflow.probe import Probe
from timely.dataflow.streams import S, ScopeCore


def iterator_source(
    scope: ScopeCore[S], epochs: Iterable[Any], probe: Probe, *, ahead: int = 1, name: str = "iterator_source"
) -> S:
    """Return the stream of the items of `epochs`, each at an epoch of its own, at most `ahead` epochs before `probe`.

    An item is whatever `to_stream` takes; an empty list stands for an epoch without data. Each worker draws on an
    iterator of its own; the probe knows of all of them. It is drawn on until it ends, also after the program has
    returned: a program with an iterator that has no end drops the dataflow (`Worker.drop_dataflow`), which closes it if
    it is a generator.

    >>> def readings():
    ...     for epoch in range(3):
    ...         print("draw", epoch)
    ...         yield np.arange(epoch + 1)
    >>> def program(worker):
    ...     probe = Probe()
    ...     with worker.dataflow() as scope:
    ...         read = scope.iterator_source(readings(), probe)
    ...         read.accumulate(0, lambda total, x: total + int(x.sum())).inspect(print).probe_with(probe)
    ...     worker.step_while(lambda: not probe.done())
    >>> execute_directly(program)
    draw 0
    0
    draw 1
    1
    draw 2
    3
    """
    if scope.width != 1:
        raise refusal(name, f"the epochs of an iterator have one coordinate, times of {scope} have {scope.width}")
    check_whole(name, 1, ahead=ahead)
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output(initial=True)

    def constructor(capabilities: list[Capability]) -> Logic:
        probe.schedule(builder.operator)
        source = _Epochs(iter(epochs), probe, ahead, output, capabilities[0])
        scope.dataflow.when_complete(source.close)
        return source.run

    builder.build(constructor)
    return stream


class _Epochs:
    """The source. The capability's epoch is the one being sent, or the next."""

    def __init__(
        self, epochs: Iterator[Any], probe: Probe, ahead: int, output: OutputPort, capability: Capability
    ) -> None:
        self._epochs = epochs
        self._probe = probe
        self._ahead = ahead
        self._output = output
        self._capability = capability
        self._item: Any = None
        self._batches: Iterator[Batch] | None = None

    def run(self) -> None:
        """Send one batch, or go on to the next epoch if the probe permits."""
        capability = self._capability
        if capability.output is None:
            return
        (epoch,) = capability.time
        if self._batches is None:
            if self._probe.less_equal(epoch - self._ahead):  # False for the first `ahead` epochs: no time is below 0
                return  # the probe runs this again when its frontier moves
            self._item = next(self._epochs, self)  # no iterator yields this object, so it stands for the end
            if self._item is self:
                capability.drop()
                return
            self._batches = batches_of(self._item)
        batch = next(self._batches, None)
        if batch is not None:
            self._output.give(capability, batch)
        else:
            self._batches = None
            capability.downgrade((epoch + 1,))
        self._output.dataflow.activate(self._output.operator)

    def close(self) -> None:
        """Close what is drawn on, so that it ends now."""
        close_generators(self._batches, self._item, self._epochs)
