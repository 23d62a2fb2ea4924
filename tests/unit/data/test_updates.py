"""A batch of updates: copies of it, in this process and in others."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from differential.data.updates import Updates
from timely.lowlevel import typed


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda updates: pickle.loads(pickle.dumps(updates))])
def test_a_copy_has_the_same_updates(again: Callable[[Updates], Updates]) -> None:
    columns = np.array([1, 2]), np.array(["a", "b"], np.dtypes.StringDType())
    updates = Updates(columns, np.array([[3], [4]]), np.array([1, 0]), np.array([1, -1]))
    assert list(again(updates).rows()) == [((1, "a"), (4,), 1), ((2, "b"), (3,), -1)]


def test_arrays_that_are_views_of_others_are_sent_to_other_processes() -> None:
    table = np.array([[7, 0, -1], [8, 1, 2], [9, 0, 3]])
    text = np.array(["a", "x", "b", "x", "c", "x"], np.dtypes.StringDType())[::2]
    columns = table[:, 0], text, typed([1, 0, None, 0, 3, 0], "int64?")[::2], np.array([0.5, 1.5, 2.5])[::-1]
    updates = Updates(columns, np.array([[3, 0], [4, 1]]).T, table[:, 1], table[:, 2])
    meta, buffers = updates.to_buffers()
    received = Updates.from_buffers(meta, [memoryview(buffer).cast("B") for buffer in buffers])
    assert list(received.rows()) == list(updates.rows())
