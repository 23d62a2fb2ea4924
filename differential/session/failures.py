"""What errors of commits state: which tables and views have failed and, where the session has ended, what is on disk.

A program opens a durable session again after such an error. Whether it must make its changes again is known only here:

    (commit 7 is not made)     the changes are not durable: make them again
    (commit 7 is complete)     they are durable: making them again would double them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from differential.session.engine import Engine
from differential.session.item import Item, failure
from timely.errors import SessionError, StateError, TimelyError
from timely.lowlevel import notify

if TYPE_CHECKING:
    from differential.session.storage import SessionStorage


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


@contextmanager
def stating_outcome(
    engine: Engine, storage: SessionStorage | None, known: Callable[[], tuple[int, int]]
) -> Iterator[None]:
    """Refuse this block where the session has ended; if it is durable, errors state what becomes of the commit.

    `known` returns the last commit of the workers, and how many statements are not committed. The statements of a
    durable commit do not count there, so if there are any, their commit is not made.
    """
    try:
        engine.refuse_ended()
        yield
    except StateError:
        raise  # of the storage, which states it
    except TimelyError as error:
        last, uncommitted = known()
        if storage is None or not (engine.is_over or storage.last > last) or "(commit " in str(error):
            raise  # nothing is in doubt, or the error states it already
        not_made, complete = f"commit {storage.last + 1} is not made", f"commit {storage.last} is complete"
        outcome = storage.outcome or (not_made if uncommitted or not storage.last else complete)
        raise SessionError(f"{error} ({outcome})") from error
