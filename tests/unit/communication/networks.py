"""Networks of every kind, inside one test."""

from __future__ import annotations

import os
import socket
import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.simulated import SimulatedNetwork
from tests.invariants import check
from timely.communication.allocator import Allocator
from timely.communication.message import Message
from timely.communication.sockets import SocketAllocator, socket_allocators
from timely.communication.thread import thread_allocators
from timely.config import Config

Arrived = list[tuple[int, Message]]

KINDS = ("threads", "simulated", "ipc", "tcp", "mixed", "rings", "mixed rings")


_ports = count(10_000 + os.getpid() * 101 % 20_000)


def free_ports(count: int) -> list[int]:
    """Return ports without a listener, each only once, and below those that the system assigns itself."""
    ports: list[int] = []
    while len(ports) < count:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port := next(_ports)))
            ports.append(port)
    return ports


def has_newer_addresses() -> bool:
    """Return whether this machine can be reached at ::1."""
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


def configs(addresses: Sequence[str], **changes: Any) -> list[Config]:
    """Return the configuration of each process at these addresses. Without `rings`, messages go by sockets."""
    settings: dict[str, Any] = {"generation": "test", "rendezvous_seconds": 30.0, "rings": False} | changes
    return [
        Config(processes=len(addresses), process=process, addresses=tuple(addresses), **settings)
        for process in range(len(addresses))
    ]


def ipc_configs(directory: Path, processes: int = 2, **changes: Any) -> list[Config]:
    return configs([f"ipc://{directory}/{process}" for process in range(processes)], **changes)


def tcp_configs(processes: int = 2, **changes: Any) -> list[Config]:
    return configs([f"tcp://127.0.0.1:{port}" for port in free_ports(processes)], **changes)


def together(actions: Sequence[Callable[[], object]]) -> list[BaseException | None]:
    """Run the actions at the same time, within 50 s; return the error of each."""
    errors: list[BaseException | None] = [None] * len(actions)

    def attempt(position: int) -> None:
        try:
            actions[position]()
        except BaseException as error:
            errors[position] = error

    threads = [Thread(target=attempt, args=(position,), daemon=True) for position in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
        assert not thread.is_alive(), "an action has not ended after 50 s"
    return errors


class Hellos:
    """The hellos of workers, some of which arrive only after all have met, and would wake workers later."""

    def __init__(self, allocators: Sequence[SocketAllocator]) -> None:
        self._sent: list[object] = []
        self._received: list[object] = []
        for allocator in allocators:
            meeting = allocator._meeting
            meeting.send = self._noting(self._sent, meeting.send)
            receive = self._noting(self._received, meeting.receive_hello)
            meeting.receive_hello = receive  # type: ignore[method-assign]

    def are_over(self) -> bool:
        """Return whether every hello that was sent has been received."""
        return len(self._received) == len(self._sent)

    @staticmethod
    def _noting(notes: list[object], action: Callable[..., None]) -> Callable[..., None]:
        def act(*arguments: object) -> None:
            notes.append(arguments)
            action(*arguments)

        return act


@contextmanager
def connected(settings: Sequence[Config]) -> Iterator[list[Allocator]]:
    """Yield the connected allocators of all workers of all processes, as one list."""
    allocators: list[SocketAllocator] = []
    try:
        for config in settings:
            allocators += socket_allocators(config)
        hellos = Hellos(allocators)
        errors = together([allocator.connect for allocator in allocators])
        assert errors == [None] * len(allocators)
        until(hellos.are_over, allocators)
        yield [*allocators]
        for allocator in allocators:
            for link in allocator._links.values():
                check(link)
    finally:
        for allocator in allocators:
            allocator.close()


@contextmanager
def network(kind: str, directory: Path, queue_bytes: int = 1 << 20) -> Iterator[list[Allocator]]:
    """Yield the allocators of a connected network: two workers, or four if it mixes processes and threads."""
    if kind == "threads":
        yield list(thread_allocators(2, queue_bytes))
    elif kind == "simulated":
        yield list(SimulatedNetwork(2, seed=1, queue_bytes=queue_bytes).allocators)
    else:
        settings = {
            "ipc": lambda: ipc_configs(directory, queue_bytes=queue_bytes),
            "tcp": lambda: tcp_configs(queue_bytes=queue_bytes),
            "mixed": lambda: ipc_configs(directory, queue_bytes=queue_bytes, workers=2),
            "rings": lambda: ipc_configs(directory, queue_bytes=queue_bytes, rings=True),
            "mixed rings": lambda: ipc_configs(directory, queue_bytes=queue_bytes, workers=2, rings=True),
        }[kind]()
        with connected(settings) as allocators:
            yield allocators


def collect(allocator: Allocator, count: int, others: Sequence[Allocator] = ()) -> Arrived:
    """Receive until `count` messages have arrived; `others` receive too, so that they send queued messages."""
    return exchange([allocator, *others], [count, *[0] * len(others)])[0]


def exchange(allocators: Sequence[Allocator], counts: Sequence[int], seconds: float = 30.0) -> list[Arrived]:
    """Let all allocators receive in turn until each has exactly its count of messages."""
    arrived: list[Arrived] = [[] for _ in allocators]
    end = clock.monotonic() + seconds
    while [len(messages) for messages in arrived] != list(counts):
        for allocator, messages in zip(allocators, arrived, strict=True):
            messages += allocator.receive()
        allocators[0].park(0.002)
        assert clock.monotonic() < end, f"{[len(messages) for messages in arrived]} of {counts} after {seconds} s"
    return arrived


def until(condition: Callable[[], bool], allocators: Sequence[Allocator], seconds: float = 30.0) -> None:
    """Let all allocators receive until a condition holds."""
    end = clock.monotonic() + seconds
    while not condition():
        for allocator in allocators:
            allocator.receive()
        allocators[0].park(0.005)
        assert clock.monotonic() < end, f"the condition does not hold after {seconds} s"
