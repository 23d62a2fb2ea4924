"""Spreading rows over workers: as the routing of timely does it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.kernels.route import partition
from timely.dataflow.routing import destinations, hash_columns


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 9))
def test_rows_keep_their_order_and_are_routed_as_by_timely(keys: list[int], peers: int) -> None:
    column = np.array(keys, np.int64)
    order, offsets = partition(column, peers)
    workers = destinations(hash_columns((column,)), peers)
    assert offsets.tolist() == [0, *np.cumsum(np.bincount(workers, minlength=peers)).tolist()]
    assert order.tolist() == np.argsort(workers, kind="stable").tolist()
