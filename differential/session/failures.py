"""Report that tables and views have failed."""

from __future__ import annotations

from differential.session.item import Item, failure
from timely.errors import SessionError
from timely.lowlevel import notify


def report(failed: list[Item], commit: int | None) -> None:
    """Raise SessionError if items have failed in a commit; print notices if it is not known in which.

    An interrupt may have ended the commit or the question in which they failed.
    """
    if commit is None:
        for item in failed:
            notify(f"{failure(item, item.error)}")
    elif failed:
        others = "".join(f"; dropped, too: {failure(item, item.error)}" for item in failed[1:])
        cause = failed[0].error
        why = f"{failure(failed[0], cause)} (commit {commit} is complete, and the view is dropped{others})"
        raise SessionError(why) from cause
