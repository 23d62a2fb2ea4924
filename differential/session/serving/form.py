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
LENGTH = 1 << 18
"""The rows of a message have at most this many characters, unless it has a single row."""


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
    done = 0
    for start in range(0, max(1, len(diffs)), ROWS):
        for size, made in _parts(records(columns, [column[start : start + ROWS] for column in rows])):
            stop = done + size
            # The last part alone has an id, and so does the only one if there are no rows.
            mark = f"{label}.{commit}" if stop == len(diffs) else None
            head = {"id": mark} if mark else {}
            head |= {"commit": commit, "kind": kind, "more": mark is None, "columns": list(columns)}  # type: ignore[dict-item]
            yield mark, f'{text(head)[:-1]},"rows":{made},"diffs":{text(list(diffs[done:stop]))}}}'
            done = stop


def _parts(rows: list[tuple[Any, ...]]) -> Iterator[tuple[int, str]]:
    """Yield rows in parts of limited length: how many there are in each, and their text."""
    start, size = 0, len(rows)
    while True:
        part = rows[start : start + size]
        made = text(part)
        if len(made) > LENGTH and len(part) > 1:
            size = max(1, len(part) * LENGTH // len(made))
            continue
        yield len(part), made
        start, size = start + size, 2 * size
        if start >= len(rows):
            return


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
