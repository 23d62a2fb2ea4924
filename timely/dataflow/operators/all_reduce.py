"""AllReduce: all workers receive the total of the vectors of all workers, at each time.

`all_reduce` is data-parallel (scatter-reduce, then all-gather): each worker adds up its own vectors, cuts the sum into
as many pieces as there are workers and sends each worker its piece; each totals the pieces it got and sends the result
to all. `all_reduce_by_tree` adds up along a binary tree of workers, whole vectors, and sends the total back down it.

Both move 2 (W - 1) vectors among W workers in all. Data-parallel, every worker sends less than 2 of them, at the same
time as all others; along the tree the way is 2 log2 W vectors long, one after the other, and worker 0 sends log2 W.
Each worker waits for the time to be complete: twice (on its own; then for the others), and 1 + log2 W times. Threads
of one process pass vectors by reference, so there the tree copies nothing and data-parallel puts pieces together.

What is guaranteed of the totals:

- All workers have the same, bit by bit, and both methods give the same.
- They do not depend on the order in which messages arrive, nor on threads or processes: each worker's vectors are
  combined in the order in which they reached it, the workers' sums in the order of the workers, both in a balanced
  tree (`Pairwise`).
- Totals of integers, minima and maxima are the same for every number of workers. So are floating-point totals for 1, 2,
  4, ... workers, where 2^k vectors, at least one a worker, are dealt to them in equal runs in the workers' order.
  Otherwise another number of workers means another order of rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from timely.arguments import check_functions
from timely.data.buffers import Buffers, columns_from_buffers, columns_to_buffers
from timely.data.container import Array, Batch, register
from timely.data.exact import pairs_wrapped
from timely.dataflow.operators.each_time import fold_each_time
from timely.dataflow.operators.generic import unary
from timely.dataflow.pact import Broadcast, Pact, Pipeline
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S
from timely.errors import DataError
from timely.order import Time


def all_reduce(stream: S, ufunc: np.ufunc = np.add, *, name: str = "all_reduce") -> S:
    """Return on every worker, for each time, the total of all workers' vectors, when the time is complete.

    The records of `stream` are NumPy arrays (in list batches, as `accumulate` makes them), all of a time of one shape
    and type; so is the total, a list batch of one. `ufunc` combines two: `np.add`, `np.minimum`, ... All workers get
    the same bits, whatever arrives first; another number of workers may round otherwise (see the module).

    >>> vectors = [np.array([1.0, 2.0]), np.array([0.5, 0.25])]
    >>> example(lambda scope: scope.to_stream(vectors).all_reduce())
    [array([1.5 , 2.25])]
    """
    check_functions(name, ufunc=ufunc)
    own = _local_total(stream, ufunc, f"{name} locally")
    if stream.scope.peers == 1:
        return own
    return _all_gathered(_reduced(_scattered(own, name), ufunc, name), name)


def all_reduce_by_tree(stream: S, ufunc: np.ufunc = np.add, *, name: str = "all_reduce_by_tree") -> S:
    """Return what `all_reduce` does, having sent whole vectors along a binary tree of workers.

    >>> vectors = [np.array([1, 2]), np.array([5, 0])]
    >>> example(lambda scope: scope.to_stream(vectors).all_reduce_by_tree(np.maximum))
    [array([5, 2])]
    """
    check_functions(name, ufunc=ufunc)
    own = _local_total(stream, ufunc, f"{name} locally")
    worker, peers = stream.scope.index, stream.scope.peers
    if peers == 1:
        return own
    bits = [1 << level for level in range((peers - 1).bit_length())]
    pieces = _each(
        own,
        Pipeline(),
        lambda batch: [Piece(worker, worker & ~1, 0, vector.shape, vector.reshape(-1)) for vector in batch],
        f"{name} begin",
    )
    # After the step up by `bit`, totals are only on the workers whose number has none of the bits up to it. In the end
    # that is worker 0, and each step down doubles the workers that have the total.
    for bit in bits:
        pieces = _reduced(pieces, ufunc, f"{name} up by {bit}", to=worker & ~(bit << 1))
    for bit in reversed(bits):
        pieces = _passed_down(pieces, bit, f"{name} down by {bit}")
    return _each(pieces, ToOne(), lambda piece: [[piece.values.reshape(piece.shape)]], f"{name} end")


def _local_total(stream: S, ufunc: np.ufunc, name: str) -> S:
    """Return the total of this worker's vectors at each time that has any, when the time is complete."""

    def include(total: Pairwise, batch: Batch) -> Pairwise:
        if not isinstance(batch, list):
            raise DataError("a vector is a record of a list batch: an array in a list, not a batch of columns")
        for vector in batch:
            total.include(vector)
        return total

    return fold_each_time(
        stream, Pipeline(), lambda: Pairwise(ufunc), include, lambda total: [total.result()], name=name
    )


