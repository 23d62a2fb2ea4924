"""Endpoints that ZeroMQ can bind, and advice about those that it cannot; connections to other listeners."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress

from timely.config import bracketed, split_tcp


def bindable(endpoint: str) -> str:
    """Return an endpoint in a form that ZeroMQ can bind, with names resolved; raise `OSError` if it is in use.

    ZeroMQ itself silently takes over an ipc path, even from a process that still listens there.
    """
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(path) == 0:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        return endpoint
    host, port = split_tcp(endpoint)
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    # An address of IPv4 if there is one: False orders before True.
    *_, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return f"tcp://{bracketed(str(address[0]))}:{port}"


def is_here(endpoint: str) -> bool:
    """Return whether the host of `tcp://HOST:PORT` is this machine."""
    try:
        found = socket.getaddrinfo(split_tcp(endpoint)[0].strip("[]"), 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe, suppress(OSError):
            # The system permits this only for an address of this machine.
            probe.bind(address)
            return True
    return False


def connected(host: str, port: int, timeout: float) -> socket.socket:
    """Return a connection to a listener. Raises `OSError` if there is none within `timeout` seconds.

    If nobody listens at a port that the system may give to outgoing connections, it may connect a socket to itself.
    """
    connection = socket.create_connection((host, port), timeout=timeout)
    if connection.getsockname() == connection.getpeername():
        connection.close()
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
    return connection


def advice(number: int | None) -> str:
    """Return what to do about an address at which this process cannot listen, given the error number."""
    if number == errno.EADDRINUSE:
        return "another program uses it, perhaps an earlier run; end that, or choose another address"
    if number in (errno.EADDRNOTAVAIL, errno.ENODEV, socket.EAI_NONAME):
        return "it is not an address of this machine; check the host file and the process index"
    if number in (errno.ENOENT, errno.ENOTDIR):
        return "make the directory first"
    return "choose another address"
