"""The messages of PostgreSQL's plugin `pgoutput`, protocol version 1, and of the replication protocol.

Nothing here has a connection. The values of columns are texts, None for nulls, and `UNCHANGED` for large values that an
update leaves unchanged, which the server does not send.

>>> decode(b"B" + struct.pack("!QQI", 7, 0, 3))
Begin(commit=7, transaction=3)
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

EPOCH_SECONDS: Final = 946_684_800
"""The beginning of PostgreSQL's clock, 2000-01-01, in seconds since 1970."""


class Unchanged:
    """The type of `UNCHANGED`."""

    def __repr__(self) -> str:
        return "unchanged"


UNCHANGED: Final = Unchanged()
Values = tuple[Any, ...]


class Begin(NamedTuple):
    """A transaction begins. `commit` is the place of its end in the log."""

    commit: int
    transaction: int


class Commit(NamedTuple):
    """A transaction is complete: the place of its end in the log, and the one after it."""

    commit: int
    end: int


class RelationMessage(NamedTuple):
    """A table as of the changes that follow: the names and type OIDs of its columns, and its replica identity.

    `number` is the OID of the table. `identity` is "d" (the primary key), "i" (an index), "f" (the whole row) or "n"
    (none).
    """

    number: int
    schema: str
    table: str
    identity: str
    columns: tuple[str, ...]
    types: tuple[int, ...]
    is_key: tuple[bool, ...]


class RowMessage(NamedTuple):
    """A change of a row. `old` has its former values, if the server sends them: all, or only those of the identity."""

    relation: int
    old: Values | None
    new: Values | None


class Truncate(NamedTuple):
    """Tables are emptied."""

    relations: tuple[int, ...]


Message = Begin | Commit | RelationMessage | RowMessage | Truncate


def decode(data: bytes) -> Message | None:
    """Return a message, or None for one that does not matter here.

    Raises ValueError for an unknown kind of message, and for one that is not complete.
    """
    try:
        return _decoded(data)
    except (struct.error, IndexError) as error:
        raise ValueError(f"an incomplete message: {error}") from error


def _decoded(data: bytes) -> Message | None:
    kind, at = data[:1], 1
    if kind == b"B":
        commit, _, transaction = struct.unpack_from("!QQI", data, at)
        return Begin(commit, transaction)
    if kind == b"C":
        _, commit, end, _ = struct.unpack_from("!BQQQ", data, at)
        return Commit(commit, end)
    if kind == b"R":
        return _relation(data)
    if kind in (b"I", b"U", b"D"):
        (relation,) = struct.unpack_from("!I", data, at)
        at += 4
        parts: dict[bytes, Values] = {}
        while at < len(data):
            tag = data[at : at + 1]
            parts[tag], at = _values(data, at + 1)
        if b"N" not in parts if kind != b"D" else not parts:
            raise ValueError("a change of a row without its values")
        # The former values are whole ("O") or those of the identity ("K"). An update that leaves both has neither.
        return RowMessage(relation, parts.get(b"O", parts.get(b"K")), parts.get(b"N"))
    if kind == b"T":
        count, _ = struct.unpack_from("!IB", data, at)
        return Truncate(struct.unpack_from(f"!{count}I", data, at + 5))
    if kind in (b"Y", b"O", b"M"):  # a type, an origin, a message of a program
        return None
    raise ValueError(f"a message of the unknown kind {kind!r}")


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.find(b"\0", at)
    if end < 0:
        raise ValueError("an incomplete name")
    return data[at:end].decode(), end + 1


def _relation(data: bytes) -> RelationMessage:
    (number,) = struct.unpack_from("!I", data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity, count = struct.unpack_from("!cH", data, at)
    at += 3
    columns, types, is_key = [], [], []
    for _ in range(count):
        is_key.append(bool(data[at] & 1))
        name, at = _text(data, at + 1)
        (of,) = struct.unpack_from("!I", data, at)
        at += 8
        columns.append(name)
        types.append(of)
    return RelationMessage(number, schema, table, identity.decode(), tuple(columns), tuple(types), tuple(is_key))


def _values(data: bytes, at: int) -> tuple[Values, int]:
    """Return the values of a row, and the place after them."""
    (count,) = struct.unpack_from("!H", data, at)
    at += 2
    values: list[Any] = []
    for _ in range(count):
        kind = data[at : at + 1]
        at += 1
        if kind == b"t":
            (length,) = struct.unpack_from("!I", data, at)
            at += 4
            if at + length > len(data):
                raise ValueError("an incomplete value")
            values.append(data[at : at + length].decode())
            at += length
        elif kind in (b"n", b"u"):
            values.append(None if kind == b"n" else UNCHANGED)
        else:
            raise ValueError(f"a value of the unknown kind {kind!r}")
    return tuple(values), at


class Keepalive(NamedTuple):
    """The server has sent everything up to `end`. `wants_answer` is whether it requests an answer."""

    end: int
    wants_answer: bool


def unwrapped(data: bytes) -> bytes | Keepalive:
    """Return the message that the replication protocol carries: one of the plugin as bytes.

    Raises ValueError for an unknown kind.
    """
    if data[:1] == b"w":
        return data[25:]  # after the kind, two places in the log and a time
    if data[:1] == b"k":
        end, _, wants_answer = struct.unpack_from("!QQB", data, 1)
        return Keepalive(end, bool(wants_answer))
    raise ValueError(f"a message of the unknown kind {data[:1]!r}")


def status(confirmed: int, seconds: float) -> bytes:
    """Return the message that everything before a place in the log is durable here, at a time in seconds since 1970.

    >>> len(status(7, EPOCH_SECONDS))
    34
    """
    clock = int((seconds - EPOCH_SECONDS) * 1_000_000)
    return b"r" + struct.pack("!QQQQB", confirmed, confirmed, confirmed, clock, 0)


def place(text: str) -> int:
    """Return a place in the log as a number.

    >>> place("1/2A"), shown(place("1/2A"))
    (4294967338, '1/2A')
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def shown(number: int) -> str:
    """Return a place in the log as PostgreSQL writes it."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
