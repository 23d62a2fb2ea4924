"""What an error of a commit states about the disk, where the session has ended.

A program opens a durable session again after such an error. Whether it must make its changes again is known only here:

    (commit 7 is not made)     the changes are not durable: make them again
    (commit 7 is complete)     they are durable: making them again would double them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from differential.session.engine import Engine
from timely.errors import SessionError, StateError, TimelyError

if TYPE_CHECKING:
    from differential.session.storage import SessionStorage


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
