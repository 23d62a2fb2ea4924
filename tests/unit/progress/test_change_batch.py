from __future__ import annotations

from timely.progress.change_batch import ChangeBatch


def test_opposite_changes_leave_nothing() -> None:
    changes = ChangeBatch([("a", 1), ("b", 1), ("a", -1)])
    assert dict(changes) == {"b": 1}
    changes.update("b", -1)
    assert not changes
    assert len(changes) == 0


def test_draining_hands_out_the_sums_once() -> None:
    changes = ChangeBatch([("a", 1), ("a", 2), ("b", -1)])
    assert changes["a"] == 3
    assert sorted(changes.drain()) == [("a", 3), ("b", -1)]
    assert changes.drain() == []
    assert changes["a"] == 0
