"""Tests of `exchange`."""

from __future__ import annotations

from tests.unit.dataflow.running import collect, collected, on_workers, only_on_the_first


@on_workers
def test_every_record_arrives_once(workers: int) -> None:
    assert collected(lambda scope: only_on_the_first(scope, range(1000)).exchange(), workers) == list(range(1000))


def test_all_workers_get_a_fair_share() -> None:
    shares = collect(lambda scope: only_on_the_first(scope, range(3000)).exchange(), 3)
    assert all(800 < len(share) < 1200 for share in shares)


def test_records_of_one_route_meet() -> None:
    shares = collect(lambda scope: scope.to_stream(range(60)).exchange(lambda x: x // 10), 3)
    for share in shares:
        tens = {record // 10 for _, record in share}
        assert len(share) == 30 * len(tens)


def test_lists_are_routed_like_columns() -> None:
    def places(shares: list) -> dict:
        return {record: worker for worker, share in enumerate(shares) for _, record in share}

    columns = places(collect(lambda scope: only_on_the_first(scope, range(50)).exchange(), 3))
    lists = places(collect(lambda scope: scope.to_stream(list(range(50)) if not scope.index else []).exchange(), 3))
    assert columns == lists
