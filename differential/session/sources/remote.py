"""The changes of a table or view of another session, over HTTP: sessions in a chain.

A thread reads ahead, up to a bound, and connects again when the connection is lost. A commit of the other session is
one batch here, whose position is the id of its last message. So a session that is opened again resumes after the last
commit that it has. If the other session no longer has the later commits, because it was started anew or keeps too few,
the source stops: the table cannot be brought up to date.
"""

from __future__ import annotations

import json
import socket
import ssl
import time as clock
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from threading import Condition, Thread
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

import numpy as np

from differential.extra import needed_for
from differential.session.sources.convert import Converter, of_json
from differential.session.sources.source import Position, Reader, Rejected, SourceBatch, Statement, Target
from differential.session.table_data import Column
from differential.session.transaction import Kind
from timely.errors import ConfigError, DataError, SessionError
from timely.services import Access

AHEAD = 1 << 17
"""The thread reads no more while at least this many rows wait for a commit."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds before the next attempt to connect; the pause is doubled after each failure."""
SILENCE = 60.0
"""After this many seconds without data from the other session, a connection counts as lost."""
CONNECTING = 10.0
"""After this many seconds, a WebSocket counts as not connected."""
CLOSING = 2.0
"""Closing waits this many seconds for the thread."""
LARGEST = 64 << 20
"""A message of more bytes closes a WebSocket."""
GONE = 4404
"""The code with which a session closes a WebSocket if another attempt would not find what to read either."""
DEFAULT_PORTS = {"ws": 80, "wss": 443}
LOOPBACK = ("localhost", "127.0.0.1", "::1")


Entry = TypeVar("Entry")


