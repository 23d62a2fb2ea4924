"""What the processes of a session send to each other, over a pair of sockets that nobody else can open.

    coordinator ──► member    calls, in order; whether an item is built; items that fail; interrupt; close
    member ──► coordinator    what a call returns, and what it changed; whether an item can be built; items that fail
                              here, or are gone

Definitions are functions of the program, so cloudpickle sends them. An `Item` is sent as its number and what a member
needs to make an `Item` of its own.
"""

from __future__ import annotations

import pickle
from collections import ChainMap
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import BytesIO
from multiprocessing.connection import Connection
from threading import Lock
from types import CodeType
from typing import Any, ClassVar, NamedTuple

from differential.data.updates import Updates
from differential.extra import needed_for
from differential.session.item import Item
from timely.errors import SessionError


class Message:
    """The kinds of messages."""

    CALL, BUILT, FAIL, CLOSE = "call", "built", "fail", "close"
    NOTE, INTERRUPT = "note", "interrupt"
    RESULT, VOTE, FAILED, LEFT, ENDED = "result", "vote", "failed", "left", "ended"


class MemberCounts(NamedTuple):
    """The counts and the collected changes of a member's part of an item: see `Item.adopt`."""

    number: int
    total: int
    nbytes: int
    changed: list[Updates]


class Channel:
    """One end of the sockets between two processes. Any thread may send; one receives."""

    def __init__(self, connection: Connection, items: Callable[[tuple[Any, ...]], Item | None]) -> None:
        self._connection = connection
        self._items = items
        self._lock = Lock()

    def send(self, data: bytes) -> None:
        """Send a message, unless the other process has ended."""
        with self._lock, suppress(OSError):  # the thread that receives from it notices its end
            self._connection.send_bytes(data)

    def receive(self) -> tuple[Any, ...] | None:
        """Wait for a message; return None at the end of the other process."""
        try:
            data = self._connection.recv_bytes()
        except (EOFError, OSError):
            return None
        message: tuple[Any, ...] = _Unpickler(data, self._items).load()
        return message

    def close(self) -> None:
        self._connection.close()


class SentDefinition:
    """A definition as it is sent. Where it cannot be loaded, a definition arrives that raises SessionError instead.

    So a value that another process cannot load ends no process, and the item is built by none.
    """

    def __init__(self, definition: Callable[..., Any]) -> None:
        self._definition = definition

    def __reduce__(self) -> Any:
        return _loaded, (packed(self._definition),)


def _loaded(data: bytes) -> Any:
    try:
        return pickle.loads(data)[0]
    except Exception as error:
        why = SessionError(
            f"the definition cannot be loaded in another process of the session ({type(error).__name__}: {error}): the "
            "processes have the sys.path that there was when the session was opened, and load values as pickle does"
        )

        def refused(tables: object) -> None:
            raise why

        return refused


def packed(*message: Any) -> bytes:
    """Return a message as bytes. Raises what pickling raises."""
    file = BytesIO()
    _pickler()(file, protocol=pickle.HIGHEST_PROTOCOL).dump(message)
    return file.getvalue()


def portable(error: BaseException | None) -> BaseException | None:
    """Return an error that can be sent to another process: the same one, or a SessionError with its text."""
    if error is None:
        return None
    # Tried here: an error whose class does not fit its arguments can be pickled, and then not be loaded.
    try:
        copy = pickle.loads(packed(error))[0]
    except Exception:
        copy = None
    if type(copy) is type(error) and str(copy) == str(error):
        return error
    return SessionError(f"{type(error).__name__}: {error}")


@cache
def _pickler() -> Any:
    """Return the class that pickles. It needs cloudpickle, which only these sessions need."""
    with needed_for("Session(processes=True), to send definitions to other processes,", "processes"):
        import cloudpickle
    reduced = cloudpickle.Pickler.dispatch_table[CodeType]

    def reduce_code(code: CodeType) -> Any:
        make, arguments, *_ = reduced(code)
        return _code, (make, arguments, code.co_filename)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table: ClassVar[ChainMap[type, Any]] = ChainMap(
            {CodeType: reduce_code}, cloudpickle.Pickler.dispatch_table
        )

        def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
            if not isinstance(value, Item):
                return None
            # In the order in which `SessionMember._item` takes them.
            identity = value.number, value.name, value.kind, value.origin
            columns = value.names, value.shown, value.keys, value.event_time, value.schema.types()
            return *identity, value.peers, *columns

    return Pickler


def _code(make: Callable[..., CodeType], arguments: tuple[Any, ...], file: str) -> CodeType:
    """Return a function's code with the name of its file, which cloudpickle leaves out: errors name the line."""
    return make(*arguments).replace(co_filename=file)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, items: Callable[[tuple[Any, ...]], Item | None]) -> None:
        super().__init__(BytesIO(data))
        self._items = items

    def persistent_load(self, identity: tuple[Any, ...]) -> Item | None:
        return self._items(identity)
