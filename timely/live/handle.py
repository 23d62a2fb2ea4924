"""The live view of a process, as the program that began it holds it.

A process has one view at most, for all its workers, those of a session included.
"""

from __future__ import annotations

from collections.abc import Callable


class Live:
    """The page of a run, for as long as this process runs or until `close`. `url` opens it, with its token."""

    def __init__(self, url: str, end: Callable[[], None]) -> None:
        self.url = url
        self._end = end
        self.is_closed = False

    def close(self) -> None:
        """Stop serving the page."""
        if not self.is_closed:
            self.is_closed = True
            self._end()

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noreferrer">live view of this process</a>'

    def __repr__(self) -> str:
        return f"<Live, closed: {self.url}>" if self.is_closed else f"<Live: {self.url}>"
