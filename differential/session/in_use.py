"""Who may call a reader of a source or a writer of a sink: one thread at a time, also while the session is closed.

`Session.close` cannot wait for the lock of the catalog, which a commit holds until its views have computed, and a block
of another thread for as long as it likes. Closing a connection or a file under a thread that uses it could make this
thread read or write another file, which has the same number by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

PATIENCE = 10.0
"""For how many seconds closing waits for a call. What does not return by then is closed nevertheless."""


class InUse:
    """Held while readers or writers are used, in a `with` block; `closing` waits for its end. A thread may nest both.

    >>> in_use = InUse()
    >>> with in_use, in_use.closing():
    ...     pass
    """

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Wait until no other thread uses them, but not for long; then run a block that closes them."""
        is_held = self._lock.acquire(timeout=PATIENCE)
        try:
            yield
        finally:
            if is_held:
                self._lock.release()
