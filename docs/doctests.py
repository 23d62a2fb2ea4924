"""Show the examples in docstrings as code: the lines from `>>>` up to the next empty line."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Adds fences around the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return the text with its examples between fences."""
    lines: list[str] = []
    is_inside = False
    for line in [*text.splitlines(), ""]:
        starts, ends = line.lstrip().startswith(">>>"), not line.strip()
        if starts and not is_inside:
            lines.append("```pycon")
        elif ends and is_inside:
            lines.append("```")
        is_inside = (is_inside or starts) and not ends
        lines.append(line)
    return "\n".join(lines)
