"""Messages about progress are counted, and adding up progress reduces them."""

from __future__ import annotations

from benchmarks.progress_traffic import measure


def test_every_worker_sends_every_other_worker_a_round_once() -> None:
    figures = measure("notifications", 2, 4)
    assert figures["demand, messages"] == figures["eager, messages"] == 8 * 4
    assert figures["demand, inside"] == 8 * 3
    # Every worker gives up a capability and takes another: two changes, which are one message if they are added up.
    assert 1.5 * figures["eager, messages"] < figures["unbatched, messages"] < 2 * figures["eager, messages"]


def test_adding_up_by_process_and_by_cluster_sends_less() -> None:
    figures = measure("notifications", 4, 4)
    # A round takes at least one message from each process to each other, and at most those of every worker.
    assert 4 * 3 <= figures["demand, by process, messages"] < figures["demand, messages"] / 3
    assert figures["demand, by cluster, messages"] < figures["demand, by process, messages"]
    assert figures["demand, by process, kB"] < figures["demand, kB"] / 3


def test_counts_are_the_same_in_every_run() -> None:
    assert measure("wcc", 2, 1) == measure("wcc", 2, 1)
