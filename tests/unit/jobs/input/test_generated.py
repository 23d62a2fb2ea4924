"""Generated graphs are the same for any number of workers, and have the distribution that they state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential.jobs.input import generate
from differential.jobs.input.faults import Faults
from differential.jobs.input.generate import Replacements
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from tests.unit.jobs.input.reading import PLAIN, read
from timely.errors import DataError


@given(
    text=st.sampled_from(["random:7,50", "random:1000,200,3", "rmat:5,2", "rmat:6,1,9", "random:5,0", "rmat:0,3"]),
    peers=st.integers(2, 4),
)
def test_any_number_of_workers_makes_the_same_graph(text: str, peers: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "CHUNK", 8)
        assert read(text, peers=peers) == read(text)


def test_a_random_graph_has_so_many_edges_between_so_many_nodes() -> None:
    found = np.array(read("random:10,5000"))
    assert found.shape == (5000, 2)
    assert set(found.ravel().tolist()) == set(range(10))
    assert read("random:10,5000") == read("random:10,5000,0") != read("random:10,5000,1")


def test_quadrants_of_a_recursive_matrix_have_the_probabilities_of_graph500() -> None:
    found = np.array(read("rmat:1,50000"))
    assert found.shape == (100_000, 2)
    shares = np.bincount(found[:, 0] * 2 + found[:, 1], minlength=4) / len(found)
    assert np.abs(shares - [0.57, 0.19, 0.19, 0.05]).max() < 0.01
    deep = np.array(read("rmat:10,16"))
    assert len(deep) == 16 << 10
    assert deep.min() == 0
    assert deep.max() < 1 << 10
    top = deep >> 9
    assert (
        np.abs(np.bincount(top[:, 0] * 2 + top[:, 1], minlength=4) / len(deep) - [0.57, 0.19, 0.19, 0.05]).max() < 0.02
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("random:10", "is written random:NODES,EDGES"),
        ("random:10,x", "is written random:NODES,EDGES"),
        ("random:0,5", "the number of nodes must be at least 1"),
        ("rmat:1,2,3,4", "is written rmat:SCALE,FACTOR"),
        ("rmat:99,1", "the scale must be at most 40"),
    ],
)
def test_texts_that_describe_no_graph(text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        open_graph(text, PLAIN, Faults())


@pytest.mark.parametrize("text", ["random:{},5", "random:5,{}", "random:5,5,{}", "rmat:{},4", "rmat:4,{}"])
def test_numbers_that_python_does_not_read_describe_no_graph(text: str) -> None:
    with pytest.raises(DataError, match="whole numbers of at most 100 digits"):
        open_graph(text.format("9" * 5000), PLAIN, Faults())


@pytest.mark.parametrize("text", ["replace:{}", "replace:1,{}", "replace:1,2,3", "replace:-1"])
def test_texts_that_describe_no_replacements(text: str) -> None:
    graph = open_graph("random:5,5", PLAIN, Faults())
    with pytest.raises(DataError, match=r"are written replace:COUNT\[,SEED\], with whole numbers"):
        Replacements(text.format("9" * 5000), graph)


def test_generated_graphs_have_nodes_alone() -> None:
    with pytest.raises(DataError, match="neither weights nor times"):
        open_graph("random:5,5", InputLayout(weight="3"), Faults())
