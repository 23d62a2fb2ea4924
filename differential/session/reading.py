"""Attach sources to tables, and commit what they deliver until they end."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from math import inf
from threading import Event, Thread, current_thread

from differential.session.catalog import Catalog
from differential.session.item import Item
from differential.session.sources.feed import REJECTS, Feed
from differential.session.sources.source import Extent, Source, Target
from differential.session.table_data import NAMES
from timely.errors import SessionError
from timely.lowlevel import notify, user_origin

PAUSE = 0.01
"""How many seconds a session waits before it looks again whether sources have delivered anything."""


def rejects_of(catalog: Catalog, on_error: object) -> Item | None:
    """Return the table of rejects that `on_error` is, or None for "stop" and "skip".

    Raises SessionError for anything else.
    """
    item: Item | None = getattr(on_error, "_item", None)
    if item is None and (not isinstance(on_error, str) or on_error not in ("stop", "skip")):
        raise SessionError(f"on_error is 'stop', 'skip' or a table of db.rejects('name'), not {on_error!r:.80}")
    if item is not None and (catalog.items.get(item.name) is not item or not _takes_rejects(item)):
        raise SessionError(
            f"on_error (at {user_origin()}): {item} is not a table of rejects of this session: make one with "
            "db.rejects('name')"
        )
    return item


def _takes_rejects(item: Item) -> bool:
    """Return whether a table has the columns of rejects, with their types, in their order.

    Rejects are rows by position (`rejected_columns`), and nothing compares them with the table again.
    """
    types = {name: NAMES[of] for name, of in REJECTS.items()}
    return item.kind == "table" and item.names == tuple(REJECTS) and item.schema.types() == types


def attached(catalog: Catalog, item: Item, source: Source, rejects: Item | None, stops: bool, upsert: bool) -> Feed:
    """Make a source fill a table, from its position as of the last commit on; return its feed."""
    with catalog.exclusive():
        catalog.check(item)
        feed = Feed(source, item, rejects, catalog.exclusive)
        names, types = item.names or (), item.schema.types()
        if unknown := [name for name in names if name not in types]:
            raise SessionError(
                f"{feed} needs the type of column {unknown[0]!r}: state it, as in db.table({item.name!r}, "
                f"{{{unknown[0]!r}: int}})"
            )
        if upsert and not item.has_key:
            raise SessionError(f"{feed} replaces rows by key, so name one in db.table({item.name!r}, ..., key=...)")
        # Before it is opened: two feeds of one name would share a position.
        catalog.feeds.add(feed)
        # Under the lock no commit is half made, so this is the position of the rows that the table has.
        position = None if catalog.storage is None else catalog.storage.position(item.name, source.name)
        of = tuple(types[name] for name in names)
        target = Target(item.name, names, of, item.keys, upsert, stops, item.required)
        try:
            with catalog.feeds.in_use:
                feed.open(source, target, position)
        except BaseException:
            feed.end()
            catalog.feeds.forget(feed)
            raise
        return feed


class Ingestion:
    """Commits what the sources of a session deliver, in a thread, until all have ended, or `stop`.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     run = db.start()
    ...     run.stop(), run.is_running
    (0, False)
    """

    def __init__(self, catalog: Catalog, every: float) -> None:
        _check("start", every, None)
        catalog.engine.refuse_ended()
        self._catalog = catalog
        self._stop = Event()
        self._last = catalog.last
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(every,), name="timely sources", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all sources have ended, for at most `timeout` seconds; return whether they have.

        Raises what ended it, if an error did, as `stop` does.
        """
        self._thread.join(timeout)
        if not self._thread.is_alive() and self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def stop(self) -> int:
        """Stop committing; return the number of the last commit.

        In a watch, which runs in the thread itself, this does not wait: the thread ends after the present commit.
        """
        self._stop.set()
        if current_thread() is self._thread:
            return self._catalog.last
        self.wait()
        return self._last

    def _run(self, every: float) -> None:
        try:
            self._last = run(self._catalog, every, self._stop.is_set, forever=True)
        except BaseException as error:
            self._error = error
            if not self._catalog.engine.is_closing:
                notify(f"session: db.start() has ended, and sources are no longer read: {error or repr(error)}")


def _check(what: str, every: object, until: object) -> None:
    """Raise SessionError unless `every` is a number of seconds and `until` a function or None."""
    if not isinstance(every, (int, float)) or not 0 <= every < inf:
        raise SessionError(f"{what} (at {user_origin()}): every={every!r:.80} is not a number of seconds")
    if until is not None and not callable(until):
        raise SessionError(
            f"{what} (at {user_origin()}): until={until!r:.80} is not a function: give one that returns whether to end"
        )


def run(catalog: Catalog, every: float, until: Callable[[], bool] | None, forever: bool = False) -> int:
    """Commit what sources deliver, until all have ended or `until()`; return the number of the last commit.

    `every` is the least time, in seconds, between two commits. With `forever`, it does not end with the sources.
    """

    _check("run", every, until)

    def loaded() -> dict[Feed, Extent] | None:
        if forever:  # nobody waits for it
            return None
        with catalog.exclusive():
            return catalog.feeds.loaded()

    last = -every  # so that the first commit waits for nothing
    with catalog.engine.progress.loading(loaded) as show:
        while until is None or not until():
            catalog.engine.refuse_ended()
            wait = last + every - clock.monotonic()
            show()
            if wait <= 0 and catalog.arrived():
                last = clock.monotonic()
                catalog.commit()
            # Asked after `arrived`: in the other order, what came with the end of a source would be left out.
            elif catalog.feeds.are_ended and not forever:
                break
            else:
                clock.sleep(min(max(wait, PAUSE), 0.05))
    return catalog.last
