"""The sockets of a worker: where they listen or connect, with which keys, and with which limits."""

from __future__ import annotations

import os
from threading import Lock

import zmq

from timely.communication.curve import Authenticator, load_keys
from timely.communication.endpoint import advice, bindable
from timely.communication.watch import heartbeat
from timely.config import Config, split_tcp
from timely.errors import TransportError

_THIS_THREAD = 0
"""The process id by which the system's scheduler identifies the calling thread."""


class SharedContext:
    """The ZeroMQ context of a process, terminated with the last of its allocators.

    Its thread has the policy SCHED_BATCH: if it is woken on a processor where a worker runs, it does not preempt the
    worker but waits until the worker yields (`SocketAllocator.send`). This costs less than preempting the worker at a
    random moment.
    """

    def __init__(self, sockets: int, curve_dir: str | None = None) -> None:
        """Make a context with room for `sockets` sockets; given keys, admit only clients that have the secret key."""
        keys = None if curve_dir is None else load_keys(curve_dir)
        self.zmq: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.zmq.max_sockets = sockets
        if _may_be_batch():
            self.zmq.set(zmq.THREAD_SCHED_POLICY, os.SCHED_BATCH)
        self._authenticator = None if keys is None else Authenticator(self.zmq, keys[0])
        self._users = 0
        self._is_abandoned = False
        self._lock = Lock()

    def acquire(self) -> None:
        with self._lock:
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            # Before `term`, which waits until all sockets of the context are closed, that of the authenticator, too.
            if self._authenticator is not None:
                self._authenticator.close()
            if not self._is_abandoned:
                self.zmq.term()

    def abandon(self) -> None:
        """Leave the context open for the rest of the process, because an interrupt came while sockets were made.

        ZeroMQ may then have a socket that nobody knows, and to end the context would wait for it for ever.
        """
        self._is_abandoned = True
        _ABANDONED.append(self.zmq)


_ABANDONED: list[zmq.Context[zmq.Socket[bytes]]] = []
"""Contexts that are never ended: PyZMQ ends one that nothing refers to."""


def _may_be_batch() -> bool:
    """Return whether threads made by this one may use the policy SCHED_BATCH. ZeroMQ aborts if they may not."""
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(_THIS_THREAD) != os.SCHED_OTHER:
        return False
    try:
        os.sched_setscheduler(_THIS_THREAD, os.SCHED_BATCH, os.sched_param(0))
        os.sched_setscheduler(_THIS_THREAD, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        return False
    return True


def bind_pull(pull: zmq.Socket[bytes], config: Config, worker: int) -> None:
    """Let a socket receive what is sent to a worker of this process; raise `TransportError` if it cannot listen."""
    endpoint = config.endpoint(worker)
    _protect(pull, config, endpoint, is_server=True)
    # Options count for what is bound afterwards. No bound on messages: a heartbeat must not wait behind them, and the
    # window of each `Link` bounds what peers send.
    pull.maxmsgsize = config.frame_bytes
    pull.rcvhwm = 0
    try:
        pull.bind(bindable(endpoint))
    except (OSError, zmq.ZMQError) as error:
        reason = error.strerror if isinstance(error, OSError) else zmq.strerror(error.errno or 0)
        raise TransportError(
            f"process {config.process} cannot listen at {endpoint}: {reason}; {advice(error.errno)}"
        ) from None


def connect_push(push: zmq.Socket[bytes], config: Config, worker: int) -> None:
    """Let a socket send to a worker of another process, as soon as and as long as that worker listens."""
    endpoint = config.endpoint(worker)
    push.sndhwm = 0  # no bound: the window of the `Link` is one, and no acknowledgement may be dropped
    push.reconnect_ivl = 20
    push.reconnect_ivl_max = 500
    heartbeat(push, config.peer_timeout)
    _protect(push, config, endpoint, is_server=False)
    push.connect(endpoint)


def _protect(end: zmq.Socket[bytes], config: Config, endpoint: str, *, is_server: bool) -> None:
    """Set the options for TCP: the address family, and the keys if there are any."""
    if not endpoint.startswith("tcp://"):
        return
    host, _ = split_tcp(endpoint)
    end.ipv6 = host.startswith("[")
    if config.curve_dir is not None:
        public, secret = load_keys(config.curve_dir)
        end.curve_publickey, end.curve_secretkey = public, secret
        if is_server:
            end.curve_server = True
        else:
            end.curve_serverkey = public
