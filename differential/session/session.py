"""A live database of collections: tables, and views that every commit keeps up to date.

A `Session` runs workers in the background and hides them: a person writes tables, definitions and commits. Each table
is an input with an index, each view a dataflow that imports the indexes it reads, and each commit an epoch.

>>> with Session() as db:
...     follows = db.table("follows", {"src": [1, 2], "dst": [2, 3]}, key="src")
...     degrees = db.view("degrees", lambda t: t.follows.group_by("src").count())
...     db.commit()
...     follows.insert(src=1, dst=3)
...     print(degrees.records(), db.commit(), degrees.records())
1
[(1, 1), (2, 1)] 2 [(1, 2), (2, 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import finalize

from differential.session.awaiting import in_thread
from differential.session.catalog import Catalog
from differential.session.engine import Engine
from differential.session.existing import existing, present
from differential.session.guesses import SESSION, absent
from differential.session.item import Item
from differential.session.near import meant, names_of, refuse_name
from differential.session.readable import Readable, Table, View
from differential.session.reading import Ingestion, rejects_of, run
from differential.session.rows import Rows
from differential.session.site import Definition
from differential.session.sources.feed import REJECTS
from differential.session.state_of_run import state_of_run
from differential.session.status import Status
from differential.session.table_data import declared_by, refuse_names_of_types
from differential.session.uncommitted import lost_statements, warn_of
from timely import Config
from timely.errors import SessionError
from timely.lowlevel import user_origin
from timely.services import Live, serve_live

if TYPE_CHECKING:
    from differential.durable.store import Stores
    from differential.session.serving.server import Server

_numbers = count(1)


class Session:
    """A live database with `workers` threads, or processes. All methods may be called from any thread.

    By default there is one worker, or as many as `timely run -w` asks for; its other options hold for a session, too.
    With `processes`, each worker but the first runs in a process of its own, which ends with this one. Definitions are
    sent to them, so they may use functions and values of the program, but no file or lock. Their output appears here.

    With `state`, a directory, by default that of `timely run --state`, each commit is durable when it returns, and a
    session that is opened again goes on with the tables as of the last one. `keep` is how many earlier commits other
    programs can read them as of: a number, an age such as "1h", or None for all.

    What takes longer than a second (ten, unless in a terminal or notebook) shows how far it is on standard error. With
    `progress=False` it does not.

    Raises SessionError in one of several processes of `timely run`, for less than one worker, and for `keep` without
    `state`; ConfigError for `processes=True` where cloudpickle is not installed.

    >>> db = Session(workers=2)
    >>> words = db.table("words", {"word": ["to", "be", "to"]})
    >>> counts = db.view("counts", lambda t: t.words.count().named("word", "times"))
    >>> with db.transaction():
    ...     words.insert(word="or")
    >>> counts.records()
    [('be', 1), ('or', 1), ('to', 2)]
    >>> words.insert(word="not")
    >>> db.rollback()
    >>> import asyncio
    >>> db.commit(), asyncio.run(db.commit_async())
    (2, 3)
    >>> db.status()
    commit 3, 2 worker(s), 0 uncommitted statement(s), 0.0 MB of indexes
    name    kind   rows  index_bytes
    counts  view   3     ...
    words   table  4     ...
    >>> print(db.explain())
    table 'words': 4 rows, indexed by word (defined at ...)
    view 'counts': 3 rows, indexed by word, reads table 'words' (defined at ...)
    >>> db.drop("counts")
    >>> list(db), "counts" in db
    (['words'], False)
    >>> db
    <Session at commit 3: words>
    >>> db.close()
    """

    def __init__(
        self,
        workers: int | None = None,
        processes: bool = False,
        state: str | PathLike[str] | Stores | None = None,
        keep: int | str | None = 0,
        progress: bool = True,
    ) -> None:
        launched = Config.from_environ()
        if launched.processes > 1:
            raise SessionError(
                "a session starts its own processes: run this program without `timely run -n`, and let "
                "Session(workers=N, processes=True) use N of them"
            )
        workers = launched.workers if workers is None else workers
        if not isinstance(workers, int) or workers < 1:
            raise SessionError(f"a session has at least one worker, not {workers!r:.80}")
        name, origin = f"session {next(_numbers)}", user_origin()
        settings = replace(launched, workers=workers)
        cluster = None
        if processes and workers > 1:
            from differential.session.coordinator import Coordinator  # it imports what only such sessions need

            cluster = Coordinator(settings, name, origin)
        engine = Engine(workers, name, origin, cluster, settings, shows_progress=progress)
        self._catalog = Catalog(engine)
        self._end = finalize(self._catalog, engine.close)  # tables and views keep the catalog, too
        try:
            if state is None and (state := state_of_run(engine)) is None and keep != 0:
                raise SessionError(f"keep={keep!r:.80} applies to a durable session: give state=, a directory, too")
            if state is not None:
                from differential.session.restoring import restore  # it needs pyarrow

                restore(self._catalog, state, keep)
        except BaseException:
            self._end()
            raise

    def table(
        self,
        name: str,
        data: Any = None,
        *,
        key: str | Sequence[str] | None = None,
        added: Mapping[str, Any] | None = None,
    ) -> Table:
        """Return a new table that has, from the next commit on, the rows of `data`; without `data`, the existing one.

        A durable session returns the table that an earlier one has committed, with the rows that it has: then `data`
        only names its columns, and may state their types. If there are more now, `added` has their values for these.

        `data` is a dictionary of columns, a list of dictionaries, a frame of pandas or Polars, or an Arrow table; a
        dictionary of names and types makes an empty table. `key` names the columns that the index has first, by default
        the first column: in a definition these are the first positions, and the key of the collection.

        Raises SessionError where the name is taken, where there is no column of the key, and for what is not a table.

        >>> with Session() as db:
        ...     stock = db.table("stock", {"pieces": int, "item": str}, key="item")
        ...     db.table("stock").insert(pieces=3, item="nut")
        ...     print(db.commit(), stock.columns, stock.records())
        1 ('pieces', 'item') [(3, 'nut')]
        """
        if data is None and key is None and added is None:
            return existing(self._catalog, name, Table)
        refuse_names_of_types(name, data)
        names, columns, declared = declared_by({} if data is None else data)
        chosen = names[:1] if key is None else (key,) if isinstance(key, (str, int)) else tuple(key)
        if not names or not chosen or any(each not in names for each in chosen) or len(set(chosen)) < len(chosen):
            raise SessionError(
                f"table {name!r} (at {user_origin()}) needs columns, and a key among them: the columns are "
                f"{', '.join(names) or 'none'}, the key {', '.join(map(str, chosen)) or 'none'}"
            )
        refuse_name(name)
        if self._catalog.storage is not None:
            from differential.session.restoring import adopted

            given = dict(zip(names, columns))
            known = adopted(self._catalog, name, given, declared, chosen, added or {}, key is not None)
            if known is not None:
                return Table(self._catalog, known)
        order = (*chosen, *(each for each in names if each not in chosen))
        shown = tuple(order.index(each) for each in names)
        workers = self._catalog.engine.workers
        item = Item(name, "table", user_origin(), workers, order, shown, len(chosen), key is not None)
        for each, column in declared.items():
            item.schema.declare(each, column)
        self._catalog.add_table(item, declared)
        table = Table(self._catalog, item)
        if len(columns[0]):
            try:
                self._catalog.begun.add(item)  # first: another thread may commit the rows, which removes it again
                table.insert(dict(zip(names, columns)))
            except BaseException:
                self._catalog.drop(name)
                raise
        return table

    def view(
        self,
        name: str,
        definition: Definition | None = None,
        *,
        columns: Sequence[str] | None = None,
        durable: bool = False,
    ) -> View:
        """Return a view: the answer to `definition(t)`, as of the last commit now, and of each commit from then on.

        Without a definition, the view of this name is returned.

        `t` has the tables and views as attributes; the definition returns a collection. `columns` names its columns,
        unless they have names. A view of the same name is replaced.

        With `durable`, what each commit changes is appended to a durable collection of this name, at the end of the
        commit. If the definition gives other rows than are there, because it is another one than before, the difference
        is appended by the next commit.

        Raises SessionError where the definition fails, or a function of it on the present rows, and where other views
        read the one to replace.

        >>> with Session() as db:
        ...     _ = db.table("numbers", {"x": [3, 4, 5]})
        ...     even = db.view("even", lambda t: t.numbers.filter(lambda x: x % 2 == 0))
        ...     print(db.commit(), even.records())
        1 [(4,)]
        """
        if definition is None:
            return existing(self._catalog, name, View)
        refuse_name(name)
        item = Item(name, "view", user_origin(), self._catalog.engine.workers, names_of(columns))
        if durable and self._catalog.storage is None:
            raise SessionError(f"{item} cannot be durable in a session that is not: open it with Session(state=...)")
        item = self._catalog.add_view(item, definition)
        if durable:
            from differential.session.restoring import keep_view

            keep_view(self._catalog, item)
        return View(self._catalog, item)

    def ask(self, definition: Definition, *, columns: Sequence[str] | None = None) -> Rows:
        """Return the answer to a definition as of the last commit, and keep nothing of it.

        >>> with Session() as db:
        ...     _ = db.table("numbers", {"x": [3, 4, 5]})
        ...     print(db.commit(), db.ask(lambda t: t.numbers.filter(lambda x: x > 3)).records())
        1 [(4,), (5,)]
        """
        item = Item("question", "question", user_origin(), self._catalog.engine.workers, names_of(columns))
        return self._catalog.ask(item, definition)

    def commit(self) -> int:
        """Make all changes since the last commit visible at once, and wait for all views; return the commit's number.

        Raises SessionError where a row to delete does not exist, and then nothing has changed; and, after the commit,
        where a view has failed: it is dropped.
        """
        return self._catalog.commit()

    def run(self, *, every: float = 0.0, until: Callable[[], bool] | None = None) -> int:
        """Commit what sources deliver until all have ended, or `until()`; return the last commit's number.

        `every` is the least time between two commits, in seconds: what arrives meanwhile is one commit. Raises
        SessionError where a source stops, after committing what it has delivered before.

        >>> with Session() as db:
        ...     db.run(every=0.1, until=lambda: True)
        0
        """
        return run(self._catalog, every, until)

    def start(self, *, every: float = 0.1) -> Ingestion:
        """Do as `run` does, in a thread, until `stop` of the result; sources that are added later belong to it, too.

        An error ends it: `is_running` is False then, and `wait` and `stop` raise the error.

        >>> with Session() as db:
        ...     db.start().stop()
        0
        """
        return Ingestion(self._catalog, every)

    def rejects(self, name: str = "rejects") -> Table:
        """Return the table of this name for records that are not rows; a new one, unless there is one.

        >>> with Session() as db:
        ...     db.rejects().columns
        ('source', 'place', 'line', 'record', 'error')
        """
        return self._once(name, REJECTS)

    def _once(self, name: str, columns: Mapping[str, type]) -> Table:
        """Return the table of this name, which is made if there is none."""
        if name in self._catalog.items and name not in self._catalog.unused:
            return existing(self._catalog, name, Table)
        return self.table(name, dict(columns), key=next(iter(columns)))

    async def commit_async(self) -> int:
        """Commit as `commit` does, in a thread, while the event loop continues."""
        self._catalog.blocks.refuse_inside()
        return await in_thread(self._catalog.commit, self._catalog.engine.give_up)

    def rollback(self) -> None:
        """Forget all changes since the last commit, and the tables made with rows since then that nothing uses yet."""
        self._catalog.rollback()

    def transaction(self) -> AbstractContextManager[None]:
        """Return a block of changes that is committed at its end. If it raises, its changes are discarded.

        Changes made before the block are committed with it. Other threads wait for its end to make changes.
        """
        return self._catalog.transaction()

    def drop(self, target: str | Readable) -> None:
        """Drop a table or view, and free its memory. Raises SessionError where a view reads it."""
        self._catalog.drop(present(target, self._catalog.items))

    def __getitem__(self, name: str) -> Table | View:
        """Return the table or view of a name; `db.table(name)` and `db.view(name)` return it as the type it has."""
        item = self._catalog.items.get(name)
        if item is None:
            raise KeyError(f"there is no table or view {name!r}{meant(name, self._catalog.items)}")
        return (Table if item.kind == "table" else View)(self._catalog, item)

    def __contains__(self, name: object) -> bool:
        return name in self._catalog.items

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._catalog.items))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._catalog.items)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            items = {} if name.startswith("_") else self._catalog.items
            there = {each: f"db[{each!r}] is {item}" for each, item in tuple(items.items())}
            raise AttributeError(absent(self, name, SESSION | there))

    def status(self) -> Status:
        """Return the tables and views, with their rows and the bytes of their indexes, the sources and the sinks.

        While a view computes, the bytes are those of the last look at the indexes.
        """
        catalog = self._catalog
        catalog.engine.measure()
        items = tuple(catalog.items.values())
        nbytes = [sum(item.nbytes) + catalog.clocks.index_bytes(item) for item in items]
        found = [(item.name, item.kind, item.size, each) for item, each in zip(items, nbytes)]
        rows = Rows.of({"name": str, "kind": str, "rows": int, "index_bytes": int}, found)
        sources = catalog.feeds.rows()
        sinks = catalog.deliveries.rows({} if catalog.storage is None else catalog.storage.reaches)
        computing = tuple(item.name for item in catalog.engine.unfinished())
        workers, uncommitted, interned = catalog.engine.workers, catalog.uncommitted, catalog.engine.interned_bytes
        return Status(workers, catalog.last, uncommitted, sum(nbytes), rows, sources, sinks, computing, interned)

    def explain(self) -> str:
        """Return, for people, what each view reads, by which index, and where it is defined."""
        lines = []
        for item in tuple(self._catalog.items.values()):
            key = ", ".join((item.names or ())[: item.keys]) or f"{item.keys} column(s)"
            reads = f", reads {', '.join(map(str, item.reads.values()))}" if item.reads else ""
            lines.append(f"{item}: {item.size:,} rows, indexed by {key}{reads} (defined at {item.origin})")
        return "\n".join(lines) or "there are no tables"

    def live(
        self, address: str | int = "", *, token: str | None = None, certificate: tuple[str, str] | None = None
    ) -> Live:
        """Serve a page that shows what the workers of this session do; its `url` opens it, and in a notebook a link.

        It is served at a port of this machine, by default the first free one from 8400 on. HOST:PORT that other
        machines can reach takes a `token` of yours and a `certificate`, the files of a certificate and its key.

        >>> with Session() as db:
        ...     page = db.live(0)
        ...     print(page.url)
        ...     page.close()
        http://127.0.0.1:...
        """
        return serve_live(address, token=token, certificate=certificate)

    def serve(
        self,
        port: int = 0,
        *,
        token: str | None = None,
        host: str = "127.0.0.1",
        certificate: tuple[str, str] | None = None,
        read: Sequence[str] | None = None,
        write: Sequence[str] | None = None,
        on_error: Literal["stop", "skip"] | Table = "stop",
        **limits: int,
    ) -> Server:
        """Serve the session over HTTP, so that other programs change its tables and follow its views (docs/http.md).

        Requests that send the `token` may read the tables and views that `read` names, and change the tables that
        `write` names, by default all. The token has at least 16 characters; without one, a token is made. Port 0
        chooses a free port. Only this machine can connect, unless `host` is the address of another interface, which
        requires a token of your own and a `certificate`: the names of its file and of the file of its key.

        With `on_error="stop"` a request is refused if one of its lines is not a row. With "skip" the line is left out,
        and with a table of `rejects` it also becomes a row of that table. `limits` are in bytes: `limit` for a body
        (16 MiB), `backlog` for the changes of each view that are kept for readers that reconnect (16 MiB), and `queue`
        for the messages that may wait for a reader (8 MiB).

        Raises ConfigError if a library is missing, or if the address, the token or the certificate is refused.

        >>> with Session() as db:
        ...     db.serve(token="a-token-of-sixteen").url
        'http://127.0.0.1:.../'
        """
        from differential.session.serving.incoming import REQUESTS, TABLE
        from differential.session.serving.server import Options, serve

        known = {"limit": 16 << 20, "backlog": 16 << 20, "queue": 8 << 20}
        if unknown := sorted(set(limits) - set(known)):
            raise SessionError(f"serve() has no limit {unknown[0]!r}: the limits are {', '.join(known)}")
        requests, rejects = self._once(TABLE, REQUESTS), rejects_of(self._catalog, on_error)
        options = Options(host, port, token, certificate, read, write, **(known | limits))
        server = serve(self._catalog, requests._item, rejects, on_error == "stop", options)
        self._catalog.ends.append(server._stop)
        return server

    def close(self) -> None:
        """End the session, its threads, its sources and its sinks. What is not committed is lost, with a warning."""
        lost = lost_statements(self._catalog)
        ends = self._catalog.ends
        for end in (*ends, lambda: self._end(), *ends):  # again: requests may wait for the workers
            end()
        self._catalog.feeds.end()
        self._catalog.deliveries.end()
        warn_of(lost)

    @property
    def is_closed(self) -> bool:
        """Whether the session was closed, or has ended because of an error."""
        return not self._catalog.engine.is_running

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.is_closed:
            return "<Session, closed>"
        return f"<Session at commit {self._catalog.last}: {', '.join(self._catalog.items) or 'no tables'}>"