def _each(stream: S, pact: Pact, made: Callable[[Any], Iterable[Batch]], name: str) -> S:
    """Return the messages that `made` makes of each."""

    def logic(input: InputPort, output: OutputPort) -> None:
        for capability, batch in input.received():
            for one in made(batch):
                output.give(capability, one)

    return unary(stream, pact, logic, name=name)


def _scattered(stream: S, name: str) -> S:
    """Return each vector as pieces, one for each worker."""
    worker, peers = stream.scope.index, stream.scope.peers

    def pieces(batch: list[Array]) -> Iterator[Piece]:
        (vector,) = batch
        flat = vector.reshape(-1)
        for peer in range(peers):
            start, end = peer * len(flat) // peers, (peer + 1) * len(flat) // peers
            # Empty where the vector is shorter than there are workers; `give` does not send that.
            yield Piece(worker, peer, start, vector.shape, flat[start:end])

    return _each(stream, Pipeline(), pieces, f"{name} scatter")


def _reduced(stream: S, ufunc: np.ufunc, name: str, to: int = 0) -> S:
    """Return the total of the pieces that come to this worker at a time, in the order of their senders."""
    worker = stream.scope.index

    def include(pieces: list[Piece], piece: Batch) -> list[Piece]:
        assert isinstance(piece, Piece)
        pieces.append(piece)
        return pieces

    def reduced(pieces: list[Piece]) -> Piece:
        pieces.sort(key=lambda piece: piece.sender)
        first, total = pieces[0], Pairwise(ufunc)
        for piece in pieces:
            if piece.shape != first.shape:
                both = f"workers {first.sender} and {piece.sender}"
                raise DataError(f"{both} have vectors of shapes {first.shape} and {piece.shape}")
            total.include(piece.values)
        return Piece(worker, to, first.start, first.shape, total.result())

    empty: Callable[[], list[Piece]] = list
    return fold_each_time(stream, ToOne(), empty, include, reduced, name=f"{name} reduce")


def _all_gathered(stream: S, name: str) -> S:
    """Return the vectors that all pieces of a time make up, on every worker."""
    begun: dict[Time, tuple[Array, int]] = {}

    def logic(input: InputPort, output: OutputPort) -> None:
        for capability, piece in input.received():
            assert isinstance(piece, Piece)
            if capability.time not in begun:
                begun[capability.time] = np.empty(piece.shape, piece.values.dtype), 0
            vector, filled = begun[capability.time]
            vector.reshape(-1)[piece.start : piece.start + len(piece)] = piece.values
            begun[capability.time] = vector, filled + len(piece)
            # The pieces of all workers divide the vector, and each arrives once, so a count is enough.
            if filled + len(piece) == vector.size:
                del begun[capability.time]
                output.give(capability, [vector])

    return unary(stream, Broadcast(), logic, name=f"{name} gather")


def _passed_down(stream: S, bit: int, name: str) -> S:
    """Return the pieces on the workers that have them, and on those `bit` after them."""
    worker, peers = stream.scope.index, stream.scope.peers
    targets = [to for to in (worker, worker | bit) if to < peers]
    return _each(
        stream, ToOne(), lambda piece: [Piece(worker, to, 0, piece.shape, piece.values) for to in targets], name
    )


