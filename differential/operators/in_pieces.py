"""Replace batches of updates by many more updates, which are emitted in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from differential.arrangement.core import C
from differential.data.updates import Updates, updates_of
from timely.lowlevel import Capability, InputPort, OperatorBuilder, OutputPort, Pipeline

ROWS_PER_PIECE = 1 << 18
"""About how many updates a piece has."""


def in_pieces(
    collection: C, transform: Callable[[Updates], Iterator[Updates]], *, keys: int | None = None, name: str
) -> C:
    """Return the collection whose updates are those that `transform` yields for each batch of updates.

    It is `linear` for transforms that make many updates of one: what consumes a piece runs before the next is made.

    >>> def thrice(updates):
    ...     for _ in range(3):
    ...         yield updates
    >>> example(lambda scope: in_pieces(Collection.of(scope, np.array([1, 2])), thrice, name="thrice"))
    [((1,), 3), ((2,), 3)]
    """
    builder = OperatorBuilder(collection.scope, name, static=True)
    input = builder.add_input(collection.stream, Pipeline(), drains=True)
    output, stream = builder.add_output()
    builder.build_from(Pieces(input, output, transform).run)
    return collection.with_stream(stream, keys)


class Pieces:
    """The operator: what is left to emit, with capabilities for the times of the batches that it is made of."""

    def __init__(self, input: InputPort, output: OutputPort, transform: Callable[[Updates], Iterator[Updates]]) -> None:
        self._input = input
        self._output = output
        self._transform = transform
        self._left: deque[tuple[Capability, Iterator[Updates]]] = deque()

    def run(self) -> None:
        # The right of a message ends with this activation, and its pieces may follow later, by a capability.
        for time, batch in self._input.drain():
            self._left.append((Capability(self._output, time), self._transform(updates_of(batch))))
        rows = 0
        while self._left and not self._output.operator.must_wait():
            if rows >= ROWS_PER_PIECE:
                self._output.operator.resume_later()
                break
            rows += self._emit()

    def _emit(self) -> int:
        """Emit the next piece, and return how many updates it has."""
        capability, pieces = self._left[0]
        piece = next(pieces, None)
        if piece is None:
            capability.drop()
            self._left.popleft()
            return 0
        if len(piece):
            self._output.give(capability, piece)
        return len(piece)
