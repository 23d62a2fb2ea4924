"""The cost of each listener: the processor time of a job while nobody looks, and with each way to look at it.

The same work is done in each way in turn, and each round begins with another way. What the worker's thread takes for a
step is compared with the first way, in which nothing is open. What all other threads of the process take is a share of
a core. Whoever looks is another process, which is not counted. Beginning and ending a listener are not part of the
figures, nor is a time after the beginning. The first way runs twice in each round: the second ratio is as far from 1
as the machine makes equal work differ.

The work is, all on one worker: single changes to a graph whose distances are maintained, each of which is undone
("changes"); a record that moves along 500 operators in ten chains ("operators"); and 200,000 rows that are inserted
into a join and a count, and removed again ("bulk"). A figure is the microseconds of a step: the lower quartile of all
rounds, which what else runs on the machine affects least. A ratio is the median over the rounds of the ratio to the
first way in the same round; its quartiles are beside it. The share of a core is the median.
"""

from __future__ import annotations

import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from benchmarks import live
from benchmarks.graphs import RandomGraph
from benchmarks.harness import Case, Figures, check
from benchmarks.logging import ACTIVATIONS, EVERYTHING, listening
from differential import new_input
from timely import Worker, execute_directly
from timely.live.live import begin_telemetry
from timely.observe.accounts import Account
from timely.services import serve_live

NOTHING, AGAIN, SERVED = "nothing open", "nothing open, again", "page served, nobody looks"
PAGE, TOP, PROMETHEUS, TELEMETRY = "page open", "timely top", "Prometheus, each second", "OpenTelemetry"
PROFILE = "--profile"
LISTENERS = {ACTIVATIONS: "Worker.log, activations", EVERYTHING: "Worker.log, everything"}
WAYS = (NOTHING, AGAIN, SERVED, PAGE, TOP, PROMETHEUS, TELEMETRY, PROFILE, *LISTENERS.values())
OTHERS = ", other threads, % of a core"
LIMITS = {f"{SERVED}, ratio": 1.01, f"{PAGE}, ratio": 1.02}
SENT_EVERY = 15.0
"""How often figures are sent to a collector, in seconds, if the others are measured for one."""
CASES = [
    Case(f"listeners {work}", "listeners", {"work": work, "rounds": 6, "seconds": 1.0}, limits=LIMITS)
    for work in ("changes", "operators", "bulk")
]
VIEWERS = {
    PAGE: """
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1].replace("/?", "/stream?")) as stream:
    while not stream.readline().startswith(b"event: tick"):
        pass
    print("open", flush=True)
    while stream.readline():
        pass
""",
    TOP: """
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.executable, [sys.executable, "-m", "timely", "top", sys.argv[1]])
shown = b""
while b"busy" not in shown:
    shown += os.read(terminal, 65536)
print("open", flush=True)
while os.read(terminal, 65536):
    pass
""",
    PROMETHEUS: """
import sys, time, urllib.request
address = sys.argv[1].replace("/?", "/metrics?")
while True:
    with urllib.request.urlopen(address) as metrics:
        metrics.read()
    print("open", flush=True)
    time.sleep(1)
""",
    TELEMETRY: """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
""",
}
"""Programs that look, in processes of their own. Each prints a line when it has begun."""

Step = Callable[[], None]
Spent = dict[str, list[float]]


def measure(work: str, rounds: int, seconds: float) -> Figures:
    """Return the microseconds of a step and the share of other threads in each way, and the ratios to the first way."""
    spent, beside = execute_directly(lambda worker: _rounds(worker, work, rounds, seconds))
    figures = {f"{way}, us": np.percentile(each, 25) * 1e6 for way, each in spent.items()}
    for way in WAYS[1:]:
        low, middle, high = np.percentile(np.array(spent[way]) / np.array(spent[NOTHING]), (25, 50, 75))
        figures |= {f"{way}, ratio": middle, f"{way}, lower quartile": low, f"{way}, upper quartile": high}
        figures[f"{way}{OTHERS}"] = 100 * np.median(beside[way])
    return {name: float(figure) for name, figure in figures.items()}


def _rounds(worker: Worker, work: str, rounds: int, seconds: float) -> tuple[Spent, Spent]:
    """Return the processor time of a step on the worker, and that of other threads in a second, by way and round."""
    step = {"changes": live.changes, "operators": live.operators, "bulk": _bulk}[work](worker)
    spent: Spent = {way: [] for way in WAYS}
    beside: Spent = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for place in range(len(WAYS)):
            way = WAYS[(number + place) % len(WAYS)]
            with looking(worker, way):
                _run(step, seconds)  # whoever looks receives everything first, and then what changes
                wall, all_threads, own_thread = clock.monotonic(), clock.process_time(), clock.thread_time()
                steps = _run(step, seconds * (SENT_EVERY if way == TELEMETRY else 1))
                own_thread = clock.thread_time() - own_thread
                all_threads, wall = clock.process_time() - all_threads, clock.monotonic() - wall
            if number:  # the first round loads code
                spent[way].append(own_thread / steps)
                beside[way].append((all_threads - own_thread) / wall)
    for dataflow in worker.dataflows:
        worker.drop_dataflow(dataflow)
    return spent, beside


def _run(step: Step, seconds: float) -> int:
    """Run steps for so many seconds; return how many."""
    steps, end = 0, clock.monotonic() + seconds
    while clock.monotonic() < end:
        step()
        steps += 1
    return steps


@contextmanager
def looking(worker: Worker, way: str) -> Iterator[None]:
    """Run the block while somebody looks in one of the ways."""
    with ExitStack() as open_things:
        if way in (SERVED, PAGE, TOP, PROMETHEUS):
            page = serve_live(0)
            open_things.callback(page.close)
            if way != SERVED:
                open_things.enter_context(_viewer(way, page.url))
        elif way == TELEMETRY:
            port = open_things.enter_context(_viewer(way, ""))
            open_things.callback(begin_telemetry(f"http://127.0.0.1:{port}", 0))
        elif way == PROFILE:
            open_things.callback(Account(worker).close)
        for kinds, name in LISTENERS.items():
            if way == name:
                open_things.enter_context(listening(worker.log, kinds))
        yield


@contextmanager
def _viewer(way: str, url: str) -> Iterator[str]:
    """Run the program of somebody who looks; yield the line that it prints when it has begun."""
    command = [sys.executable, "-c", VIEWERS[way], url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        check(bool(line), f"{way}: whoever looks has ended")
        try:
            yield line.strip()
        finally:
            process.kill()


def _bulk(worker: Worker) -> Step:
    """Return a step that inserts many rows into a join with as many others and into a count, and removes them again."""
    rows, keys = 200_000, 20_000
    graph = RandomGraph(keys, 2 * rows)
    source, target = graph.initial
    with worker.dataflow("bulk") as scope:
        first, ours = new_input(scope, name="ours")
        second, theirs = new_input(scope, name="theirs")
        joined = ours.join_map(theirs, lambda key, our, their: their).stream.probe()
        counted = ours.count().stream.probe()

    def give(session: Any, columns: Any, diff: int) -> None:
        session.update(*columns, diff=diff)
        for each in (first, second):
            each.advance_to(each.epoch + 1)
        worker.step_while(lambda: joined.less_than(first.epoch) or counted.less_than(first.epoch))

    give(second, (source[rows:], target[rows:]), 1)

    def step() -> None:
        give(first, (source[:rows], target[:rows]), 1)
        give(first, (source[:rows], target[:rows]), -1)

    return step
