"""The actor that Ray starts for each process of a run: it runs a program in itself, or a script in a child.

Nothing here needs Ray, which makes an actor of the class (`timely.cluster.ray`).
"""

from __future__ import annotations

import os
import signal
import time as clock
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, NamedTuple

from timely.cluster.place import reserved_ports
from timely.communication.curve import write_keys
from timely.communication.notes import Notes
from timely.config import Config
from timely.run.child import Child
from timely.run.directory import run_directory
from timely.run.environment import STATE_VARIABLE
from timely.run.execute import execute

POLL_SECONDS = 0.5
TERMINATE_SECONDS = 3.0


class Ended(NamedTuple):
    """How a child ended. If `is_echo`, it did because of a peer, which reports the cause."""

    status: int
    is_echo: bool
    description: str


class Orders(NamedTuple):
    """What the driver passes to an actor: its configuration, the keys of the run, and the directory of state."""

    config: Config
    public: bytes
    secret: bytes
    state: str | None


class Actor:
    """One process of a run."""

    def __init__(self) -> None:
        self._port = 0
        self._held = ExitStack()
        self._child: Child | None = None
        self._output: SimpleQueue[tuple[bool, bytes]] = SimpleQueue()
        self._readers: list[Thread] = []

    def reserve(self, workers: int) -> tuple[int, int]:
        """Return a port that this process and the following ones can use for its workers, and the process id."""
        # Kept for all attempts: reserved ports are held until this process ends.
        self._port = self._port or reserved_ports(workers)
        return self._port, os.getpid()

    def run(self, orders: Orders, program: Callable[..., Any]) -> list[Any]:
        """Run a program here; return what its workers return."""
        with run_directory(orders.config.workers) as directory:
            return execute(program, _prepared(orders, directory))

    def start(self, orders: Orders, arguments: Sequence[str], directory: str) -> None:
        """Start a child that runs a script, in the given directory if this machine has it."""
        self.end()
        if os.path.isdir(directory):
            os.chdir(directory)
        private = self._held.enter_context(run_directory(orders.config.workers))
        # The child reads one end. When this process dies, however that happens, the other end is closed.
        lifeline, held = os.pipe()
        self._held.callback(os.close, held)
        try:
            self._child = Child(_prepared(orders, private), arguments, Notes(private), lifeline)
        finally:
            os.close(lifeline)
        self._output = SimpleQueue()
        streams = ((False, self._child.process.stdout), (True, self._child.process.stderr))
        self._readers = [Thread(target=self._read, args=stream, daemon=True) for stream in streams]
        for reader in self._readers:
            reader.start()

    def _read(self, is_error: bool, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._output.put((is_error, line))

    def poll(self) -> tuple[list[tuple[bool, bytes]], Ended | None]:
        """Return what the child has printed, as (is an error, line), and how it has ended if it has.

        Waits for one of both, or for `POLL_SECONDS`.
        """
        child = self._child
        assert child is not None
        end = clock.monotonic() + POLL_SECONDS
        while True:
            # In this order: what a child has printed before its end is in the queue once its readers have ended.
            child.status = child.process.poll()
            if child.status is not None:
                for reader in self._readers:
                    reader.join(POLL_SECONDS)
            lines = self._printed(0.02)
            if child.status is not None:
                return lines, Ended(child.status, child.is_echo(), child.describe() if child.status else "")
            if lines or clock.monotonic() >= end:
                return lines, None

    def _printed(self, seconds: float) -> list[tuple[bool, bytes]]:
        """Return the lines that are there, and wait for the first one. More that arrive meanwhile are left."""
        lines = []
        with suppress(Empty):
            lines.append(self._output.get(timeout=seconds))
            lines += [self._output.get_nowait() for _ in range(self._output.qsize())]
        return lines

    def end(self) -> None:
        """End the child, if there is one: in order, or by force after `TERMINATE_SECONDS`."""
        child, self._child = self._child, None
        if child is not None:
            end = clock.monotonic() + TERMINATE_SECONDS
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
            while child.process.poll() is None and clock.monotonic() < end:
                clock.sleep(0.02)
            if child.process.poll() is None:
                child.process.kill()
            child.process.wait()
        self._held.close()


def _prepared(orders: Orders, directory: Path) -> Config:
    """Return the configuration of this process, with keys in a private directory; set the directory of state."""
    if orders.state is None:
        os.environ.pop(STATE_VARIABLE, None)
    else:
        os.environ[STATE_VARIABLE] = orders.state
    write_keys(str(directory), orders.public, orders.secret)
    return replace(orders.config, curve_dir=str(directory))
