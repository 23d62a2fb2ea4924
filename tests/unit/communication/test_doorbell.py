"""A bell that a poll can wait for."""

from __future__ import annotations

import select

from timely.communication.doorbell import Doorbell


def is_heard(bell: Doorbell) -> bool:
    return bool(select.select([bell], [], [], 0)[0])


def test_a_bell_is_heard_from_when_it_is_rung_until_it_is_hushed_and_again() -> None:
    bell = Doorbell()
    for _ in range(2):
        assert not is_heard(bell)
        bell.ring()
        assert is_heard(bell)
        bell.hush()
    bell.hush()
    bell.close()


def test_a_bell_that_is_heard_is_not_rung_once_more() -> None:
    bell = Doorbell()
    for _ in range(3):
        bell.ring()
    assert bell._ear.recv(64) == b"\0"
    bell.close()


def test_a_bell_may_be_rung_when_it_is_closed() -> None:
    bell = Doorbell()
    bell.close()
    bell.ring()
