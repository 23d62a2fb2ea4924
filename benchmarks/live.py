"""The cost of the live page: the processor time of a job while nobody looks, and with the page open.

A program in another process opens the page's stream in every other round, as a browser does, which receives what has
changed twice a second. The processor time is that of the whole process with its server, and not that of the viewer. The
work is a number of barriers, or of single changes to a graph whose distances are maintained, each of which is undone:
small activations without a pause, of which counting is the largest share. The ratio is that of the lower quartiles of
all rounds, which what else runs on the machine affects least; that of pairs of rounds that follow each other is shown
beside it, and the processor time of the server's thread, which is a part of the difference.

With 500 operators, in ten chains along which records move without a pause, rounds differ by more than the page costs.
So each step is followed by the same step of a second worker on the same thread, which is not registered as one that
runs: nobody looks at it. What the first takes beyond the second, which runs some milliseconds later, is compared in
rounds with the page open and without, of which each pair is compared by itself. The figures are processor time by time
that passes: of the worker's thread, with the interval that holds the median of all pairs in 19 of 20 cases; of the
server's thread; and of both. What slows both workers alike, because the server uses the same caches, is not seen.

The page of a job with 500 operators on 8 workers, which does nothing but pass on a record now and then, is measured in
seconds of processor time by second, with nobody and with the page open.
"""

from __future__ import annotations

import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from select import select
from threading import Barrier as Together, enumerate as enumerate_threads
from typing import Any

import numpy as np

from benchmarks import bfs
from benchmarks.graphs import RandomGraph
from benchmarks.harness import Case, Figures, check
from differential import new_input
from timely import Barrier, Config, Pipeline, Worker, execute, execute_directly, new_input as new_stream
from timely.run.execute import local_allocators
from timely.services import serve_live

NOBODY, OPEN, SERVER = "nobody", "page open", "server, % of a core"
WORKER, TOGETHER = "worker, % of a core", "together, % of a core"
LIMITS = {f"{OPEN}, ratio": 1.02}
CASES = [
    Case("live bfs 100k/1M", "live", {"work": "changes", "rounds": 16, "seconds": 2.0}, limits=LIMITS),
    Case("live barriers", "live", {"work": "barriers", "rounds": 16, "seconds": 2.0}, limits=LIMITS),
    Case(
        "live 500 operators",
        "live",
        {"rounds": 30, "seconds": 2.0},
        function="beside_another",
        limits={TOGETHER: 2.0},
    ),
    Case("live 500 operators, 8 workers", "live", {"work": "many", "rounds": 6, "seconds": 4.0}),
]
VIEWER = """
import sys, urllib.request
for _ in sys.stdin:
    with urllib.request.urlopen(sys.argv[1]) as stream:
        for announced, ticks in (("", 3), ("open", int(sys.argv[2]))):  # counting begins after the second look
            if announced:
                print(announced, flush=True)
            while ticks > 0:
                ticks -= stream.readline().startswith(b"event: tick")
    print("closed", flush=True)
"""
CHAINS, LENGTH, WORKERS = 10, 50, 8

Step = Callable[[], None]
Look = Callable[[str, Step], Callable[[], None]]


def measure(work: str, rounds: int, seconds: float) -> Figures:
    """Return the processor time in both ways: of a step in microseconds, or of a second; and the ratio."""
    with viewer(seconds) as look:
        if work == "many":
            spent = _many(rounds, seconds, look)
            return {f"{way}, % of a core": 100 * float(np.median(each)) for way, each in spent.items()}
        spent_by_server: list[float] = []
        spent = execute_directly(
            lambda worker: _steps(worker, _work(worker, work), (rounds, seconds), look, spent_by_server)
        )
    figures = {f"{way}, us": float(np.percentile(each, 25)) * 1e6 for way, each in spent.items()}
    ratios = np.array(spent[OPEN]) / np.array(spent[NOBODY])
    figures[f"{OPEN}, ratio"] = figures[f"{OPEN}, us"] / figures[f"{NOBODY}, us"]
    return figures | {"median of pairs": float(np.median(ratios)), SERVER: 100 * float(np.median(spent_by_server))}