class Pairwise:
    """Combines arrays of one shape and type by a ufunc: a balanced binary tree over the order in which they are given.

    The first is combined with the second, the third with the fourth, those two results with each other, and so on; what
    is left over at the end is combined from the back. At most one result of each size waits, so n vectors need the
    memory of log n. The order depends on the number of vectors alone. A tree over 2^k vectors consists of trees over
    any 2^j consecutive ones: that is what makes floating-point totals the same, bit by bit, however the vectors are
    dealt to a power of two of workers in equal shares. Rounding errors grow as the depth, not the number.

    >>> total = Pairwise(np.add)
    >>> for vector in np.arange(6).reshape(3, 2):
    ...     total.include(vector)
    >>> total.result()
    array([6, 9])
    """

    __slots__ = ("_ufunc", "_waiting")

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc
        self._waiting: list[tuple[int, Array]] = []  # (how many were combined, their total), growing towards the front

    def include(self, vector: Any) -> None:
        """Add one more; raise `DataError` unless it is like those before it."""
        array, waiting = np.asarray(vector), self._waiting
        if array.dtype.kind not in "biuf" or not array.size:
            given = f"an array of {array.dtype} and shape {array.shape}"
            raise DataError(f"cannot combine {given}: give numbers, at least one")
        if waiting:
            before = waiting[0][1]
            if (before.shape, before.dtype) != (array.shape, array.dtype):
                raise DataError(
                    f"cannot combine an array of {array.dtype} and shape {array.shape} with one of {before.dtype} and "
                    f"shape {before.shape}: all of a time must be alike, on all workers"
                )
        # As in a binary counter: the counts that wait are distinct powers of two.
        count = 1
        while waiting and waiting[-1][0] == count:
            array = self._combined(waiting.pop()[1], array)
            count *= 2
        waiting.append((count, array))

    def result(self) -> Array:
        """Return the total of what was included, at least one."""
        waiting = self._waiting
        while len(waiting) > 1:
            _, last = waiting.pop()
            count, before = waiting.pop()
            waiting.append((count, self._combined(before, last)))
        return waiting[0][1]

    def _combined(self, first: Array, second: Array) -> Array:
        # The type stays: a result of another one could not be combined further.
        with np.errstate(over="ignore"):
            total = np.asarray(self._ufunc(first, second, dtype=first.dtype))
        if pairs_wrapped(self._ufunc, first, second, total):
            raise DataError(f"a total of vectors does not fit into {total.dtype}: use floats, or a wider type")
        return total


@register
class Piece:
    """`values`, from position `start` of an array of `shape`, laid out flat; for worker `to`, from worker `sender`."""

    kind: ClassVar[str] = "piece"
    __slots__ = ("sender", "shape", "start", "to", "values")

    def __init__(self, sender: int, to: int, start: int, shape: tuple[int, ...], values: Array) -> None:
        self.sender = sender
        self.to = to
        self.start = start
        self.shape = shape
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """The bytes of the values."""
        return self.values.nbytes

    def take(self, rows: Array) -> NoReturn:
        """Raise `DataError`: a piece travels as a whole."""
        raise DataError("a piece of a vector cannot be routed record by record")

    def to_buffers(self) -> tuple[Any, Buffers]:
        dtypes, buffers = columns_to_buffers([self.values])
        return [self.sender, self.to, self.start, list(self.shape), dtypes], buffers

    @classmethod
    def from_buffers(cls, meta: Any, buffers: Sequence[memoryview]) -> Self:
        if not isinstance(meta, (list, tuple)) or len(meta) != 5:
            raise ValueError("a piece of a vector is described by five things")
        sender, to, start, shape, dtypes = meta
        if not isinstance(shape, (list, tuple)):
            raise ValueError("a shape is a list")
        if any(type(number) is not int or number < 0 for number in (sender, to, start, *shape)):
            raise ValueError("a piece of a vector is described by numbers from 0 on")
        columns = columns_from_buffers(dtypes, buffers)
        if len(columns) != 1 or columns[0].dtype.kind not in "biuf":
            raise ValueError("a piece of a vector is one column of numbers")
        return cls(sender, to, start, tuple(shape), columns[0])


class ToOne:
    """The pact of pieces: each goes to the worker it names."""

    name = "to one"

    def admits(self, batch: Batch, coordinates: int) -> bool:
        """Return whether a batch is a piece (see `pact.Selective`)."""
        return isinstance(batch, Piece)

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]] | None:
        assert isinstance(batch, Piece)
        return iter([(batch.to, batch)])
