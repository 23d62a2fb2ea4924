"""Logistic regression by gradient descent: a loop around an `all_reduce`.

    timely run -n 2 examples/logistic.py
    python examples/logistic.py --data measurements.csv --csv weights.csv --check

The rows are in 8 shards that are divided among the workers. In each round of a loop, each worker computes the gradients
of its shards, `all_reduce` adds up those of all workers, and all workers take the same step, until the gradient is
small. With 1, 2, 4 and 8 workers the weights are equal bit by bit, as the digest printed at the end shows.

Without `--data`, points are generated with the probabilities of a known model. In a file the last column is the label,
0 or 1, and all others are numbers: a `.npy` file of a matrix, or CSV with or without a header. Its columns are scaled
to mean 0 and deviation 1, a constant column gets weight 0, and the intercept is one more weight.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from logistic_data import SHARDS, Data, Shard, Vector, generated, load, sigmoid

from differential.jobs import at_least, counted
from differential.jobs.command_line import add_output, options_from, parser_of
from differential.jobs.outputs import Result, reporting
from differential.jobs.picture import BLUE, GREY, nothing
from differential.jobs.status import CheckError, status_of
from timely import Worker, execute

EPILOG = """\
The answer has a record (feature, weight, mean, deviation) for each column: the weight is that of the scaled column,
(value - mean) / deviation. The changes are those of (feature, weight) in each round of the loop, from 0.

examples:
  {program} --rows 1000000 --features 50 --tree
  {program} --data measurements.npy --check --plot descent.svg
  timely run -n 2 {script}   (two processes)
