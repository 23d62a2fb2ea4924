"""What ZeroMQ reports about the connections of a socket, on a second socket, its monitor."""

from __future__ import annotations

import sys

import zmq


def next_event(monitor: zmq.Socket[bytes]) -> int:
    """Receive the next event of a monitor, and return its kind: one of `zmq.Event`.

    `zmq.utils.monitor` does so as well, but imports asyncio.

    >>> with zmq.Context() as context, context.socket(zmq.PULL) as socket, socket.get_monitor_socket() as monitor:
    ...     _ = socket.bind("inproc://example"), socket.bind("tcp://127.0.0.1:*")
    ...     zmq.Event(next_event(monitor)).name
    'LISTENING'
    """
    kind_and_value, _ = monitor.recv_multipart()
    return int.from_bytes(kind_and_value[:2], sys.byteorder)
