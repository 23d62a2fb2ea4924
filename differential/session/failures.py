"""Find tables and views that have failed, and report them."""

from __future__ import annotations

from collections.abc import Mapping

from differential.session.item import Item, failure
from timely.errors import SessionError
from timely.lowlevel import notify

SHOWN = 4
"""How many further views the error of a commit explains: all views that read one that has failed are dropped."""


class Failures:
    """Finds which items of a session have failed, and looks at them only if any item has failed since it found none."""

    def __init__(self) -> None:
        self._looked_at = 0
        """The last failure, of any item, that was looked at."""

    def among(self, items: Mapping[str, Item]) -> list[Item]:
        last = Item.last_failure  # read first: an item that fails from now on changes it again
        if last == self._looked_at:
            return []
        failed = [item for item in tuple(items.values()) if item.error is not None]
        if not failed:
            self._looked_at = last
        return failed


def report(failed: list[Item], commit: int | None) -> None:
    """Raise SessionError if items have failed in a commit; print notices if it is not known in which.

    An interrupt may have ended the commit or the question in which they failed.
    """
    if commit is None:
        for item in failed:
            notify(f"{failure(item, item.error)}")
    elif failed:
        # Those with a cause of their own come first: the others read a view that was dropped.
        rest = sorted(failed[1:], key=lambda item: isinstance(item.error, SessionError))
        others = "".join(f"; dropped, too: {failure(item, item.error)}" for item in rest[:SHOWN])
        if len(rest) > SHOWN:
            others += f"; dropped, too: {len(rest) - SHOWN} more; list(db) names what is left"
        cause = failed[0].error
        why = f"{failure(failed[0], cause)} (commit {commit} is complete, and the view is dropped{others})"
        raise SessionError(why) from cause