"""

CLOSE = 1e-6
"""By how much weights may differ that were computed by additions in another order."""


def gradient(weights: Vector, points: Any, labels: Vector) -> Vector:
    """Return the gradient of the loss, summed over the points."""
    total: Vector = (sigmoid(points @ weights) - labels) @ points
    return total


class Descent:
    """The part of one worker: the loop, and its last state."""

    def __init__(self, worker: Worker, data: Data, tolerance: float, rounds: int, tree: bool) -> None:
        self.rounds = 0
        self.weights = np.zeros(data.features)
        self.steps: list[Vector] = []
        """The weights after each round."""
        self.norms: list[float] = []
        """The norm of the mean gradient in each round."""
        self._own = [data.shard(number) for number in range(SHARDS) if number * worker.peers // SHARDS == worker.index]
        self._data = data
        self._current = np.zeros(data.features)
        with worker.dataflow("descent") as scope:
            start = scope.to_stream([self._current])
            with scope.iterative() as loop:
                handle, again = loop.loop_variable()
                parts = start.enter(loop).concat(again).flat_map(self._gradients)
                total = parts.all_reduce_by_tree() if tree else parts.all_reduce()
                state = total.map(self._step).inspect_time(self._note)
                unfinished = state.filter(lambda state: state[-1] > tolerance).map(lambda state: state[:-1])
                unfinished.branch_when(lambda time: time[1] + 1 >= rounds)[0].connect_loop(handle)

    def _gradients(self, weights: Vector) -> Sequence[Vector]:
        return [gradient(weights, *each) for each in self._own]

    def _step(self, total: Vector) -> Vector:
        """Return the weights after a step, and the norm of the mean gradient."""
        mean = total / self._data.rows
        self._current = self._current - self._data.step * mean
        return np.append(self._current, np.linalg.norm(mean))

    def _note(self, time: tuple[int, ...], state: Any) -> None:
        self.rounds, self.weights = time[1] + 1, state[:-1]
        self.steps.append(self.weights)
        self.norms.append(float(state[-1]))


def program(
    worker: Worker,
    data: Data,
    tolerance: float,
    rounds: int,
    tree: bool,
    shown: Callable[[Descent], None] = lambda _: None,
) -> Descent:
    """Return the descent at its end; `shown` is called with it while it runs."""
    descent = Descent(worker, data, tolerance, rounds, tree)
    while worker.step_or_park():
        shown(descent)
    return descent


def check(descent: Descent, data: Data) -> None:
    """Raise CheckError if as many rounds in plain NumPy, over all points at once, end at other weights."""
    shards: list[Shard] = [data.shard(number) for number in range(SHARDS)]
    points, labels = np.concatenate([each for each, _ in shards]), np.concatenate([each for _, each in shards])
    weights = np.zeros(data.features)
    for _ in range(descent.rounds):
        weights = weights - data.step * gradient(weights, points, labels) / data.rows
    if not np.allclose(weights, descent.weights, rtol=CLOSE, atol=CLOSE):
        worst = int(np.abs(weights - descent.weights).argmax())
        found, expected = descent.weights[worst], weights[worst]
        raise CheckError(f"the weight of {data.names[worst]} is {found}, from scratch {expected}")


def digest(weights: Vector) -> str:
    """Return a short text that differs if any bit of the weights differs."""
    return hashlib.blake2b(weights.tobytes(), digest_size=8).hexdigest()


def run(worker: Worker, data: Data, options: argparse.Namespace) -> None:
    """Fit the model on one worker; worker 0 prints and writes the answer."""
    is_first = worker.index == 0
    with reporting("logistic", worker, options) as (outputs, display):
        display.begin("descending", options.rounds)
        given = options.tolerance, options.rounds, options.tree
        written = 0

        def shown(running: Descent) -> None:
            nonlocal written
            display.advance(running.rounds, running.rounds, "rounds")
            while outputs.has_changes and written < running.rounds:
                outputs.change(written, *changes(data.names, running.steps, written))
                written += 1

        descent = program(worker, data, *given, shown)
        shown(descent)
        if is_first:
            if options.check:
                check(descent, data)
            outputs.finish(result(descent, data, options.tolerance))


def changes(names: Sequence[str], steps: Sequence[Vector], number: int) -> tuple[list[tuple[str, float]], list[int]]:
    """Return how the records (feature, weight) change in a round: the records, and by how much each occurs more."""
    before = steps[number - 1] if number else np.full(len(names), np.nan)
    records, diffs = [], []
    for name, old, new in zip(names, before.tolist(), steps[number].tolist()):
        if old != new:
            records += [(name, new)] if not number else [(name, old), (name, new)]
            diffs += [1] if not number else [-1, 1]
    return records, diffs


def result(descent: Descent, data: Data, tolerance: float) -> Result:
    """Return what is printed, written and drawn."""
    weights, norm = descent.weights, descent.norms[-1]
    lines = [f"{counted(descent.rounds, 'round')}, weights {digest(weights)}"]
    if norm > tolerance:
        lines.append(f"stopped before the end: the gradient has norm {norm:.2g}, --tolerance is {tolerance:.2g}")
    lines.append(data.quality(weights))
    records = [*zip(data.names, weights.tolist(), data.mean.tolist(), data.deviation.tolist())]
    figures = {"rows": data.rows, "rounds": descent.rounds, "gradient": norm, "weights": weights.tolist()}

    def norms(axes: Any) -> None:
        axes.semilogy(np.arange(1, len(descent.norms) + 1), descent.norms, color=BLUE, linewidth=1.8)
        if tolerance:
            axes.axhline(tolerance, color=GREY, linewidth=0.8, linestyle=":")
        axes.set(title="Descent", xlabel="round", ylabel="norm of the mean gradient")

    def calibration(axes: Any) -> None:
        points, labels = data.shard(0)
        if not len(points):
            return nothing(axes, "Calibration")
        order = np.argsort(predicted := sigmoid(points @ weights))
        parts = [part for part in np.array_split(order, 10) if len(part)]
        means = [[column[part].mean() for part in parts] for column in (predicted, labels)]
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
        axes.plot(*means, marker="o", color=BLUE, linewidth=1.2)
        axes.set(title="Calibration, by tenths of a shard", xlabel="predicted probability", ylabel="share of label 1")
        return None

    title = f"{data.label}: {counted(data.rows, 'row')}, {counted(data.features, 'weight')}"
    return Result(lines, figures, ("feature", "weight", "mean", "deviation"), records, title, [norms, calibration])


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add = parser.add_argument
    add("--data", metavar="FILE", help="the rows, in a .npy or CSV file, with the label in the last column")
    rows = "number of points to generate (default %(default)s)"
    add("--rows", type=at_least(SHARDS), default=80_000, metavar="N", help=rows)
    features = "number of weights of generated points (default %(default)s)"
    add("--features", type=at_least(1), default=10, metavar="N", help=features)
    tolerance = "stop at a gradient of at most this norm (default %(default)s)"
    add("--tolerance", type=at_least(0.0), default=1e-6, metavar="X", help=tolerance)
    rounds = "stop after this many rounds at the latest (default %(default)s)"
    add("--rounds", type=at_least(1), default=1000, metavar="N", help=rounds)
    add("--tree", action="store_true", help="add up gradients along a tree of workers")
    check = "take the same steps over all rows in plain NumPy, and compare the weights"
    add("--check", action="store_true", help=check)
    changed = "write how the weights change, as lines of a round, '+' or '-', a feature and its weight"
    plot = "draw the norm of the gradient in each round, and how predictions agree with labels (.svg, .png, .pdf)"
    add_output(parser, csv="write the weights to FILE", changes=changed, plot=plot)
    return options_from(parser, arguments)


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()

    def body() -> None:
        data = generated(options.rows, options.features) if options.data is None else load(options.data)
        execute(lambda worker: run(worker, data, options))

    return status_of("logistic", body)


if __name__ == "__main__":
    sys.exit(main())
