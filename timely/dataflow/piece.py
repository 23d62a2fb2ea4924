"""A stretch of a vector on its way from one worker to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NoReturn, Self

from timely.data.buffers import Buffers, columns_from_buffers, columns_to_buffers
from timely.data.container import Array, Batch, register
from timely.errors import DataError


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