class ReadAhead(Reader, Generic[Entry]):
    """A reader whose thread reads commits ahead, and waits while entries of at least the size `most` wait for `poll`.

    A subclass calls `__init__` last, because it starts the thread, which runs `_run`.
    """

    is_ended = False

    def __init__(self, name: str, most: int) -> None:
        self.note = ""
        """Why nothing arrives, empty if the other session answers."""
        self._most = most
        self._ready: deque[tuple[Entry, int]] = deque()
        self._size = 0
        self._failure: SessionError | None = None
        self._is_closed = False
        self._changed = Condition()
        self._thread = Thread(target=self._run, name=f"timely {name}", daemon=True)
        self._thread.start()

    def poll(self) -> SourceBatch | None:
        """Return the next commit of the other session, None if none has arrived. Raises SessionError or DataError."""
        with self._changed:
            # An error comes after the entries that arrived before it.
            if not self._ready:
                if self._failure is not None:
                    raise self._failure
                return None
            entry, size = self._ready.popleft()
            self._size -= size
            self._changed.notify_all()
        return self._batch(entry)  # without the lock: the thread reads on meanwhile

    def stop(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        """Call `_add` for each commit until `_is_closed`, or `_fail`."""
        raise NotImplementedError

    def _batch(self, entry: Entry) -> SourceBatch:
        """Return the rows of a commit."""
        raise NotImplementedError

    def _add(self, entry: Entry, size: int) -> None:
        """Make `poll` return an entry, and wait until more may be read."""
        with self._changed:
            self._ready.append((entry, size))
            self._size += size
            self._changed.wait_for(lambda: self._is_closed or self._size < self._most)

    def _fail(self, failure: SessionError) -> None:
        """Make `poll` raise an error after all entries."""
        with self._changed:
            self._failure = failure


@dataclass(frozen=True)
class Remote:
    """A source that reads the changes at an address, as events or as messages of a WebSocket."""

    url: str
    token: str = field(repr=False)
    is_socket: bool
    authority: str | None
    name: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        plain = "ws" if self.is_socket else "http"
        if parts.scheme not in (plain, f"{plain}s") or not parts.hostname:
            raise ConfigError(f"{self.url!r:.200} is not an address: it begins with {plain}:// or {plain}s://")
        if parts.scheme == plain and parts.hostname not in LOOPBACK:
            raise ConfigError(f"{self.url!r:.200}: the token would be sent in the clear; use {plain}s://")
        Access.check_token("the token", self.token, shortest=0)  # what is short enough to guess, its server refuses
        if self.authority is not None:
            try:
                ssl.create_default_context(cafile=self.authority)
            except OSError as error:
                raise ConfigError(f"authority={self.authority!r} is not a file of certificates: {error}") from None

    def open(self, target: Target, position: Position | None) -> RemoteReader:
        """Return a reader that resumes after the message `position`. Raises ConfigError if a library is missing."""
        library = "websockets" if self.is_socket else "httpx"
        with needed_for(self.name, "http"):
            import_module(library)
        return RemoteReader(self, target, str(position) if position else None)

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context that checks the certificate of the other side, None without TLS."""
        if urlsplit(self.url).scheme in ("http", "ws"):
            return None
        return ssl.create_default_context(cafile=self.authority)


class RemoteReader(ReadAhead[list[dict[str, Any]]]):
    """Reads the changes, of each commit some messages, in a thread of its own."""

    def __init__(self, source: Remote, target: Target, mark: str | None) -> None:
        self._source = source
        self._target = target
        self._converter = Converter(target.names, target.types, of_json, target.required)
        self._mark = mark
        """The id of the last message that `poll` has returned."""
        self._read = mark
        """The id of the last message that the thread has read."""
        self._socket: socket.socket | None = None
        """The connection as soon as there is one, so that closing it ends what waits for an answer."""
        self._end_by: float | None = None
        """When `close` gives up waiting for the thread, which may wait for a connection."""
        self._end = ""
        """The reason of the other session for the end of the connection."""
        super().__init__(source.name, AHEAD)

    def stop(self) -> None:
        super().stop()
        with self._changed:
            self._end_by = clock.monotonic() + CLOSING if self._end_by is None else self._end_by
            self._shut()

    def close(self) -> None:
        """End the thread, and wait for it, unless `stop` was called long ago."""
        self.stop()
        assert self._end_by is not None
        self._thread.join(max(0.0, self._end_by - clock.monotonic()))

    # From messages to rows

    def _batch(self, entry: list[dict[str, Any]]) -> SourceBatch:
        last = entry[-1]
        if last["kind"] == "snapshot" and self._mark is not None:
            raise SessionError(
                f"{self._source.url} no longer has the changes after {self._mark}, so this table cannot follow it: "
                f"drop the table, and read it again"
            )
        missing = [name for name in self._target.names if name not in last["columns"]]
        if missing:
            raise DataError(f"{self._source.url} has the columns {', '.join(last['columns'])}, but no {missing[0]!r}")
        # All messages of a commit have the same columns.
        places = [last["columns"].index(name) for name in self._target.names]
        rows = [row for message in entry for row in message["rows"]]
        diffs = [diff for message in entry for diff in message["diffs"]]
        given = [[row[place] for row in rows] for place in places]
        columns, wrong = self._converter.convert(given, len(rows))
        rejected = [
            Rejected(self._source.url, last["commit"], json.dumps(rows[row]), why) for row, why in sorted(wrong.items())
        ]
        if rejected and self._target.stops:
            # A commit is taken whole or not at all, so the position stays before it.
            return SourceBatch((), rejected[:1], self._mark or "")
        diffs = [diff for row, diff in enumerate(diffs) if row not in wrong]
        self._mark = last["id"]
        return SourceBatch(changes_of(self._target, columns, np.array(diffs, np.int64)), rejected, last["id"])

    # The thread

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._is_closed:
            before, self._end = self._read, ""
            try:
                self._follow()
                why = self._end or "the connection has ended"
            except Exception as error:  # an error of the network may pass
                why = f"{type(error).__name__}: {error}"
                if not _is_of_network(error):
                    stop = error if isinstance(error, SessionError) else SessionError(f"{self._source.url}: {why}")
                    self._fail(stop)
                    return
            finally:
                self._keep(None)
            self.note = f"is not connected: {why}"
            pause = FIRST_PAUSE if self._read != before else min(2 * pause, LONGEST_PAUSE)
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, pause)

    def _follow(self) -> None:
        parts: list[dict[str, Any]] = []
        for text in self._messages() if self._source.is_socket else self._events():
            message = _checked(text, self._source.url)
            if message["kind"] == "end":
                self._end = message["error"]
                continue
            parts.append(message)
            if message["more"]:
                continue
            # Only now: if the connection is lost within a commit, all of its messages are sent again.
            self._read = message["id"]
            self._add(parts, sum(len(part["rows"]) for part in parts))
            parts = []
            if self._is_closed:
                return

    def _events(self) -> Iterator[str]:
        import httpx

        headers = {"Authorization": f"Bearer {self._source.token}", "Accept": "text/event-stream"}
        if self._read is not None:
            headers["Last-Event-ID"] = self._read
        context = self._source.context()
        with (
            httpx.Client(verify=True if context is None else context, timeout=SILENCE, trust_env=False) as client,
            client.stream("GET", self._source.url, headers=headers, extensions={"trace": self._trace}) as response,
        ):
            if response.status_code != 200:
                self._refuse(response.status_code, response.read().decode("utf-8", "replace"))
                return
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise SessionError(f"{self._source.url} is not a stream of changes: its address ends in /changes/NAME")
            self.note = ""
            data: list[str] = []
            for line in _lines(response.iter_bytes()):
                if line.startswith("data:"):
                    data.append(line[5:].removeprefix(" "))
                elif not line and data:
                    yield "\n".join(data)
                    data = []

    def _messages(self) -> Iterator[str]:
        from websockets.exceptions import ConnectionClosed, InvalidStatus
        from websockets.frames import CloseCode
        from websockets.sync.client import connect

        url, parts = self._source.url, urlsplit(self._source.url)
        if self._read is not None:
            url += f"{'&' if parts.query else '?'}after={quote(self._read)}"
        headers, context = {"Authorization": f"Bearer {self._source.token}"}, self._source.context()
        sock = socket.create_connection((parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]), CONNECTING)
        sock.settimeout(None)
        self._keep(sock)
        try:
            with connect(
                url, sock=sock, additional_headers=headers, ssl=context, max_size=LARGEST, proxy=None, max_queue=4
            ) as connection:
                self.note = ""
                for text in connection:
                    yield text if isinstance(text, str) else text.decode()
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code == CloseCode.MESSAGE_TOO_BIG:
                raise SessionError(
                    f"{url} sends a message of more than {LARGEST:,} bytes: use server_sent_events"
                ) from None
            if error.rcvd is not None and error.rcvd.code == GONE:
                raise SessionError(f"{url}: {self._end or error.rcvd.reason}") from None
        except InvalidStatus as error:
            self._refuse(error.response.status_code, bytes(error.response.body or b"").decode("utf-8", "replace"))

    def _trace(self, event: str, about: Mapping[str, Any]) -> None:
        """Keep the connection of a request. httpx calls this for each step."""
        if event == "connection.connect_tcp.complete":
            self._keep(about["return_value"].get_extra_info("socket"))

    def _keep(self, connection: socket.socket | None) -> None:
        """Keep a connection, in a socket of its own, because TLS closes the one that it wraps; or None."""
        with self._changed:
            if self._socket is not None:
                self._socket.close()
            self._socket = None if connection is None else connection.dup()
            if self._is_closed:  # `stop` may have come before there was a connection
                self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _refuse(self, status: int, body: str) -> None:
        """Raise SessionError for an answer that another attempt would not change."""
        if status < 500 and status != 429:
            raise SessionError(f"{self._source.url} answers {status}: {body:.300}")
        self._end = f"{status}: {body:.300}"


def changes_of(target: Target, columns: Sequence[Column], diffs: Column) -> list[Statement]:
    """Return rows, and the change in how often each occurs, as changes of a table.

    >>> rows = [np.array([3, 4])]
    >>> changes_of(Target("t", ("x",), ("int64",), 1), rows, np.array([2, -1]))
    [(<Kind.DELETE: 'delete'>, (array([4]),)), (<Kind.INSERT: 'insert'>, (array([3, 3]),))]
    """
    removed = (Kind.DELETE_KEYS, target.keys) if target.replaces else (Kind.DELETE, len(columns))
    found = []
    # Deletions first: that of a key would otherwise remove the row that the same commit has put in its place.
    for times, (kind, width) in ((-diffs, removed), (diffs, (target.kind, len(columns)))):
        rows = np.repeat(np.arange(len(diffs)), np.maximum(times, 0))
        if len(rows):
            found.append((kind, tuple(column[rows] for column in columns[:width])))
    return found


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines in some bytes. A separator of Unicode in a text ends no line, as it would for httpx.

    >>> list(_lines([b"data: a\\xc2\\x85", b"b\\r\\n\\nda", b"ta"]))
    ['data: a\\x85b', '']
    """
    begun: list[bytes] = []
    for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join((*begun, end)).decode().removesuffix("\r")
            begun = []
        begun.append(rest)


def _is_of_network(error: BaseException) -> bool:
    """Return whether an error concerns the connection, not the certificate of the other side."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return False
        cause = cause.__cause__ or cause.__context__
    library = type(error).__module__.partition(".")[0]
    return isinstance(error, (OSError, EOFError)) or library in ("httpx", "httpcore", "websockets")


def _checked(text: str, url: str) -> dict[str, Any]:
    """Return the message in a text. Raises SessionError if the text is not a message of a session."""
    try:
        message: dict[str, Any] = json.loads(text)
        if message["kind"] == "end":
            message = {"kind": "end", "error": str(message["error"])}
        else:
            rows, width = message["rows"], len(message["columns"])
            is_good = message["kind"] in ("snapshot", "changes") and len(rows) == len(message["diffs"])
            is_good = is_good and all(type(diff) is int and abs(diff) < 1 << 63 for diff in message["diffs"])
            is_good = is_good and all(type(row) is list and len(row) == width for row in rows)
            is_good = is_good and type(message["commit"]) is int and (message["more"] or type(message["id"]) is str)
            if not is_good:
                raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SessionError(f"{url} sends something that is not a message of a session: {text!r:.200}") from None
    return message


def server_sent_events(url: str, *, token: str, authority: str | None = None, name: str | None = None) -> Remote:
    """Return a source that follows a table or view of another session, served at the address `.../changes/NAME`.

    `token` is that of the other session. `authority` is the file of the certificates to trust with `https://`; by
    default those of the system are trusted. `name` is by default the address. Raises ConfigError if the address is not
    valid, or would send the token in the clear.

    >>> server_sent_events("http://127.0.0.1:8700/changes/spent", token="...", name="spent").name
    'spent'
    """
    return Remote(url, token, False, authority, name or url)


def websocket(url: str, *, token: str, authority: str | None = None, name: str | None = None) -> Remote:
    """Return a source like that of `server_sent_events`, but from a WebSocket at `ws://` or `wss://`.

    >>> websocket("ws://192.0.2.1/changes/spent", token="...")
    Traceback (most recent call last):
    timely.errors.ConfigError: 'ws://192.0.2.1/changes/spent': the token would be sent in the clear; use wss://
    """
    return Remote(url, token, True, authority, name or url)
