"""How rows and changes are written in JSON.

A message is one part of a snapshot or of the changes of a commit. Messages with the same `commit` belong together, up
to the one whose `more` is false. Only that one has an `id`, at which a reader can resume:

    {"id": "3f0c.7", "commit": 7, "kind": "changes", "more": false,
     "columns": ["item"], "rows": [["nut"]], "diffs": [1]}

Values have the forms that sinks give them: see `differential.session.sinks.values.as_json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from differential.session.sinks.values import as_json
from differential.session.table_data import Column

ROWS = 1_000
"""A message has at most this many rows."""


def messages(
    kind: str, commit: int, label: str, columns: Sequence[str], rows: Sequence[Column], diffs: Sequence[int]
) -> Iterator[tuple[str | None, str]]:
    """Yield the parts of a snapshot, or of a commit's changes: the id of each part or None, and its text.

    Raises DataError for a column that JSON cannot hold.

    >>> import numpy as np
    >>> for found in messages("changes", 7, "a", ["x"], [np.array([0.5, float("nan")])], [1, -1]):
    ...     print(*found)
    a.7 {"id":"a.7","commit":7,"kind":"changes","more":false,"columns":["x"],"rows":[[0.5],["NaN"]],"diffs":[1,-1]}
    """
    last = max(0, len(diffs) - 1) // ROWS
    for part in range(last + 1):
        piece = slice(part * ROWS, (part + 1) * ROWS)
        mark = f"{label}.{commit}" if part == last else None
        found = {"id": mark} if mark else {}
        found |= {"commit": commit, "kind": kind, "more": part < last, "columns": list(columns)}  # type: ignore[dict-item]
        found |= {"rows": records(columns, [column[piece] for column in rows]), "diffs": list(diffs[piece])}  # type: ignore[dict-item]
        yield mark, text(found)


def records(columns: Sequence[str], rows: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Return columns as rows of JSON values. Raises DataError for a column that JSON cannot hold."""
    return list(zip(*(as_json(name, column) for name, column in zip(columns, rows))))


def text(value: Any) -> str:
    """Return a value as JSON in one line, also for readers that divide lines at every separator of Unicode.

    >>> text(["a\\u2028b"])
    '["a\\\\u2028b"]'
    """
    made = json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
    for separator in "\x85\u2028\u2029":
        made = made.replace(separator, f"\\u{ord(separator):04x}")
    return made
