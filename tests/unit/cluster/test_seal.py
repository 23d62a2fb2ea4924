"""A sealed text is opened as it was, and a changed one never."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from timely.cluster.lines import KeyPairSeal
from timely.errors import TransportError

SEAL = KeyPairSeal(b"p" * 40, b"s" * 40)


@given(st.binary())
def test_what_was_sealed_is_opened_and_fits_into_a_line(text: bytes) -> None:
    line = SEAL.sealed(text)
    assert b"\n" not in line
    assert SEAL.opened(line) == text


@given(st.binary(max_size=50), st.data())
def test_a_changed_line_is_refused(text: bytes, data: st.DataObject) -> None:
    line = bytearray(SEAL.sealed(text))
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[place]))
    try:
        opened = SEAL.opened(bytes(line))
    except TransportError:
        return
    assert opened == text  # the unused bits of the last digit may differ


@given(st.binary())
def test_bytes_that_nobody_sealed_are_refused(line: bytes) -> None:
    with pytest.raises(TransportError):
        SEAL.opened(line)
