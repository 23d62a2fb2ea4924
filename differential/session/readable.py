"""Tables and views as the program reads them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from differential.data.ticks import Duration
from differential.session.catalog import Catalog
from differential.session.changes import Change, Changes
from differential.session.clock import Clock
from differential.session.event_time import begin, expired
from differential.session.finding import found
from differential.session.guesses import RELATION, TABLE, absent
from differential.session.item import Item, negative_rows
from differential.session.live import Cell, Watch
from differential.session.plotting import Shape, plotted
from differential.session.reading import attached, rejects_of
from differential.session.relation import Relation
from differential.session.rows import Record, Rows
from differential.session.sinks.delivery import Delivery
from differential.session.sinks.sink import Sink
from differential.session.sources.feed import Feed
from differential.session.sources.source import Source
from differential.session.statement import statement_of
from differential.session.table_data import columns_of
from differential.session.transaction import Kind, RowStatement
from differential.session.writing import forgotten, written
from timely.errors import DataError, SessionError
from timely.lowlevel import user_origin

if TYPE_CHECKING:
    from differential.session.serving.publication import Publication


class Readable:
    """What has rows as of the last commit: a table or a view."""

    def __init__(self, catalog: Catalog, item: Item) -> None:
        self._catalog = catalog
        self._item = item

    @property
    def name(self) -> str:
        """The name by which definitions use it."""
        return self._item.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; of a view whose definition gives none, `column_0` and so on."""
        return self.rows().columns if self._item.names is None else self._item.columns(0)

    @property
    def watermark(self) -> Any:
        """The watermark as of the last commit, the least of those of the tables that this is made of; None without one.

        What happened before it is complete, and the windows that end at or before it are final.
        """
        return self._catalog.watermark(self._item)

    def rows(self) -> Rows:
        """Return the rows as of the last commit. Raises SessionError where it was dropped or has failed."""
        return self._catalog.read(self._item)

    def find(self, **key: Any) -> Rows:
        """Return the rows of one key, or with lists for values of several, as of the last commit.

        It reads the index of the key, and so these rows alone. Raises SessionError if the columns are not those of the
        key, and DataError if a value is not of the type of its column.

        >>> from differential.session import Session
        >>> with Session() as db:
        ...     stock = db.table("stock", {"item": ["nut", "nut", "cog"], "pieces": [3, 4, 5]}, key="item")
        ...     number = db.commit()
        ...     stock.find(item="nut").records(), stock.find(item=["cog", "bolt"]).records()
        ([('nut', 3), ('nut', 4)], [('cog', 5)])
        """
        return found(self._catalog, self._item, key)

    def records(self) -> list[Record]:
        """Return the rows as tuples, sorted."""
        return self.rows().records()

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.rows().to_pandas()

    def to_polars(self) -> Any:
        """Return the rows as a Polars DataFrame."""
        return self.rows().to_polars()

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        return self.rows().to_arrow()

    def plot(self, x: str | None = None, y: str | Sequence[str] | None = None, *, shape: Shape | None = None) -> Any:
        """Return a plot of the rows: axes of matplotlib or, where it is not installed, a figure of plotly.

        By default `x` is the first column, and `y` are all other columns of numbers. The `shape` is "line", "bar" or
        "scatter", by default bars over a column of text, and lines over any other.

        Raises SessionError if there is no such column, or if it does not hold numbers, and ImportError if neither
        library is installed.

        >>> from differential.session import Session
        >>> with Session() as db:
        ...     stock = db.table("stock", {"item": ["nut", "cog"], "pieces": [3, 5]})
        ...     number = db.commit()
        ...     [float(bar.get_height()) for bar in stock.plot().patches]
        [5.0, 3.0]
        """
        return plotted(self.rows(), x, y, shape)

    def changes(self) -> Changes:
        """Return what each commit from now on changes, as long as the program keeps or reads the result."""
        return self._catalog.follow(self._item, "changes()")

    def watch(self, callback: Callable[[Change], object] | None = None) -> Watch:
        """Call `callback(change)` at the end of each commit that changes this, in the thread that commits.

        Without a callback, show a table in a notebook that follows the commits. Returns what `close` ends.
        """
        made_by = "watch()" if callback is not None else None  # a cell shows by itself that it has ended
        if callback is None:
            callback = Cell(self)
        elif not callable(callback):
            raise SessionError(f"watch (at {user_origin()}) takes a function of a change, not {callback!r:.80}")
        return self._catalog.watch(Watch(self._catalog.follow(self._item, made_by), callback))

    def publish(self, address: str, *, keys: str) -> Publication:
        """Publish this to other sessions, which read it with the source `arrow_socket`; return what `close` ends.

        `address` is such as "tcp://0.0.0.0:5555", or "tcp://127.0.0.1:*" for a free port. `keys` is the directory of
        the key pair that both sides have, as `timely keys DIRECTORY` writes it. Everything is encrypted, and nobody
        without the pair can read it.

        >>> import tempfile
        >>> from differential.session import Session
        >>> from differential.session.sources import arrow_socket
        >>> from timely.communication.curve import make_keys
        >>> with tempfile.TemporaryDirectory() as keys, Session() as db, Session() as other:
        ...     path = make_keys(keys)
        ...     stock = db.table("stock", {"item": ["nut", "cog"]})
        ...     number = db.commit()
        ...     publication = stock.publish("tcp://127.0.0.1:*", keys=keys)
        ...     copy = other.table("copy", {"item": str})
        ...     feed = copy.read_from(arrow_socket(publication.address, keys=keys))
        ...     number = other.run(until=lambda: len(copy) == 2)
        ...     publication.close()
        ...     copy.records()
        [('cog',), ('nut',)]
        """
        from differential.session.serving.publication import publish  # it needs pyarrow

        return publish(self._catalog, self._item, address, keys)

    def write_to(
        self, sink: Sink, *, patience: float = 10.0, existing: Literal["stop", "replace"] = "stop"
    ) -> Delivery:
        """Write the rows to a sink, and the changes of each commit at its end; return the delivery.

        If the sink does not accept the changes, a commit tries again for `patience` seconds, with longer and longer
        pauses. Then it raises an error, and the next commit tries again. If another attempt cannot succeed, the
        delivery ends.

        In a durable session a view must be durable. The sink keeps the number of the last commit that it has applied,
        so it receives each commit once, in order, even if the program is killed at any moment. If the sink contains
        anything else, `existing="stop"` raises an error, and "replace" replaces it by the rows as of the last commit.

        Raises SessionError if the sink cannot be written to, or if the same rows are already written to it.

        >>> import tempfile
        >>> from pathlib import Path
        >>> from differential.session import Session
        >>> from differential.session.sinks import csv
        >>> with tempfile.TemporaryDirectory() as directory, Session() as db:
        ...     stock = db.table("stock", {"item": ["nut"], "pieces": [3]}, key="item")
        ...     delivery = stock.write_to(csv(f"{directory}/stock.csv"))
        ...     first = db.commit()
        ...     stock.upsert(item="nut", pieces=4)
        ...     second = db.commit()
        ...     print(Path(directory, "stock.csv").read_text(), end="")
        item,pieces,time,diff
        nut,3,1,1
        nut,3,2,-1
        nut,4,2,1
        """
        if not hasattr(sink, "open"):
            raise SessionError(
                f"write_to (at {user_origin()}) takes a sink, such as csv('orders.csv') of differential.session.sinks, "
                f"not {sink!r:.80}"
            )
        return written(self._catalog, self._item, sink, patience, existing)

    def forget(self, sink: str) -> None:
        """Stop writing to the sink of this name; a durable session no longer retains commits for it.

        The sink need not be attached.

        >>> from differential.session import Session
        >>> with Session() as db:
        ...     stock = db.table("stock", {"item": ["nut"]})
        ...     db.view("all", lambda t: t.stock).forget("stock.csv")
        """
        forgotten(self._catalog, self._item, sink)

    def __len__(self) -> int:
        self._catalog.engine.refuse_ended()
        self._catalog.check(self._item)
        if self._item.size < 0:
            raise negative_rows(self._item, f"its number of rows is negative, {self._item.size}")
        return self._item.size

    def __bool__(self) -> bool:
        return True  # by `__len__`, a table without rows would be False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(_absent(self, name))

        def __getitem__(self, place: Any) -> Any:
            raise TypeError(f"{self._item} is not a list: records() lists its rows, find(column=value) those of a key")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as a stream of Arrow's C interface, from which DuckDB, Polars and others read them."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        item = self._item
        if item.error is not None:
            return f"<{item}, dropped>"
        if not self._catalog.engine.is_running:
            return f"<{item} of a session that was closed>"
        rows = self.rows()
        return f"{item}, {len(rows):,} rows as of commit {self._catalog.last}\n{rows}"

    def _repr_html_(self) -> str:
        if self._item.error is not None or not self._catalog.engine.is_running:
            return f"<p>{escape(repr(self))}</p>"
        rows = self.rows()
        heading = f"<p><b>{escape(self.name)}</b>: {len(rows):,} rows as of commit {self._catalog.last}</p>"
        return heading + rows._repr_html_()


