"""Tables that kernels read columns by, and that own these columns.

A kernel receives batches as one table of addresses, a row for each (`differential.kernels.memory`). The memory of the
table holds a reference to whatever owns the columns, and an array holds one to its memory. So the columns live as long
as the table: no caller needs to keep them alive during a call, or to remember what a table was made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.kernels.compile import Ints, Table


class _Memory(bytearray):
    """The bytes of a table, and the owners of the columns whose addresses they are."""

    __slots__ = ("owners",)

    owners: tuple[object, ...]


def owning(addresses: Sequence[Ints | bytes], owners: tuple[object, ...]) -> Table:
    """Return a table of the given rows, which keeps `owners` alive.

    >>> column = np.arange(3)
    >>> table = owning([np.array([3, column.ctypes.data, 0, 0, 0, 0, 0, 1])], (column,))
    >>> table.shape, table.base.owners[0] is column
    ((1, 8), True)
    """
    memory = _Memory(b"".join(addresses))  # type: ignore[arg-type]  # arrays are buffers, too
    memory.owners = owners
    return np.ndarray((len(addresses), 8), np.int64, memory)
