"""The job `logistic` ends at the weights with the least loss, bit by bit the same for every number of workers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.examples_loading import example_module
from tests.integration.jobs.programs import answered, drawn, epochs, on_two_processes, refused, table
from timely import Config, execute

data = example_module("logistic_data")
logistic = example_module("logistic")


def best(points: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights with the least loss, and the intercept, by Newton's method."""
    points = np.column_stack([points, np.ones(len(points))])
    weights = np.zeros(points.shape[1])
    for _ in range(30):
        predicted = 1 / (1 + np.exp(-points @ weights))
        curvature = (points.T * (predicted * (1 - predicted))) @ points
        weights -= np.linalg.solve(curvature, points.T @ (predicted - labels))
    return weights


def rows(count: int = 400) -> NDArray[np.float64]:
    """Return points with columns of different scales, and labels that depend on them."""
    random = np.random.default_rng(7)
    points = random.normal([3, -100, 0], [5, 40, 0.01], (count, 3))
    chance = 1 / (1 + np.exp(-(0.3 * points[:, 0] + 0.02 * points[:, 1] + 40 * points[:, 2] + 1)))
    return np.column_stack([points, random.random(count) < chance])


@pytest.mark.lengthy
@pytest.mark.parametrize("tree", [False, True])
def test_the_descent_ends_where_the_gradient_is_small_with_the_same_weights(tree: bool) -> None:
    count, features, tolerance = 4000, 4, 1e-5
    given = data.generated(count, features)
    found = set()
    for workers in (1, 2, 4):
        results = execute(lambda worker: logistic.program(worker, given, tolerance, 500, tree), Config(workers=workers))
        found |= {(descent.rounds, descent.weights.tobytes()) for descent in results}
    ((rounds, bits),) = found
    weights = np.frombuffer(bits)
    shards = [data.drawn(number, count, features) for number in range(data.SHARDS)]
    mean = sum((1 / (1 + np.exp(-points @ weights)) - labels) @ points for points, labels in shards) / count
    assert 10 < rounds < 500
    assert np.linalg.norm(mean) < tolerance
    assert np.allclose(weights, data.true_weights(features), atol=0.3)


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 2])
def test_the_changes_lead_from_no_weights_to_the_last_ones(tmp_path: Path, workers: int) -> None:
    answer, changes = tmp_path / "answer.csv", tmp_path / "changes"
    given = "--rows", "80", "--features", "3", "--rounds", "7", "--csv", answer, "--changes", changes
    answered("logistic", *given, workers=workers)
    found = epochs(changes)
    assert list(found) == list(range(7))
    assert {(feature, float(weight)) for feature, weight in found[6]} == {
        (feature, float(weight)) for feature, weight, *_ in table(answer)
    }
    assert all(len(records) == 3 for records in found.values())


@pytest.mark.lengthy
@pytest.mark.parametrize(("form", "workers"), [("npy", 1), ("csv", 2), ("header", 3)])
def test_the_weights_of_a_file_are_those_of_newtons_method(tmp_path: Path, form: str, workers: int) -> None:
    path, answer = tmp_path / f"data.{'npy' if form == 'npy' else 'csv'}", tmp_path / "answer.csv"
    if form == "npy":
        np.save(path, rows())
    else:
        np.savetxt(path, rows(), delimiter=",", header="a,b,c,y" if form == "header" else "", comments="")
    answered("logistic", "--data", path, "--csv", answer, "--check", "--tolerance", "1e-9", workers=workers)
    found = table(answer)
    assert [row[0] for row in found] == [
        *("abc" if form == "header" else ["feature 1", "feature 2", "feature 3"]),
        "intercept",
    ]
    weight, mean, deviation = (np.array([float(row[place]) for row in found]) for place in (1, 2, 3))
    scaled = weight / deviation
    scaled[-1] -= (weight * mean / deviation)[:-1].sum()
    assert np.allclose(scaled, best(rows()[:, :-1], rows()[:, -1]), rtol=1e-4)


def test_a_constant_column_has_weight_0_though_its_mean_is_rounded(tmp_path: Path) -> None:
    table, path = rows(43), tmp_path / "data.npy"
    table[:, 1] = 0.1
    assert table[:, :-1].std(axis=0)[1] > 0
    np.save(path, table)
    loaded = data.load(str(path))
    (descent,) = execute(lambda worker: logistic.program(worker, loaded, 1e-6, 500, False))
    assert descent.weights[1] == 0
    assert (loaded.mean[1], loaded.deviation[1]) == (0.1, 1)


@pytest.mark.lengthy
def test_two_processes_have_the_weights_of_one(tmp_path: Path) -> None:
    given = "--rows", "4000", "--features", "4", "--rounds", "20", "--json", tmp_path / "report.json"
    output = answered("logistic", *given)
    one = json.loads((tmp_path / "report.json").read_text())
    ended = on_two_processes("logistic", *given, "--check")
    assert ended.status == 0, ended.error
    two = json.loads((tmp_path / "report.json").read_text())
    assert one["weights"] == two["weights"]
    assert output.splitlines()[0] == ended.output.splitlines()[0] != ""
    assert "stopped before the end: the gradient has norm" in output


@pytest.mark.lengthy
def test_other_weights_than_from_scratch_are_reported() -> None:
    given = data.generated(800, 3)
    descent, *_ = execute(lambda worker: logistic.program(worker, given, 0, 5, False), Config())
    logistic.check(descent, given)
    descent.weights = descent.weights + np.array([0, 1e-3, 0])
    with pytest.raises(logistic.CheckError, match="the weight of feature 2 is"):
        logistic.check(descent, given)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,0\n2,x\n", ", line 2: 'x' is not a number: '2,x'"),
        ("1,0\n2,3,1\n", ", line 2: expected 2 fields, found 3: '2,3,1'"),
        ("1,0\n2,2\n", ", row 2: a label, in the last column, that is neither 0 nor 1: 2, 2"),
        ("1,0\nnan,1\n", ", row 2: a number that is not finite: nan, 1"),
        ("a,y\n", ": expected a matrix of rows with one feature or more and a label, found (0, 2)"),
        ("1\n0\n", ": expected a matrix of rows with one feature or more and a label, found (2, 1)"),
        ("", ": expected a matrix of rows with one feature or more and a label, found (0, 0)"),
    ],
)
def test_rows_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert refused("logistic", "--data", path) == f"logistic: {path}{message}"


@pytest.mark.lengthy
def test_a_file_that_is_no_matrix_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    assert refused("logistic", "--data", path) == f"logistic: cannot read {path}: No such file or directory"
    path.write_text("1,0\n")
    assert refused("logistic", "--data", path).startswith(f"logistic: {path}: not a matrix of numbers in .npy format")
    np.save(path, rows())
    path.write_bytes(path.read_bytes()[:-50])
    assert str(path) in refused("logistic", "--data", path)
    np.save(path, np.array(["a", "b"]))
    assert refused("logistic", "--data", path).startswith(f"logistic: {path}: not a matrix of numbers in .npy format")
    np.save(path, np.array(3.0))
    assert refused("logistic", "--data", path).endswith("found ()")


@pytest.mark.lengthy
def test_the_picture_has_axes(tmp_path: Path) -> None:
    assert drawn("logistic", tmp_path / "picture.svg", "--rows", "80", "--rounds", "9").count('<g id="axes_') == 2
