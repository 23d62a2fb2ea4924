"""Messages of pgoutput are decoded as they were encoded, byte by byte."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from differential.session.sources.pgoutput import (
    EPOCH_SECONDS,
    UNCHANGED,
    Commit,
    Keepalive,
    RelationMessage,
    RowMessage,
    Truncate,
    decode,
    place,
    shown,
    status,
    unwrapped,
)

VALUES = st.lists(st.one_of(st.none(), st.just(UNCHANGED), st.text()), max_size=4)


def encoded(values: list[Any]) -> bytes:
    """The oracle: a row in the documented format."""
    data = struct.pack("!H", len(values))
    for value in values:
        if isinstance(value, str):
            data += b"t" + struct.pack("!I", len(value.encode())) + value.encode()
        else:
            data += b"n" if value is None else b"u"
    return data


@settings(max_examples=20, deadline=None)
@given(old=VALUES, new=VALUES, kind=st.sampled_from("KO"))
def test_rows_are_what_was_encoded(old: list[Any], new: list[Any], kind: str) -> None:
    head = struct.pack("!I", 7)
    assert decode(b"I" + head + b"N" + encoded(new)) == RowMessage(7, None, tuple(new))
    assert decode(b"D" + head + kind.encode() + encoded(old)) == RowMessage(7, tuple(old), None)
    both = b"U" + head + kind.encode() + encoded(old) + b"N" + encoded(new)
    assert decode(both) == RowMessage(7, tuple(old), tuple(new))


def test_other_messages_are_decoded() -> None:
    columns = b"\1id\0" + struct.pack("!Ii", 23, -1) + b"\0note\0" + struct.pack("!Ii", 25, -1)
    relation = b"R" + struct.pack("!I", 7) + b"public\0stock\0d" + struct.pack("!H", 2) + columns
    assert decode(relation) == RelationMessage(7, "public", "stock", "d", ("id", "note"), (23, 25), (True, False))
    assert decode(b"C\0" + struct.pack("!QQQ", 5, 6, 0)) == Commit(5, 6)
    assert decode(b"T" + struct.pack("!IBII", 2, 0, 7, 8)) == Truncate((7, 8))
    assert decode(b"Y....") is None
    with pytest.raises(ValueError, match="unknown kind b'Z'"):
        decode(b"Z")


def test_the_stream_carries_messages_and_signs_of_life() -> None:
    assert unwrapped(b"w" + bytes(24) + b"message") == b"message"
    assert unwrapped(b"k" + struct.pack("!QQB", 9, 0, 1)) == Keepalive(9, True)
    with pytest.raises(ValueError, match="unknown kind"):
        unwrapped(b"?")
    sent = struct.unpack("!cQQQQB", status(9, EPOCH_SECONDS + 2.0))
    assert sent == (b"r", 9, 9, 9, 2_000_000, 0)
    assert all(place(shown(number)) == number for number in (0, 1, 2**32 - 1, 2**32, 2**63))


def test_a_message_that_is_cut_off_is_refused_wherever_it_is_cut() -> None:
    values = struct.pack("!H", 2) + b"t" + struct.pack("!I", 3) + b"nut" + b"n"
    columns = b"\1id\0" + struct.pack("!Ii", 23, -1)
    for message in (
        b"B" + struct.pack("!QQI", 5, 6, 7),
        b"C\0" + struct.pack("!QQQ", 5, 6, 0),
        b"R" + struct.pack("!I", 7) + b"public\0stock\0d" + struct.pack("!H", 1) + columns,
        b"I" + struct.pack("!I", 7) + b"N" + values,
        b"U" + struct.pack("!I", 7) + b"O" + values + b"N" + values,
        b"D" + struct.pack("!I", 7) + b"K" + values,
        b"T" + struct.pack("!IBII", 2, 0, 7, 8),
    ):
        assert decode(message) is not None
        for length in range(len(message) - 4 if message[:1] == b"R" else len(message)):
            with pytest.raises(ValueError, match=r"incomplete|unknown kind|without its values"):
                decode(message[:length])


def test_a_value_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind b'x'"):
        decode(b"I" + struct.pack("!I", 7) + b"N" + struct.pack("!H", 1) + b"x")
