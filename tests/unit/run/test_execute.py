"""Programs on workers of one process and of several, and how their errors end a run."""

from __future__ import annotations

import importlib
import socket
import sys
import threading
import time as clock
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from tests.unit.communication.networks import collect, free_ports, ipc_configs, together
from timely import new_input
from timely.communication.allocator import broadcast
from timely.communication.message import ProgressUpdate
from timely.config import Config
from timely.dataflow.probe import Probe
from timely.errors import (
    BuildError,
    ConfigError,
    DataError,
    OperatorError,
    PeerFailed,
    ShapeError,
    StalledError,
    TransportError,
)
from timely.run.execute import execute, execute_directly, execute_from_args, local_allocators, run
from timely.worker.worker import Worker


def cluster(directory: Path, *builds: Callable[[Worker], Any], **changes: Any) -> list[BaseException | None]:
    """Run one program for each process, on threads in place of processes; return how each ended."""
    settings = ipc_configs(directory, processes=len(builds), **changes)

    def process(position: int) -> Callable[[], object]:
        return lambda: run(local_allocators(settings[position])[0], builds[position], settings[position])

    return together([process(position) for position in range(len(builds))])


def wait(worker: Worker) -> None:
    while True:
        worker.allocator.receive()
        worker.allocator.park(None)


def fail(worker: Worker) -> None:
    raise ValueError("nothing of the kind")


def test_one_worker_runs_in_the_calling_thread() -> None:
    assert execute_directly(lambda worker: threading.current_thread()) is threading.current_thread()


def test_a_process_that_runs_workers_keeps_pieces_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[None] = []
    monkeypatch.setattr(sys.modules["timely.run.execute"], "keep_pieces", lambda: asked.append(None))
    execute(lambda worker: None, Config(workers=2))
    assert len(asked) == 1


def test_several_workers_run_in_threads_and_their_results_come_in_order() -> None:
    def build(worker: Worker) -> int:
        clock.sleep(0.02 * (worker.peers - worker.index))
        return worker.index

    assert execute(build, Config(workers=3)) == [0, 1, 2]


def test_the_configuration_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMELY_WORKERS", "2")
    assert execute(lambda worker: worker.peers) == [2, 2]
    assert execute_from_args(["-w", "3"], lambda worker: worker.peers) == [3, 3, 3]
    assert execute_directly(lambda worker: worker.peers) == 1


def test_an_error_of_the_only_worker_is_raised_unchanged() -> None:
    with pytest.raises(ValueError, match="nothing of the kind"):
        execute_directly(fail)


def test_an_error_of_one_thread_ends_all_and_is_raised_itself() -> None:
    ended: list[int] = []

    def build(worker: Worker) -> None:
        if worker.index == 1:
            fail(worker)
        try:
            wait(worker)
        finally:
            ended.append(worker.index)

    with pytest.raises(ValueError, match="nothing of the kind"):
        execute(build, Config(workers=3))
    assert sorted(ended) == [0, 2]


def test_an_error_of_one_of_several_threads_has_a_note_of_the_worker() -> None:
    def build(worker: Worker) -> None:
        if worker.index == 1:
            fail(worker)
        wait(worker)

    with pytest.raises(ValueError, match="nothing of the kind") as raised:
        execute(build, Config(workers=3))
    assert raised.value.__notes__ == ["the program failed on worker 1 of 3"]
    with pytest.raises(ValueError, match="nothing of the kind") as raised:
        execute_directly(fail)
    assert not hasattr(raised.value, "__notes__")