class View(Readable):
    """The answer to a definition, as of the last commit.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     numbers = db.table("numbers", {"x": [3, 4, 5]})
    ...     odd = db.view("odd", lambda t: t.numbers.filter(lambda x: x % 2 == 1))
    ...     with odd.changes() as changes:
    ...         number = db.commit()
    ...         print([change.records() for change in changes.read_nowait()], len(odd), odd.name, odd.columns)
    ...     odd
    [[((3,), 1), ((5,), 1)]] 2 odd ('x',)
    view 'odd', 2 rows as of commit 1
    x
    3
    5
    """


class Table(Readable):
    """A table. What is inserted and deleted is visible from the next commit on.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     stock = db.table("stock", {"item": ["nut", "cog"], "pieces": [3, 4]}, key="item")
    ...     stock.insert(item=["nut", "bolt"], pieces=[1, 2])
    ...     print(db.commit(), stock.records())
    ...     stock.upsert(item="nut", pieces=9)
    ...     stock.delete(item="bolt")
    ...     print(db.commit(), stock.records())
    1 [('bolt', 2), ('cog', 4), ('nut', 1), ('nut', 3)]
    2 [('cog', 4), ('nut', 9)]
    """

    def insert(self, data: Any = None, /, **columns: Any) -> None:
        """Add rows: one as `name=value`, many as `name=list`, or `data`, a frame, a dictionary or a list of rows.

        Raises SessionError where a column is missing or unknown, DataError where values are not like those before.
        """
        self._state(Kind.INSERT, data, columns)

    def delete(self, data: Any = None, /, **columns: Any) -> None:
        """Remove rows once each; given the columns of the key alone, all rows that have one of the keys.

        A row that does not exist makes the commit fail. A key without rows does not.
        """
        self._state(Kind.DELETE, data, columns)

    def upsert(self, data: Any = None, /, **columns: Any) -> None:
        """Replace all rows of each given row's key by this row; of several rows of a key, by the last.

        Raises SessionError where the table was made without `key`.
        """
        if not self._item.has_key:
            raise SessionError(f"{self._item} has no key: db.table({self.name!r}, ..., key=...) names its columns")
        self._state(Kind.UPSERT, data, columns)

    def event_time(self, column: str, *, lateness: Duration | None = None, idle: dt.timedelta | None = None) -> Table:
        """State that a column holds event times, and return the table.

        From then on the table has a watermark. With `lateness`, each commit moves it to the highest event time seen,
        minus the lateness; if sources fill the table, the least of their highest times counts. Without `lateness`, only
        `advance_watermark` moves it. With `idle`, a source that delivers nothing for this long no longer holds the
        watermark back. If the whole table receives nothing for this long, its watermark follows those of the other
        tables with event times.

        A row before the watermark of the previous commit is late. It is not inserted, removed or replaced, but becomes
        a row of the table `late`, with a further column `change`. The watermark is the only row of another table. Both
        have names like `orders_late` and `orders_watermark`.

        `lateness` is a timedelta, or an integer if event times are integers; `idle` is a timedelta of real time. Raises
        SessionError if the column does not hold integers, dates or timestamps, or has an unknown type.

        >>> from differential.session import Session
        >>> with Session() as db:
        ...     visits = db.table("visits", {"page": str, "minute": int}).event_time("minute", lateness=5)
        ...     visits.insert([("home", 30), ("home", 64)])
        ...     print(db.commit(), visits.watermark)
        ...     visits.insert([("help", 58), ("help", 59)])
        ...     print(db.commit(), visits.records(), visits.late.records())
        1 59
        2 [('help', 59), ('home', 30), ('home', 64)] [('help', 58, 'insert')]
        """
        begin(self._catalog, self._item, column, lateness, idle)
        return self

    @property
    def late(self) -> Table:
        """The table of late changes. Raises SessionError if this table has no event times."""
        return Table(self._catalog, self._clock().late)

    def advance_watermark(self, time: Any) -> None:
        """Make the next commit move the watermark to a time, unless the watermark is at this time or later already.

        Raises SessionError if the table has no event times, and DataError if the time is null or of another type.

        >>> from differential.session import Session
        >>> with Session() as db:
        ...     visits = db.table("visits", {"minute": int}).event_time("minute")
        ...     visits.advance_watermark(120)
        ...     print(visits.watermark, db.commit(), visits.watermark)
        None 1 120
        """
        item = self._clock().watermark
        if time is None:
            raise DataError(f"the watermark of {self._item} cannot be null")
        _, values = columns_of({"watermark": time}, None)
        self._catalog.state(item, RowStatement(Kind.INSERT, values, user_origin()))

    def expire(self, before: Any) -> None:
        """Make the next commit remove the rows before a time that the watermark has passed.

        Views lose what they contain about these rows. A window that begins before the time and ends after it loses a
        part of its rows, so expire rows up to the start of a window, once a sink has the final answers. The first call
        makes an index by event time, which holds all columns of the table. From then on, a call reads only the rows
        that expire.

        Raises SessionError if the watermark has not passed the time, if the table has no event times, or if rows expire
        in this transaction already.

        >>> from differential.session import Session
        >>> with Session() as db:
        ...     visits = db.table("visits", {"minute": int}).event_time("minute", lateness=5)
        ...     visits.insert(minute=[30, 64, 130])
        ...     number = db.commit()
        ...     visits.expire(60)
        ...     print(db.commit(), visits.records(), len(visits.late))
        2 [(64,), (130,)] 0
        """
        expired(self._catalog, self._clock(), before)

    def _clock(self) -> Clock:
        clock = self._catalog.clocks.all.get(self._item)
        if clock is None:
            raise SessionError(f"{self._item} has no event times: event_time('column', lateness=...) states them")
        return clock

    def read_from(
        self, source: Source, *, on_error: Literal["stop", "skip"] | Table = "stop", upsert: bool = False
    ) -> Feed:
        """Make each commit from now on take the rows that a source has delivered by then, and return the feed.

        `on_error` is what happens to a record that is not a row of the table. With "stop", the commit takes what comes
        before the record, the source stops, and the commit raises an error that names it. With "skip", the record is
        left out and counted. A table of rejects (`Session.rejects`) receives it, with the error and the line.

        With `upsert`, a row replaces all rows of its key. In a durable session the source goes on where the last commit
        has left it, so each record counts once.

        Raises SessionError where the source cannot be read, or its table reads it already.

        >>> import tempfile
        >>> from differential.session import Session
        >>> from differential.session.sources import csv
        >>> with tempfile.NamedTemporaryFile("w+") as file, Session() as db:
        ...     print("item,pieces", "nut,3", sep="\\n", file=file, flush=True)
        ...     stock = db.table("stock", {"item": str, "pieces": int}, key="item")
        ...     feed = stock.read_from(csv(file.name))
        ...     print(db.run(), stock.records())
        1 [('nut', 3)]
        """
        if not hasattr(source, "open"):
            raise SessionError(
                f"read_from (at {user_origin()}) takes a source, such as csv('orders.csv') of "
                f"differential.session.sources, not {source!r:.80}; insert() takes rows and frames"
            )
        rejects = rejects_of(self._catalog, on_error)
        return attached(self._catalog, self._item, source, rejects, on_error == "stop", upsert)

    def _state(self, kind: Kind, data: Any, named: dict[str, Any]) -> None:
        self._catalog.check(self._item)
        self._catalog.state(self._item, statement_of(self._item, kind, data, named))


