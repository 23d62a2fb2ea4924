"""A bell that a poll can wait for."""

from __future__ import annotations

import select

from timely.communication.doorbell import Doorbell


def is_rung(bell: Doorbell) -> bool:
    return bool(select.select([bell], [], [], 0)[0])


def test_a_bell_is_ready_from_a_ring_until_it_is_cleared_and_again() -> None:
    bell = Doorbell()
    for _ in range(2):
        assert not is_rung(bell)
        bell.ring()
        assert is_rung(bell)
        bell.clear()
    bell.clear()
    bell.close()


def test_a_rung_bell_is_not_rung_again() -> None:
    bell = Doorbell()
    for _ in range(3):
        bell.ring()
    assert bell._receiver.recv(64) == b"\0"
    bell.close()


def test_a_bell_may_be_rung_when_it_is_closed() -> None:
    bell = Doorbell()
    bell.close()
    bell.ring()
