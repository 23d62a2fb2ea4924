"""Rows for the job `logistic`, in shards: generated ones, or those of a file.

A shard is what one worker computes with at once. Their number is fixed, so that the same additions are made for 1, 2, 4
and 8 workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.jobs.access import reading
from differential.jobs.lines import TextLine, lines
from timely.errors import DataError

SHARDS = 8
Vector = NDArray[np.float64]
Shard = tuple[NDArray[np.float64], Vector]
"""Points, a row each, and their labels, 0 or 1."""


@dataclass(frozen=True)
class Data:
    """Rows in shards, and what the columns are."""

    label: str
    rows: int
    names: Sequence[str]
    """The name of each weight."""
    mean: Vector
    deviation: Vector
    """The mean and the deviation of each column before it was scaled."""
    step: float
    """How far a round goes against the mean gradient: less than 2 over the largest curvature of the mean loss."""
    shard: Callable[[int], Shard]
    quality: Callable[[Vector], str]
    """Returns a line that describes how well weights predict."""

    @property
    def features(self) -> int:
        """The number of weights."""
        return len(self.names)


def sigmoid(x: Vector) -> Vector:
    """Return the logistic function of each element."""
    return 0.5 * (1 + np.tanh(0.5 * x))  # does not overflow, as the exponential function would


def generated(rows: int, features: int) -> Data:
    """Return points whose labels are drawn with the probabilities of a known model, by `drawn`."""

    def quality(weights: Vector) -> str:
        points, labels = drawn(SHARDS, rows, features)
        right = np.mean((points @ weights > 0) == labels)
        best = np.mean((points @ true_weights(features) > 0) == labels)
        return f"right for {right:.1%} of new points; the true weights are right for {best:.1%}"

    names = [f"feature {number + 1}" for number in range(features)]
    # The curvature of the mean loss is at most a quarter of the variance of the points, which is slightly above 1.
    kept = rows // SHARDS * SHARDS
    unscaled = np.zeros(features), np.ones(features)
    return Data("generated points", kept, names, *unscaled, 2.0, lambda number: drawn(number, rows, features), quality)


def drawn(number: int, rows: int, features: int) -> Shard:
    """Return the points of a shard and their labels, 0 or 1, drawn with the probabilities of the true model."""
    rng = np.random.default_rng(number)
    points = rng.normal(size=(rows // SHARDS, features))
    return points, (rng.random(len(points)) < sigmoid(points @ true_weights(features))).astype(float)


def true_weights(features: int) -> Vector:
    """Return the weights with which the data are generated."""
    return np.random.default_rng(99).normal(size=features)


def load(path: str) -> Data:
    """Return the rows of a file. Raises DataError if it is missing or damaged, or holds no such rows."""
    names, table = _matrix(path) if path.endswith(".npy") else _csv(path)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table):
        raise DataError(f"{path}: expected a matrix of rows with one feature or more and a label, found {table.shape}")
    for kind, wrong in (
        ("a number that is not finite", ~np.isfinite(table).all(axis=1)),
        ("a label, in the last column, that is neither 0 nor 1", ~np.isin(table[:, -1], (0, 1))),
    ):
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(f"{path}, row {row + 1}: {kind}: {', '.join(f'{value:g}' for value in table[row])}")
    points, labels = table[:, :-1], table[:, -1]
    mean, deviation = points.mean(axis=0), points.std(axis=0)
    constant = (points == points[0]).all(axis=0)
    mean[constant] = points[0, constant]  # exactly, so that their deviation is not a rounding error
    deviation[constant | (deviation == 0)] = 1.0
    scaled = np.column_stack([(points - mean) / deviation, np.ones(len(points))])
    # The curvature of the mean loss is at most a quarter of the largest eigenvalue of the mean of x x'.
    step = 4 / float(np.linalg.eigvalsh(scaled.T @ scaled / len(scaled))[-1])

    def quality(weights: Vector) -> str:
        right = np.mean((scaled @ weights > 0) == labels)
        alone = max(labels.mean(), 1 - labels.mean())
        return f"right for {right:.1%} of the rows; the more frequent label alone is right for {alone:.1%}"

    ends = [len(scaled) * number // SHARDS for number in range(SHARDS + 1)]
    return Data(
        path,
        len(scaled),
        [*names, "intercept"],
        np.append(mean, 0.0),
        np.append(deviation, 1.0),
        step,
        lambda number: (scaled[ends[number] : ends[number + 1]], labels[ends[number] : ends[number + 1]]),
        quality,
    )


def _matrix(path: str) -> tuple[list[str], NDArray[np.float64]]:
    """Return names for the features of a .npy file, and its matrix."""
    try:
        with reading(path, ".npy"):
            array: Any = np.lib.format.open_memmap(path, mode="r")
        table = array.astype(np.float64)
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a matrix of numbers in .npy format ({error})") from None
    width = table.shape[-1] if table.ndim else 0
    return [f"feature {number}" for number in range(1, width)], table


def _csv(path: str) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names of the features of a CSV file, from its header if it has one, and its rows."""
    names: list[str] = []
    rows: list[list[float]] = []
    for line in lines(path):
        fields = [field.strip().strip('"') for field in line.text.split(",")]
        if not line.text.strip():
            continue
        if names and len(fields) != len(names):
            raise line.fault(f"expected {len(names)} fields, found {len(fields)}")
        if not names:
            is_header = not any(map(_is_number, fields))
            names = fields if is_header else [f"feature {number}" for number in range(1, len(fields))] + ["label"]
            if is_header:
                continue
        rows.append(_numbers(line, fields))
    return names[:-1], np.array(rows, np.float64).reshape(len(rows), len(names))


def _numbers(line: TextLine, fields: list[str]) -> list[float]:
    for field in fields:
        if not _is_number(field):
            raise line.fault(f"{field!r} is not a number")
    return [float(field) for field in fields]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
