"""A process that is killed, stopped or cut off is named by all others in time, and one that computes is not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from select import select
from threading import Thread

import pytest

from tests.integration.launcher.launching import PROMPT, ROOT
from tests.unit.communication.networks import configs, free_ports, ipc_configs, together
from timely.communication.sockets import SocketAllocator, socket_allocators
from timely.errors import PeerLost
from timely.run.failure import PEER_FAILED

SCRIPT = ROOT / "tests/integration/worker/scripts/bystander.py"
Start = Callable[..., list[subprocess.Popen[str]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def begin(processes: int, *arguments: str, peer_timeout: float = 5.0) -> list[subprocess.Popen[str]]:
        for config in ipc_configs(tmp_path, processes, rendezvous_seconds=40.0, peer_timeout=peer_timeout):
            environ = os.environ | {"PYTHONPATH": str(ROOT)} | config.to_environ()
            command = [sys.executable, str(SCRIPT), *arguments]
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            started.append(subprocess.Popen(command, env=environ, text=True, **pipes))  # type: ignore[call-overload]
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == f"pid {process.pid}\n"
        return started

    yield begin
    for process in started:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("signum", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_stopped_or_killed_process_is_named_by_all_others_within_five_seconds(
    start: Start, processes: int, signum: signal.Signals
) -> None:
    begun = clock.monotonic()
    *others, victim = start(processes, "idle", "60")
    starting = clock.monotonic() - begun
    clock.sleep(0.3)
    begun = clock.monotonic()
    victim.send_signal(signum)
    for process in others:
        _, error = process.communicate(timeout=40)
        assert clock.monotonic() - begun < max(PROMPT, 4 * starting)
        assert process.returncode == PEER_FAILED
        name = f"process {processes - 1} (worker {processes - 1} at ipc://"
        assert name in error
        assert f"pid {victim.pid}) is gone" in error


@pytest.mark.lengthy
def test_a_stopped_process_is_named_by_one_in_a_long_operator(start: Start) -> None:
    first, victim = start(2, "held", "0", peer_timeout=2.0)
    victim.send_signal(signal.SIGSTOP)
    assert first.stderr is not None
    assert select([first.stderr], [], [], 40)[0]
    assert f"pid {victim.pid}) is gone" in first.stderr.readline()
    assert first.poll() is None
    first.communicate(timeout=40)
    assert first.returncode == PEER_FAILED


@pytest.mark.slow
def test_a_process_in_a_long_operator_is_not_taken_for_dead(start: Start) -> None:
    running = start(2, "computing", "12")
    for process in running:
        output, error = process.communicate(timeout=40)
        assert (process.returncode, error) == (0, "")
        assert "computed" in output


class Cable:
    """Passes bytes on between two ports until it is cut; then neither end receives anything."""

    def __init__(self, port: int, target: int) -> None:
        self._target = target
        self._whole = True
        self._listener = socket.create_server(("127.0.0.1", port))
        self._ends: list[socket.socket] = [self._listener]
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole = False

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._ends.append(near)
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except ConnectionRefusedError:  # not there yet
                    near.close()
                    continue
                self._ends.append(far)
                for source, sink in ((near, far), (far, near)):
                    Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self._whole:
                    sink.sendall(data)


def test_a_process_cut_off_is_named_on_both_sides() -> None:
    ports = free_ports(4)
    cables = [Cable(ports[2], ports[0]), Cable(ports[3], ports[1])]
    first = configs([f"tcp://127.0.0.1:{port}" for port in (ports[0], ports[3])], peer_timeout=2.0)[0]
    second = configs([f"tcp://127.0.0.1:{port}" for port in (ports[2], ports[1])], peer_timeout=2.0)[1]
    allocators: list[SocketAllocator] = []
    try:
        for config in (first, second):
            allocators += socket_allocators(config)
        assert together([allocator.connect for allocator in allocators]) == [None, None]
        for cable in cables:
            cable.cut()
        begun = clock.monotonic()
        errors = together([lambda each=each: _listen(each) for each in allocators])  # type: ignore[misc]
        assert clock.monotonic() - begun < 20
        for process, error in enumerate(errors):
            assert isinstance(error, PeerLost)
            assert f"process {1 - process} " in str(error)
    finally:
        for allocator in allocators:
            allocator.close()
        for cable in cables:
            cable.close()


def _listen(allocator: SocketAllocator) -> None:
    end = clock.monotonic() + 40
    while clock.monotonic() < end:
        allocator.receive()
        allocator.park(None)
