"""Graph algorithms where nodes are numbers of all sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from differential import Collection, example
from differential.graphs import label_propagation, pagerank, strongly_connected_components, weakly_connected_components
from tests.oracle.grid import contents, run
from timely.errors import BuildError

FAR = 2**63 - 1


@pytest.mark.parametrize("definition", [weakly_connected_components, strongly_connected_components])
def test_labels_of_any_magnitude_settle_before_a_loop_is_reported(definition: object) -> None:
    nodes = [FAR, FAR - 2**61, 2**40, 5, -7, -FAR]
    ring = [((one, other), (0,), 1) for one, other in zip(nodes, [*nodes[1:], nodes[0]])]
    pair = [((FAR - 1, FAR - 2), (0,), 1), ((FAR - 2, FAR - 1), (0,), 1)]
    labels = dict.fromkeys([(node, -FAR) for node in nodes] + [(FAR - 1, FAR - 2), (FAR - 2, FAR - 2)], 1)
    assert contents(run(definition, ring + pair), (0,)) == labels  # type: ignore[arg-type]


@pytest.mark.parametrize("definition", [pagerank, label_propagation])
def test_rounds_cannot_be_negative(definition: Callable[..., Collection]) -> None:
    assert example(lambda scope: definition(Collection.of(scope, [1], [2]), rounds=0))
    with pytest.raises(BuildError, match="`rounds` must be a whole number of at least 0, not -1"):
        example(lambda scope: definition(Collection.of(scope, [1], [2]), rounds=-1))
