"""Follow the commits: callbacks, and a table in a notebook that changes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from differential.session.changes import Change, Changes


class Watch:
    """A callback that receives what each commit changes, until `close`.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     numbers = db.table("numbers", {"x": int})
    ...     watch = numbers.watch(lambda change: print(change.time, change.records()))
    ...     numbers.insert(x=3)
    ...     print(db.commit())
    ...     watch.close()
    1 [((3,), 1)]
    1
    """

    def __init__(self, changes: Changes, callback: Callable[[Change], object]) -> None:
        self._changes = changes
        self._callback = callback
        self.is_closed = False

    def deliver(self) -> None:
        """Call the callback with the changes that are there. An error of it ends the watch.

        A view that has failed ends the watch, too. Its error is not raised here, because the commit raises it.
        """
        try:
            changes = self._changes.read_nowait()
        except Exception:
            self.close()
            return
        try:
            for change in changes:
                self._callback(change)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Call the callback no more."""
        self.is_closed = True
        self._changes.close()


def live(shown: object) -> Callable[[Change], object]:
    """Show a table or view in this cell of a notebook, and return a callback that shows it as it is then."""
    try:
        display: Any = import_module("IPython.display").display
    except ImportError:
        raise ImportError("watch() without a callback shows a cell of a notebook: pip install ipython") from None
    handle = display(shown, display_id=True)
    return lambda change: None if handle is None else handle.update(shown)
