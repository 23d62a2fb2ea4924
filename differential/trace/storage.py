"""Keep the columns of batches in memory, or in files mapped into memory.

Columns that together have more than a number of bytes are put into files. The operating system can then write what is
not in use to disk and reuse its memory, so arrangements may hold more than memory does. A mapped column is an array
like any other, and is read and written like one.

A file has no name: it is removed as soon as it is made or, where the system does not allow that, when it is closed.
The system reclaims its space when the last array in it dies, so nothing is left behind, not even by a crash. Where the
system can (Linux), all space is reserved beforehand: a full disk is an error here, not a signal that kills the process
where it first writes to a page. A large merge writes into the file of its result; a sealed batch is copied into one.

Each such batch holds one file descriptor open, so a process raises its limit on them as far as the system permits once
its configuration asks for files. The files have words: texts, and keys or values wider than a word, are numbers there.
The tables in which the distinct ones are numbered (`differential.data.interning`) are always in memory, as are tables
of times, updates that wait to be sealed, and the output of a kernel before it is in a trace.

>>> with_files = Storage(above=1 << 20)
>>> small, large = with_files.empty([1000]), with_files.empty([1 << 20])
>>> is_mapped(small[0]), is_mapped(large[0])
(False, True)
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from errno import EMFILE, ENFILE

import numpy as np

from differential.kernels.compile import NOTHING, Ints
from differential.trace.batch import Batch
from differential.trace.columns import UpdateColumns
from timely.errors import SpillError
from timely.lowlevel import Config

_WORD = 8


class Storage:
    """Makes columns: in files in `directory` if together they have more than `above` bytes, else in memory."""

    __slots__ = ("above", "directory")

    def __init__(self, above: int | None = None, directory: str | None = None) -> None:
        """Use memory alone without `above`; without `directory` use the one for temporary files."""
        self.above = above
        self.directory = directory

    @classmethod
    def of(cls, config: Config) -> Storage:
        """Return the storage that a configuration asks for. With files, the process may open more of them."""
        if config.spill_above is not None:
            _allow_files()
        return cls(config.spill_above, config.spill_dir)

    def empty(self, lengths: Sequence[int]) -> list[Ints]:
        """Return columns of int64 with these lengths, not initialized; `NOTHING` for 0.

        Raises SpillError where a file is needed and cannot be made.
        """
        if not self._is_spilled(_WORD * sum(lengths)):
            return [np.empty(length, np.int64) if length else NOTHING for length in lengths]
        file = self._mapped(_WORD * sum(lengths))
        columns, place = [], 0
        for length in lengths:
            columns.append(np.frombuffer(file, np.int64, length, place) if length else NOTHING)
            place += _WORD * length
        return columns

    def keep(self, batch: Batch) -> Batch:
        """Return `batch` with its columns where they belong: the batch itself, or a copy."""
        # No batch has more than four columns (times stay in memory), so few rows need no look at how many it has.
        if not self._is_spilled(4 * _WORD * len(batch)):
            return batch
        sources = [batch.keys, batch.vals, batch.time_index, batch.diffs]
        if not self._is_spilled(_WORD * sum(map(len, sources))) or is_mapped(batch.keys):
            return batch  # also what a large merge has written into a file
        keys, vals, index, diffs = targets = self.empty([len(source) for source in sources])
        for source, target in zip(sources, targets):
            target[:] = source
        return Batch(UpdateColumns.of((keys, vals, index, diffs, batch.times)), batch.description)

    def _is_spilled(self, size: int) -> bool:
        return self.above is not None and size > self.above

    def _mapped(self, size: int) -> mmap.mmap:
        import tempfile  # here, because it takes milliseconds, and most programs put nothing into files

        try:
            with tempfile.TemporaryFile(prefix="timely-", dir=self.directory) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.truncate(size)
                return mmap.mmap(file.fileno(), size)  # it has a descriptor of its own, so this one may be closed
        except OSError as error:
            where = self.directory or tempfile.gettempdir()
            remedy = "make room there, name another directory (TIMELY_SPILL_DIR, --spill-dir)"
            if error.errno in (EMFILE, ENFILE):
                remedy = (
                    "each batch in a file holds it open: allow more open files (ulimit -n, LimitNOFILE of a service)"
                )
            raise SpillError(
                f"cannot put {size} bytes of a trace into a file in {where}: {error.strerror or error}; "
                f"{remedy}, or let larger batches stay in memory (TIMELY_SPILL_ABOVE, --spill-above)"
            ) from error


def _allow_files() -> None:
    """Raise this process's limit on open files as far as the system permits."""
    try:
        import resource
    except ImportError:  # Windows has none, nor such a limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # some systems permit less than they state
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


MEMORY = Storage()
"""Keeps everything in memory."""


def is_mapped(column: Ints) -> bool:
    """Return whether a column is in a mapped file."""
    base: object = column
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, mmap.mmap)
