from __future__ import annotations

from timely.progress.change_batch import ChangeBatch


def test_opposite_changes_leave_nothing() -> None:
    changes = ChangeBatch([("a", 1), ("b", 1), ("a", -1)])
    assert dict(changes) == {"b": 1}
    changes.update("b", -1)
    assert not changes
    assert len(changes) == 0


def test_the_sum_of_a_key_is_that_of_its_changes() -> None:
    changes = ChangeBatch([("a", 1), ("a", 2), ("b", -1)])
    assert changes["a"] == 3
    assert changes["b"] == -1
    assert changes["never changed"] == 0
    assert len(changes) == 2
