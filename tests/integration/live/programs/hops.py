"""Keeps distances up to date while edges come, for as many seconds as asked; then stops before it advances an input."""

import sys
import time as clock
import warnings

import numpy as np

from differential import Collection, new_input
from differential.graphs import bfs
from timely import execute

SECONDS = float(sys.argv[1])


def program(worker):
    with worker.dataflow("graph") as scope:
        edges, graph = new_input(scope, name="edges")
        probe = bfs(graph, Collection.of(scope, 0)).map(lambda node, distance: distance).count().probe()
    random = np.random.default_rng(worker.index)
    if worker.index == 0:
        warnings.warn("an edge is <b>odd</b>", stacklevel=2)
    end = clock.monotonic() + SECONDS
    epoch = 0
    while clock.monotonic() < end:
        epoch += 1
        edges.insert(random.integers(0, 2000, 200), random.integers(0, 2000, 200))
        edges.advance_to(epoch)
        worker.step_while(lambda: probe.less_than(edges.time))
        clock.sleep(0.01)
    edges.insert(1, 2)
    edges.flush()
    while not sys.argv[2:] and clock.monotonic() < end + 60:
        worker.step_or_park(0.2)


execute(program)
