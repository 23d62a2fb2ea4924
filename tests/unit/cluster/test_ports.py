"""Ports that nobody else chooses, and that this process can still listen at."""

from __future__ import annotations

import errno
import socket

import pytest
import zmq

from timely.cluster import place
from timely.cluster.place import reserved_ports
from timely.errors import TransportError


def test_reservations_do_not_overlap_and_permit_to_listen() -> None:
    firsts = [reserved_ports(3) for _ in range(10)]
    taken = {port for first in firsts for port in range(first, first + 3)}
    assert len(taken) == 30
    for port in (firsts[0], firsts[0] + 2):
        with socket.socket() as other:
            with pytest.raises(OSError) as caught:
                other.bind(("", port))
            assert caught.value.errno == errno.EADDRINUSE
        with zmq.Context() as context, context.socket(zmq.PULL) as pull:
            pull.bind(f"tcp://127.0.0.1:{port}")


def test_ports_in_use_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = reserved_ports(1)
    monkeypatch.setattr(place, "FIRST", first)
    monkeypatch.setattr(place, "LAST", first + 2)
    with pytest.raises(TransportError, match="no 1 consecutive free ports"):
        reserved_ports(1)
