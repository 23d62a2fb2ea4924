"""Logistic regression by gradient descent: a loop in which all workers receive the sum of all gradients in each round.

    timely run -n 2 examples/logistic_regression.py
    python examples/logistic_regression.py --rows 1000000 --features 50 --tree

The data are generated, in 8 shards that are divided among the workers. In each round of a loop, each worker computes
the gradients of its shards, `all_reduce` adds up those of all workers, and all workers take the same step, until the
gradient is small. With 1, 2, 4 and 8 workers the weights are equal bit by bit, as the digest printed at the end shows.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from options import at_least

from timely import Worker, execute

SHARDS = 8
Vector = NDArray[np.float64]
Shard = tuple[NDArray[np.float64], Vector]


def shard(number: int, rows: int, features: int) -> Shard:
    """Return the points of a shard and their labels, 0 or 1, drawn with the probabilities of the true model."""
    rng = np.random.default_rng(number)
    points = rng.normal(size=(rows // SHARDS, features))
    return points, (rng.random(len(points)) < sigmoid(points @ true_weights(features))).astype(float)


def true_weights(features: int) -> Vector:
    """Return the weights with which the data are generated."""
    return np.random.default_rng(99).normal(size=features)


def sigmoid(x: Vector) -> Vector:
    """Return the logistic function of each element."""
    return 1 / (1 + np.exp(-x))


def gradient(weights: Vector, points: NDArray[np.float64], labels: Vector) -> Vector:
    """Return the gradient of the loss, summed over the points."""
    return (sigmoid(points @ weights) - labels) @ points


def program(worker: Worker, rows: int, features: int, tolerance: float, rounds: int, tree: bool) -> tuple[int, Vector]:
    """Return the number of rounds and the final weights."""
    own = [shard(each, rows, features) for each in range(SHARDS) if each * worker.peers // SHARDS == worker.index]
    result: list[tuple[int, Vector]] = []
    current = np.zeros(features)

    def gradients(weights: Vector) -> Sequence[Vector]:
        return [gradient(weights, *each) for each in own]

    def stepped(total: Vector) -> Vector:
        nonlocal current
        mean = total / rows
        # The curvature of the mean loss is at most a quarter of the variance of the points, which is slightly above 1.
        current = current - 2 * mean
        return np.append(current, np.linalg.norm(mean))

    def note(time: tuple[int, ...], state: Any) -> None:
        result[:] = [(time[1] + 1, state[:-1])]

    with worker.dataflow("descent") as scope:
        start = scope.to_stream([current])
        with scope.iterative() as loop:
            handle, again = loop.loop_variable()
            parts = start.enter(loop).concat(again).flat_map(gradients)
            total = parts.all_reduce_by_tree() if tree else parts.all_reduce()
            state = total.map(stepped).inspect_time(note)
            unfinished = state.filter(lambda state: state[-1] > tolerance).map(lambda state: state[:-1])
            unfinished.branch_when(lambda time: time[1] + 1 >= rounds)[0].connect_loop(handle)
    while worker.step_or_park():
        pass
    return result[0]


def digest(weights: Vector) -> str:
    """Return a short text that differs if any bit of the weights differs."""
    return hashlib.blake2b(weights.tobytes(), digest_size=8).hexdigest()


def main() -> None:
    """Fit the model, and print how well it predicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=at_least(SHARDS), default=80_000, help="number of points (default %(default)s)")
    parser.add_argument(
        "--features", type=at_least(1), default=10, help="number of weights to learn (default %(default)s)"
    )
    parser.add_argument(
        "--tolerance",
        type=at_least(0.0),
        default=1e-6,
        help="stop at a gradient of at most this norm (default %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=at_least(1),
        default=1000,
        help="stop after this many rounds at the latest (default %(default)s)",
    )
    parser.add_argument("--tree", action="store_true", help="add up gradients along a tree of workers")
    options = parser.parse_args()

    def run(worker: Worker) -> None:
        rounds, weights = program(worker, **vars(options))
        if worker.index == 0:
            points, labels = shard(SHARDS, options.rows, options.features)
            right = np.mean((points @ weights > 0) == labels)
            best = np.mean((points @ true_weights(options.features) > 0) == labels)
            print(f"{rounds} rounds, weights {digest(weights)}")
            print(f"right for {right:.1%} of new points; the true weights are right for {best:.1%}")

    execute(run)


if __name__ == "__main__":
    main()
