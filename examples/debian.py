"""Load the upgrade of a distribution: a graph of packages, and steps that change it.

A package becomes an integer, its rank in the sorted names of both files, so that order by number is order by name.
All input is checked before anything is computed: the graph never holds an edge twice, and only edges that exist are
removed. A fault raises a `DataError` that names the file and the line. `data/README.md` describes the files.
"""

from __future__ import annotations

import difflib
import gzip
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from differential.jobs.access import reading
from timely.errors import DataError

Column = NDArray[np.int64]

DATA = Path(__file__).parent / "data"
INITIAL = DATA / "debian-bookworm.tsv.gz"
CHANGES = DATA / "debian-to-trixie.tsv.gz"

DIFFS = {"+": 1, "-": -1}


@dataclass(frozen=True)
class Upgrade:
    """A graph, and the steps that build and change it; step 0 inserts the initial edges.

    Step s makes the changes `starts[s]` to `starts[s + 1]`: the edge from `source` to `target` occurs `diff` times
    more.
    """

    names: Sequence[str]
    starts: Column
    source: Column
    target: Column
    diff: Column

    @property
    def steps(self) -> int:
        """The number of the last step."""
        return len(self.starts) - 2

    def changes(self, step: int, worker: int = 0, peers: int = 1) -> tuple[Column, Column, Column]:
        """Return source, target and diff of the changes of a step: the share of `worker` among `peers`."""
        start, end = int(self.starts[step]), int(self.starts[step + 1])
        rows = slice(start + (worker - start) % peers, end, peers)
        return self.source[rows], self.target[rows], self.diff[rows]

    def edges_at(self, step: int) -> tuple[Column, Column]:
        """Return source and target of the edges that exist after a step, added up from the start."""
        end = self.starts[step + 1]
        edges, which = np.unique(self.source[:end] * len(self.names) + self.target[:end], return_inverse=True)
        present = edges[np.bincount(which, self.diff[:end]) > 0]
        return present // len(self.names), present % len(self.names)

    def origin(self, step: int) -> str:
        """Return the name of the first package that a step changes: the files do not name the source package."""
        return self.names[int(self.source[self.starts[step]])]

    def package(self, name: str) -> int:
        """Return the number of a package. Raises `DataError` if neither file has it."""
        number = bisect_left(self.names, name)
        if number < len(self.names) and self.names[number] == name:
            return number
        close = difflib.get_close_matches(name, self.names)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise DataError(f"no package is called {name!r}{hint}")


def load(initial: Path = INITIAL, changes: Path = CHANGES) -> Upgrade:
    """Return the upgrade that two files describe. Raises `DataError` for the first line that is wrong."""
    edges = _rows(initial, "package, needed package")
    steps = _rows(changes, "step, - or +, package, needed package")
    starts = _starts(changes, [step for step, _, _, _ in steps])
    diff = np.array([DIFFS.get(sign, 0) for _, sign, _, _ in steps], np.int64)
    for row in np.flatnonzero(diff == 0)[:1]:
        raise DataError(f"{changes}, line {row + 1}: expected + or - in the second field, found {steps[row][1]!r}")

    columns = [[row[field] for rows in (edges, steps) for row in rows] for field in (-2, -1)]
    names = sorted(set(columns[0]).union(columns[1]))
    number = {name: rank for rank, name in enumerate(names)}
    source, target = (np.fromiter(map(number.__getitem__, column), np.int64, len(column)) for column in columns)
    diff = np.append(np.ones(len(edges), np.int64), diff)
    upgrade = Upgrade(names, np.append(0, starts + len(edges)), source, target, diff)
    wrong = _impossible(upgrade)
    if wrong is not None:
        path, line = (initial, wrong + 1) if wrong < len(edges) else (changes, wrong - len(edges) + 1)
        what = "removes an edge that is not there" if diff[wrong] < 0 else "inserts an edge that is there already"
        raise DataError(f"{path}, line {line}: {what}: {columns[0][wrong]} -> {columns[1][wrong]}")
    return upgrade


def _rows(path: Path, fields: str) -> list[list[str]]:
    """Return the fields of each line of a file."""
    lines = _text(path).split("\n")
    if not lines[-1]:
        lines.pop()
    rows = [line.split("\t") for line in lines]
    expected = fields.count(",") + 1
    for line, row in enumerate(rows, start=1):
        if len(row) != expected:
            raise DataError(f"{path}, line {line}: expected {expected} fields ({fields}), found {len(row)}")
        if not (row[-1] and row[-2]):
            raise DataError(f"{path}, line {line}: a package without a name")
    return rows


def _text(path: Path) -> str:
    is_packed = path.suffix == ".gz"
    with reading(str(path), "gzip" if is_packed else "text"):
        data = path.read_bytes()
        data = gzip.decompress(data) if is_packed else data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {data.count(10, 0, error.start) + 1}: not UTF-8 text") from None


def _starts(path: Path, fields: list[str]) -> Column:
    """Return where each step begins, and the end, given the first field of each line."""
    starts: list[int] = []
    current: str | None = None
    for row, field in enumerate(fields):
        if field != current:
            if field != str(len(starts) + 1):
                after = f"step {len(starts)} or {len(starts) + 1}" if starts else "step 1"
                raise DataError(f"{path}, line {row + 1}: expected {after}, found {field!r}")
            starts.append(row)
            current = field
    return np.array([*starts, len(fields)], np.int64)


def _impossible(upgrade: Upgrade) -> int | None:
    """Return the first change that inserts an edge that exists already, or removes one that does not exist.

    The diffs of each edge, in the order of the changes, must alternate and begin with an insertion.
    """
    edges = upgrade.source * len(upgrade.names) + upgrade.target
    order = np.argsort(edges, kind="stable")
    edges, diff = edges[order], upgrade.diff[order]
    before = np.full(len(diff), -1)
    before[1:] = np.where(edges[1:] == edges[:-1], diff[:-1], -1)
    wrong = order[diff == before]
    return int(wrong.min()) if len(wrong) else None
