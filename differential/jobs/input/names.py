"""Names of nodes, and the integers that stand for them in the dataflow.

The names of a graph are numbered in their order, so codes compare as the names do. A name that first appears in a
change gets the next number. Names are kept as one Arrow array, and only those of changes as Python strings.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from timely.errors import BuildError, DataError

CANDIDATES = 20_000
"""At most this many names are compared with one that does not exist."""
BISECTIONS = 64
"""Up to how many different names are found by bisection; more are found with a hash table of all."""


class Names:
    """The names of the nodes: `number_ends` maps names to codes, and `text` maps codes to names.

    >>> names = Names()
    >>> names.begin(pa.array(["pear", "apple"])).tolist()
    [1, 0]
    >>> names.number_ends(pa.chunked_array([["pear"]]), pa.chunked_array([["fig"]]))
    (array([1]), array([2]))
    >>> names.text([0, 2])
    ['apple', 'fig']
    """

    def __init__(self) -> None:
        self._sorted = pa.array([], pa.string())
        self._later: list[str] = []
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sorted) + len(self._later)

    def begin(self, names: Any) -> NDArray[np.int64]:
        """Number the names of a graph, an Arrow array of different strings; return the code of each."""
        if len(self):
            raise BuildError("the names of the graph were numbered before")
        order = pc.array_sort_indices(names)
        self._sorted = pc.take(names, order)
        codes: NDArray[np.int64] = np.empty(len(names), np.int64)
        codes[order.to_numpy(zero_copy_only=False)] = np.arange(len(names))
        return codes

    def number_ends(self, source: Any, target: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the codes of the sources and the targets of rows; number those that are new, row by row.

        Both are Arrow chunked arrays of strings.
        """
        distinct, (sources, targets) = unified([source.dictionary_encode(), target.dictionary_encode()])
        codes = self._codes_of(distinct, np.stack([sources, targets], axis=1).ravel())
        return codes[sources], codes[targets]

    def text(self, codes: Iterable[int] | NDArray[np.int64]) -> list[str]:
        """Return the names that codes stand for."""
        places = np.asarray(codes, np.int64)
        first = len(self._sorted)
        found: list[str] = [""] * len(places)
        if first:
            found = pc.take(self._sorted, pa.array(np.where(places < first, places, 0))).to_pylist()
        for index in np.flatnonzero(places >= first).tolist():
            found[index] = self._later[places[index] - first]
        return found

    def number_of(self, name: str) -> int:
        """Return the code of a name. Raises DataError, with the names most like it, if no node has it."""
        found = self._find(name)
        if found is None:
            sought = name.encode(errors="replace").decode()  # an argument may have bytes that are not UTF-8
            close = difflib.get_close_matches(sought, list(dict.fromkeys(self._candidates(sought))), n=3)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise DataError(f"no node is named {name!r}{hint}")
        return found

    def _append(self, name: str) -> int:
        code = len(self)
        self._later.append(name)
        self._codes[name] = code
        return code

    def _place(self, name: str) -> int:
        # Arrow has ordered UTF-8 byte by byte, which is the order of code points, in which Python compares.
        return bisect_left(range(len(self._sorted)), name, key=lambda place: self._sorted[place].as_py())

    def _find(self, name: str) -> int | None:
        place = self._place(name)
        if place < len(self._sorted) and self._sorted[place].as_py() == name:
            return place
        return self._codes.get(name)

    def _codes_of(self, distinct: Any, indices: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the code of each different name; those that are new are numbered in the order of their indices."""
        codes: NDArray[np.int64]
        if len(distinct) <= BISECTIONS:
            listed = distinct.to_pylist()
            codes = np.full(len(distinct), -1, np.int64)
            for place in _first_appearances(indices).tolist():
                known = self._find(listed[place])
                codes[place] = self._append(listed[place]) if known is None else known
            return codes
        found = pc.index_in(distinct, value_set=self._sorted.cast(distinct.type))
        codes = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        is_unknown = codes < 0
        appear = _first_appearances(indices)
        appear = appear[is_unknown[appear]]
        for place, name in zip(appear.tolist(), pc.take(distinct, pa.array(appear)).to_pylist()):
            known = self._codes.get(name)
            codes[place] = self._append(name) if known is None else known
        return codes

    def _candidates(self, name: str) -> Iterator[str]:
        """Yield names that may be meant: those that begin alike, in any case, and those beside the name in order."""
        place = self._place(name)
        yield from self._sorted.slice(max(0, place - CANDIDATES // 8), CANDIDATES // 4).to_pylist()
        lower = pc.utf8_lower(self._sorted)
        begin = pc.starts_with(lower, name[:2].lower())
        end = pc.ends_with(lower, name[-3:].lower())
        yield from self._sorted.filter(pc.or_(begin, end)).slice(0, CANDIDATES).to_pylist()
        yield from self._later[:CANDIDATES]


def _first_appearances(indices: NDArray[Any]) -> NDArray[np.int64]:
    """Return the different indices in the order in which they first appear."""
    distinct, first = np.unique(indices, return_index=True)
    return distinct[np.argsort(first)].astype(np.int64)


def unified(columns: Iterable[Any]) -> tuple[Any, list[NDArray[np.int32]]]:
    """Return all different strings of dictionary-encoded chunked arrays, and each column as indices into them."""
    columns = list(columns)
    chunks = [chunk for column in columns for chunk in column.chunks]
    if not chunks:
        return pa.array([], pa.string()), [np.empty(0, np.int32) for _ in columns]
    whole = pa.chunked_array(chunks).unify_dictionaries()
    found: list[NDArray[np.int32]] = []
    place = 0
    for column in columns:
        count = len(column.chunks)
        parts = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in whole.chunks[place : place + count]]
        found.append(np.concatenate(parts) if parts else np.empty(0, np.int32))
        place += count
    return whole.chunk(0).dictionary, found