def _absent(readable: Readable, name: str) -> str:
    """Return why a table or view does not have an attribute, and what the program may have meant."""
    plain = f"{type(readable).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return plain
    operators = [each for each in dir(Relation) if not each.startswith("_") and _is_operator(getattr(Relation, each))]
    if name in operators:
        return (
            f"{plain}: it is an operator of collections, which a definition uses: "
            f"db.ask(lambda t: t.{readable.name}.{name}(...)), or db.view(...)"
        )
    if isinstance(readable, View) and hasattr(Table, name):
        return f"{plain}: a view is computed, and changes with the tables that it is made of"
    if name in (readable._item.names or ()):
        return f"{plain}: it is a column, whose values are in to_pandas()[{name!r}]"
    if name in RELATION and name not in TABLE:
        return f"{plain}: in a definition, as of db.ask(lambda t: ...) or db.view(...), {RELATION[name]}"
    own = [each for each in dir(type(readable)) if not each.startswith("_")]
    if name not in TABLE and (near := get_close_matches(name, [*operators, *own], 1, 0.75)) and near[0] not in own:
        return _absent(readable, near[0]).replace(repr(near[0]), repr(name), 1)
    return absent(readable, name, TABLE)


def _is_operator(member: object) -> bool:
    """Return whether a member of relations is a method of one, and neither of the class nor a property."""
    return callable(member) and getattr(member, "__self__", None) is not Relation