@contextmanager
def viewer(seconds: float) -> Iterator[Look]:
    """Yield a function that begins to look in one of the ways, and returns one that waits until that is over.

    Until it has begun, what it is called with is called: a worker that has nothing to do meanwhile would count all that
    it does first. Nobody looks only half a second after the last viewer has gone.
    """
    page = serve_live(0)
    url = page.url.replace("/?", "/stream?")
    command = [sys.executable, "-c", VIEWER, url, str(int(2 * seconds) + 1)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, answers = process.stdin, process.stdout
        assert asked is not None
        assert answers is not None

        def answer(expected: str) -> None:
            check(answers.readline() == f"{expected}\n", "the viewer has lost the page")

        def look(way: str, go_on: Step) -> Callable[[], None]:
            if way == NOBODY:
                end = clock.monotonic() + 1.0
                while clock.monotonic() < end:
                    go_on()
                return lambda: None
            print("look", file=asked, flush=True)
            while not select([answers], [], [], 0)[0]:
                go_on()
            answer("open")
            return lambda: answer("closed")

        yield look
        asked.close()
    page.close()


def beside_another(rounds: int, seconds: float) -> Figures:
    """Return what the page of 500 operators takes of the worker's thread and of the server's, in percent of a core."""
    with viewer(seconds) as look:
        taken, server = execute_directly(lambda worker: _in_turn(worker, (rounds, seconds), look))
    (nobody, nobody_beside), (opened, opened_beside) = np.moveaxis(np.array(taken), 0, 2)
    shares = np.sort(100 * (opened - opened_beside * nobody / nobody_beside) / seconds)
    outside = max(0, int(rounds / 2 - 0.98 * np.sqrt(rounds)))
    figures = {WORKER: np.median(shares), "at least": shares[outside], "at most": shares[-1 - outside]}
    figures |= {SERVER: 100 * np.median(server), TOGETHER: np.median(shares) + 100 * np.median(server)}
    return {name: float(figure) for name, figure in figures.items()}


def _in_turn(
    worker: Worker, length: tuple[int, float], look: Look
) -> tuple[list[list[tuple[float, float]]], list[float]]:
    """Return the processor time of steps of `worker` and of another one, by round and way; and the server's share."""
    [allocator] = local_allocators(Config())
    another = Worker(allocator, Config())
    steps = operators(worker), operators(another)
    rounds, seconds = length
    taken: list[list[tuple[float, float]]] = []
    spent_by_server: list[float] = []
    for number in range(rounds + 1):
        found = {}
        for way in (NOBODY, OPEN) if number % 2 else (OPEN, NOBODY):
            wait = look(way, steps[0])
            end, server, spent = clock.monotonic() + seconds, _server(), [0.0, 0.0]
            while clock.monotonic() < end:
                for place, step in enumerate(steps):
                    begun = clock.thread_time()
                    step()
                    spent[place] += clock.thread_time() - begun
            if way == OPEN:
                spent_by_server.append((_server() - server) / seconds)
            wait()
            found[way] = spent[0], spent[1]
        if number:  # the first round loads code
            taken.append([found[NOBODY], found[OPEN]])
    for each in (worker, another):
        for dataflow in each.dataflows:
            each.drop_dataflow(dataflow)
    return taken, spent_by_server


def _work(worker: Worker, work: str) -> Step:
    return Barrier(worker).wait if work == "barriers" else changes(worker)


def _server() -> float:
    """Return the seconds of processor time of the server's thread so far."""
    server = next(thread for thread in enumerate_threads() if thread.name == "timely live page")
    assert server.ident is not None
    return clock.clock_gettime(clock.pthread_getcpuclockid(server.ident))


def _steps(
    worker: Worker,
    step: Step,
    length: tuple[int, float],
    look: Look,
    spent_by_server: list[float],
) -> dict[str, list[float]]:
    """Return the seconds of processor time of a step in each round and way, and of the server in a second."""
    rounds, seconds = length
    spent: dict[str, list[float]] = {NOBODY: [], OPEN: []}
    for number in range(rounds + 1):
        for way in (NOBODY, OPEN) if number % 2 else (OPEN, NOBODY):
            wait = look(way, step)
            steps, end, begun, server = 0, clock.monotonic() + seconds, clock.process_time(), _server()
            while clock.monotonic() < end:
                step()
                steps += 1
            taken = (clock.process_time() - begun) / steps
            if way == OPEN:
                spent_by_server.append((_server() - server) / seconds)
            wait()
            if number:  # the first round loads code
                spent[way].append(taken)
    for dataflow in worker.dataflows:
        worker.drop_dataflow(dataflow)
    return spent


def changes(worker: Worker) -> Step:
    """Return a step that changes an edge of a graph whose distances are maintained, and undoes it."""
    graph = RandomGraph(100_000, 1_000_000)
    with worker.dataflow() as scope:
        edges, stream = new_input(scope, name="edges")
        probe = bfs.definition(stream).stream.probe()

    def go_on() -> None:
        edges.advance_to(edges.epoch + 1)
        worker.step_while(lambda: probe.less_than(edges.time))

    edges.insert(*graph.initial)
    go_on()
    numbers = iter(range(1 << 60))

    def step() -> None:
        source, target, diffs = graph.changes(next(numbers) % 1000, 1)
        edges.update(source, target, diff=diffs)
        go_on()
        edges.update(source, target, diff=-diffs)
        go_on()

    return step


def operators(worker: Worker) -> Step:
    """Return a step that moves one record along each of ten chains of 50 operators."""
    with worker.dataflow("many") as scope:
        numbers, stream = new_stream(scope, name="numbers")
        probes = [chain(scope, stream).probe() for _ in range(CHAINS)]

    def step() -> None:
        numbers.send(numbers.epoch)
        numbers.advance_to(numbers.epoch + 1)
        worker.step_while(lambda: any(probe.less_than(numbers.epoch) for probe in probes))

    return step


def _many(rounds: int, seconds: float, look: Look) -> dict[str, list[float]]:
    """Return the seconds of processor time of a second, in each round and way."""
    together = Together(WORKERS)  # only one worker waits for the page: the others would use up their time meanwhile

    def program(worker: Worker) -> dict[str, list[float]]:
        with worker.dataflow("many") as scope:
            numbers, stream = new_stream(scope, name="numbers")
            probes = [chain(scope, stream).probe() for _ in range(CHAINS)]
        spent: dict[str, list[float]] = {NOBODY: [], OPEN: []}
        for number in range(rounds + 1):
            for way in (NOBODY, OPEN) if number % 2 else (OPEN, NOBODY):
                wait = look(way, lambda: clock.sleep(0.01)) if worker.index == 0 else None
                together.wait()
                begun, end = clock.process_time(), clock.monotonic() + seconds
                epochs = 0
                while epochs < int(10 * seconds):
                    numbers.send(epochs)
                    numbers.advance_to(numbers.epoch + 1)
                    worker.step_while(lambda: any(probe.less_than(numbers.epoch) for probe in probes))
                    epochs += 1
                    clock.sleep(max(0.0, (end - clock.monotonic()) / (int(10 * seconds) - epochs + 1)))
                share = (clock.process_time() - begun) / (clock.monotonic() - end + seconds)
                if wait is not None:
                    wait()
                    if number:
                        spent[way].append(share)
        return spent

    return execute(program, Config(workers=WORKERS))[0]


def chain(scope: Any, stream: Any) -> Any:
    """Return a stream after a chain of operators that pass on what they receive."""
    for _ in range(LENGTH - 1):
        stream = stream.unary(Pipeline(), _forward, name="forward")
    return stream.exchange()


def _forward(input: Any, output: Any) -> None:
    for capability, batch in input:
        output.give(capability, batch)
