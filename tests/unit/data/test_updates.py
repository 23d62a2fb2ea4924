"""A batch of updates: copies of it, in this process and in others."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from differential.data.updates import Updates


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda updates: pickle.loads(pickle.dumps(updates))])
def test_a_copy_has_the_same_updates(again: Callable[[Updates], Updates]) -> None:
    columns = np.array([1, 2]), np.array(["a", "b"], np.dtypes.StringDType())
    updates = Updates(columns, np.array([[3], [4]]), np.array([1, 0]), np.array([1, -1]))
    assert list(again(updates).rows()) == [((1, "a"), (4,), 1), ((2, "b"), (3,), -1)]