def test_an_error_that_names_its_worker_has_no_note_of_it() -> None:
    def build(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream(range(3)).map(lambda number: number / "none")

    with pytest.raises(OperatorError, match=r"on worker \d of 2") as raised:
        execute(build, Config(workers=2))
    assert not hasattr(raised.value, "__notes__")


def test_an_interrupt_while_threads_are_started_ends_those_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            if started:
                raise KeyboardInterrupt
            started.append(self)
            super().start()

    monkeypatch.setattr(sys.modules["timely.run.execute"], "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(wait, Config(workers=2))
    started[0].join(30)
    assert not started[0].is_alive()


def test_an_error_is_raised_even_if_its_worker_takes_long_to_close_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = sys.modules["timely.run.execute"]
    monkeypatch.setattr(module, "THREADS_SECONDS", 0.2)
    may_close = threading.Event()

    def allocators(config: Config) -> Any:
        made = local_allocators(config)
        close = made[0].close
        monkeypatch.setattr(made[0], "close", lambda: (may_close.wait(10), close()))
        return made

    monkeypatch.setattr(module, "local_allocators", allocators)

    def program(worker: Worker) -> None:
        if worker.index == 0:
            sys.exit(5)
        wait(worker)

    try:
        with pytest.raises(SystemExit) as ended:
            execute(program, Config(workers=2))
    finally:
        may_close.set()
    assert ended.value.code == 5


def test_a_thread_stuck_in_user_code_does_not_hide_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["timely.run.execute"], "THREADS_SECONDS", 0.2)
    release = threading.Event()

    def build(worker: Worker) -> None:
        if worker.index == 1:
            fail(worker)
        release.wait(30)

    start = clock.perf_counter()
    with pytest.raises(ValueError, match="nothing of the kind"):
        execute(build, Config(workers=2))
    assert clock.perf_counter() - start < 20
    release.set()


def test_a_worker_that_had_peers_cannot_be_used_after_its_run() -> None:
    def program(worker: Worker) -> tuple[Worker, Probe]:
        with worker.dataflow() as scope:
            return worker, scope.to_stream([1]).exchange().probe()

    for worker, probe in execute(program, Config(workers=2)):
        message = rf"worker {worker.index} of 2 has ended with its run, and parted from its peers"
        with pytest.raises(BuildError, match=message), worker.dataflow():
            pass
        with pytest.raises(StalledError, match=message):
            worker.step()
        with pytest.raises(StalledError, match=message):
            worker.step_or_park()
        with pytest.raises(StalledError, match=message):
            worker.step_while(lambda: True)
        assert probe.done()


def test_a_single_worker_goes_on_after_its_run() -> None:
    worker = execute_directly(lambda worker: worker)
    found: list[int] = []
    with worker.dataflow() as scope:
        probe = scope.to_stream([1]).inspect(found.append).probe()
    worker.step_while(lambda: not probe.done())
    assert found == [1]


def test_processes_wait_for_each_other_before_they_leave(tmp_path: Path) -> None:
    received: list[object] = []
    ends = threading.Event()

    def quick(worker: Worker) -> None:
        broadcast(worker.allocator, ProgressUpdate(7, ()))
        ends.set()

    def slow(worker: Worker) -> None:
        ends.wait(30)
        clock.sleep(0.05)
        received.extend(collect(worker.allocator, 1))

    assert cluster(tmp_path, quick, slow) == [None, None]
    assert received == [(0, ProgressUpdate(7, ()))]


def test_a_farewell_that_waits_for_room_is_sent_before_leaving(tmp_path: Path) -> None:
    def drops(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = new_input(scope)
            stream.exchange(lambda number: number * 0 + 1).probe()
        if worker.index == 0:
            for _ in range(20):
                numbers.send(np.arange(10_000))
            numbers.flush()
        assert worker.allocator.has_unsent == (worker.index == 0)
        worker.drop_dataflow(scope.dataflow)

    assert cluster(tmp_path, drops, drops, queue_bytes=1 << 16) == [None, None]


def test_an_error_in_one_process_reaches_all_others_with_its_line(tmp_path: Path) -> None:
    first, second, third = cluster(tmp_path, wait, fail, wait)
    assert isinstance(second, ValueError)
    for error in (first, third):
        assert isinstance(error, PeerFailed)
        assert "worker 1 failed: ValueError: nothing of the kind (" in str(error)
        assert "test_execute.py:" in str(error)


def test_a_refusal_in_one_process_reaches_the_others_with_the_same_message(tmp_path: Path) -> None:
    def refuse(worker: Worker) -> None:
        raise DataError("column 3 is not a column")

    first, _ = cluster(tmp_path, wait, refuse)
    assert str(first) == "worker 1 failed: column 3 is not a column"


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_a_worker_that_built_fewer_dataflows_is_an_error_on_both_sides(tmp_path: Path, delay: float) -> None:
    def nothing(worker: Worker) -> None:
        clock.sleep(delay)

    def one_dataflow(worker: Worker) -> None:
        with worker.dataflow() as scope:
            new_input(scope)
        wait(worker)

    first, second = cluster(tmp_path, nothing, one_dataflow)
    assert isinstance(first, ShapeError)
    assert "worker 0 ended after building 0 dataflows, but worker 1 built 1" in str(first)
    assert isinstance(second, PeerFailed)
    assert "every worker must build the same dataflows" in str(second)


def test_runs_of_one_process_do_not_count_among_those_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process may run something on its own before it meets the others."""
    generations: list[str] = []

    def refuse(config: Config) -> Any:
        generations.append(config.generation)
        raise TransportError("no peers here")

    addresses = tuple(f"tcp://127.0.0.1:{port}" for port in free_ports(2))
    config = Config(processes=2, addresses=addresses, generation=uuid4().hex)
    monkeypatch.setattr(importlib.import_module("timely.run.execute"), "local_allocators", refuse)
    for settled in (config, config, replace(config, processes=1), config):
        with pytest.raises(TransportError):
            execute(lambda worker: None, settled)
    assert [each.partition(".")[2] for each in generations] == ["0", "1", "", "2"]


def test_a_value_that_is_not_a_configuration_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Config\(workers=2\), not 2"):
        execute(fail, 2)  # type: ignore[arg-type]


def test_a_page_that_cannot_be_served_leaves_no_address_in_use() -> None:
    first, second = free_ports(2)
    addresses = (f"tcp://127.0.0.1:{first}", f"tcp://127.0.0.1:{second}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = Config(processes=2, addresses=addresses, live=str(taken.getsockname()[1]))
        with pytest.raises(ConfigError, match="Address already in use"):
            execute(lambda worker: None, config)
    socket.create_server(("127.0.0.1", first)).close()


def test_arguments_after_the_program_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"takes the arguments first: execute_from_args\(sys.argv\[1:\], program\)"):
        execute_from_args(lambda worker: worker.peers, ["-w", "3"])  # type: ignore[arg-type]
