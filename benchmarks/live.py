"""The cost of the live page: the processor time of a job while nobody looks, and with the page open.

A program in another process opens the page's stream in every other round, as a browser does, which receives what has
changed twice a second. The work is done without a pause: single changes to a graph whose distances are maintained, each
of which is undone; barriers; or a record along 500 operators in ten chains. Rounds of the same work differ by more than
the page costs. So each step is followed by the same step of a second worker on the same thread, which is not registered
as one that runs: nobody looks at it. By how much longer a step of the first takes than one of the second, which runs
some milliseconds later, is compared in rounds with the page open and without, of which each pair is compared by itself.

The figures are the processor time of a step while nobody looks, the lower quartile of the rounds; by how many percent
the page makes it longer, with the interval that holds the median of all pairs in 19 of 20 cases; the processor time of
the server's thread in percent of a core; and the two together. The second worker uses half of the time, so a share of
each second, as the page takes for many operators, counts twice. What slows both workers alike, because the server uses
the same caches, is not seen.

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
WORKER, TOGETHER = "a step longer by, %", "together, %"
LIMITS = {TOGETHER: 2.0}
CASES = [
    Case("live bfs 100k/1M", "live", {"work": "changes", "rounds": 20, "seconds": 2.0}, limits=LIMITS),
    Case("live barriers", "live", {"work": "barriers", "rounds": 20, "seconds": 2.0}, limits=LIMITS),
    Case("live 500 operators", "live", {"work": "operators", "rounds": 30, "seconds": 2.0}, limits=LIMITS),
    Case("live 500 operators, 8 workers", "live", {"rounds": 6, "seconds": 4.0}, function="pauses"),
]
VIEWER = """
import sys, urllib.request
for _ in sys.stdin:
    with urllib.request.urlopen(sys.argv[1]) as stream:
        for announced, ticks in (("", 3), ("open", int(sys.argv[2]))):  # counting begins after the second look
            if announced:
                print(announced, flush=True)
            while ticks > 0:
                line = stream.readline()
                if not line:
                    sys.exit()  # the page is gone
                ticks -= line.startswith(b"event: tick")
    print("closed", flush=True)
"""
CHAINS, LENGTH, WORKERS = 10, 50, 8

Step = Callable[[], None]
Look = Callable[[str, Step], Callable[[], None]]


def measure(work: str, rounds: int, seconds: float) -> Figures:
    """Return what the page takes of the worker's thread, by step, and of the server's, by second, in percent."""
    with viewer(seconds) as look:
        taken, server = execute_directly(lambda worker: _in_turn(worker, work, (rounds, seconds), look))
    (nobody, nobody_beside), (opened, opened_beside) = np.moveaxis(np.array(taken), 0, 2)
    longer = np.sort(100 * (opened / opened_beside * nobody_beside / nobody - 1))
    outside = max(0, int(rounds / 2 - 0.98 * np.sqrt(rounds)))
    figures = {f"{NOBODY}, us": 1e6 * np.percentile(nobody, 25), WORKER: np.median(longer)}
    figures |= {"at least": longer[outside], "at most": longer[-1 - outside]}
    figures |= {SERVER: 100 * np.median(server), TOGETHER: np.median(longer) + 100 * np.median(server)}
    return {name: float(figure) for name, figure in figures.items()}


def pauses(rounds: int, seconds: float) -> Figures:
    """Return the processor time of a second in both ways, of a job that sleeps most of the time."""
    with viewer(seconds) as look:
        spent = _many(rounds, seconds, look)
    return {f"{way}, % of a core": 100 * float(np.median(each)) for way, each in spent.items()}


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


def _in_turn(
    worker: Worker, work: str, length: tuple[int, float], look: Look
) -> tuple[list[list[tuple[float, float]]], list[float]]:
    """Return what a step of `worker` takes and one of another worker, by round and way; and the server's share."""
    [allocator] = local_allocators(Config())
    another = Worker(allocator, Config())
    definition = {"changes": changes, "barriers": barriers, "operators": operators}[work]
    steps = definition(worker), definition(another)
    rounds, seconds = length
    taken: list[list[tuple[float, float]]] = []
    spent_by_server: list[float] = []
    for number in range(rounds + 1):
        found = {}
        for way in (NOBODY, OPEN) if number % 2 else (OPEN, NOBODY):
            wait = look(way, steps[0])
            end, server, spent, count = clock.monotonic() + seconds, _server(), [0.0, 0.0], 0
            while clock.monotonic() < end:
                count += 1
                for place, step in enumerate(steps):
                    begun = clock.thread_time()
                    step()
                    spent[place] += clock.thread_time() - begun
            if way == OPEN:
                spent_by_server.append((_server() - server) / seconds)
            wait()
            found[way] = spent[0] / count, spent[1] / count
        if number:  # the first round loads code
            taken.append([found[NOBODY], found[OPEN]])
    for each in (worker, another):
        for dataflow in each.dataflows:
            each.drop_dataflow(dataflow)
    return taken, spent_by_server


def _server() -> float:
    """Return the seconds of processor time of the server's thread so far."""
    server = next(thread for thread in enumerate_threads() if thread.name == "timely live page")
    assert server.ident is not None
    return clock.clock_gettime(clock.pthread_getcpuclockid(server.ident))


def barriers(worker: Worker) -> Step:
    """Return a step of a hundred barriers."""
    barrier = Barrier(worker)

    def step() -> None:
        for _ in range(100):
            barrier.wait()

    return step


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
