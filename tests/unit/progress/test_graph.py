from __future__ import annotations

import pytest

from timely.progress import graph
from timely.progress.graph import Edge, contract, insert_minimal, summaries_to
from timely.progress.summary import PathSummary

ONE, TWO = PathSummary.identity(1), PathSummary.identity(2)
ENTER, LEAVE, ROUND = PathSummary.enter(1), PathSummary.leave(2), PathSummary.feedback(2)


def test_a_chain_contracts_to_one_edge() -> None:
    chain = [Edge(place, place + 1, ONE) for place in range(5)]
    assert contract(chain, {0, 5}) == [Edge(0, 5, ONE)]


def test_a_chain_that_takes_in_a_source_at_each_place_costs_the_same_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    inserted = []

    def noting(summaries: list[PathSummary], summary: PathSummary) -> bool:
        inserted.append(summary)
        return insert_minimal(summaries, summary)

    monkeypatch.setattr(graph, "insert_minimal", noting)
    same = PathSummary.identity(1)
    for length in (100, 400):
        inserted.clear()
        chain = [Edge(place, place + 1, same) for place in range(length)]
        sources = range(length + 1, 2 * length + 1)
        into = [Edge(source, place, same) for place, source in enumerate(sources)]
        assert contract([*chain, *into], keep={*sources, length}) == [Edge(source, length, same) for source in sources]
        assert len(inserted) < 20 * length


def test_a_hub_stays_if_its_removal_would_cost_too_many_edges() -> None:
    hub = [*(Edge(place, 10, ONE) for place in range(5)), *(Edge(11, place, ONE) for place in range(20, 25))]
    edges = [*hub, Edge(10, 11, ONE)]
    kept = {*range(5), *range(20, 25)}
    assert len(contract(edges, kept)) == 25
    assert len(contract(edges, kept, most=15)) == 25
    assert len(contract(edges, kept, most=14)) == 10


def test_a_hub_that_stays_keeps_no_other() -> None:
    # Four times five edges in place of nine are eleven more; two times twelve in place of fourteen are ten more.
    stays = [*(Edge(place, 100, ONE) for place in range(4)), *(Edge(100, place, ONE) for place in range(10, 15))]
    goes = [*(Edge(place, 101, ONE) for place in range(2)), *(Edge(101, place, ONE) for place in range(20, 32))]
    edges = contract([*stays, *goes], {*range(4), *range(10, 15), *range(20, 32)}, most=10)
    assert {place for edge in edges for place in edge[:2] if place >= 100} == {100}
    assert len(edges) == 9 + 24


def test_only_the_minimal_of_parallel_paths_remains() -> None:
    delay = PathSummary(1, (2,), ())
    diamond = [Edge(0, 1, ONE), Edge(1, 3, ONE), Edge(0, 2, delay), Edge(2, 3, ONE)]
    assert contract(diamond, {0, 3}) == [Edge(0, 3, ONE)]
    assert contract(diamond[2:], {0, 3}) == [Edge(0, 3, delay)]


def test_incomparable_summaries_all_remain() -> None:
    fresh, inside = PathSummary(1, (1,), (0,)), TWO
    paths = [Edge(0, 1, fresh), Edge(1, 3, TWO), Edge(0, 2, inside), Edge(2, 3, TWO)]
    assert contract(paths, {0, 3}) == [Edge(0, 3, fresh), Edge(0, 3, inside)]


def test_a_removed_loop_leaves_its_way_through() -> None:
    loop = [Edge(0, 1, ENTER), Edge(1, 2, TWO), Edge(2, 1, ROUND), Edge(2, 3, LEAVE)]
    assert contract(loop, {0, 3}) == [Edge(0, 3, ONE)]


def test_an_inner_loop_that_is_removed_still_leads_round_the_outer_one() -> None:
    inner = [Edge(1, 2, PathSummary.enter(2)), Edge(2, 2, PathSummary.feedback(3)), Edge(2, 3, PathSummary.leave(3))]
    edges = [Edge(0, 1, ENTER), *inner, Edge(3, 1, ROUND), Edge(3, 4, LEAVE)]
    assert contract(edges, {0, 2, 4}) == [
        Edge(0, 2, PathSummary(1, (0,), (0, 0))),
        Edge(2, 2, PathSummary(2, (0, 1), (0,))),
        Edge(2, 4, PathSummary(1, (0,), ())),
    ]


def test_a_removed_location_may_be_left_after_turns_of_its_own_loops() -> None:
    # From 0 through 1 to 2, all in an inner loop; or from 1 once round the outer loop, through 3.
    inside, again = PathSummary.identity(3), PathSummary(2, (0, 1), (0,))
    edges = [Edge(0, 1, inside), Edge(1, 2, inside), Edge(1, 3, PathSummary.leave(3)), Edge(3, 1, again)]
    assert contract(edges, {0, 2}) == [Edge(0, 2, again), Edge(0, 2, inside)]


def test_turns_of_different_loops_may_follow_each_other() -> None:
    once, other = PathSummary(1, (1,), (0, 3)), PathSummary(2, (0, 1), (0,))
    edges = [Edge(0, 1, PathSummary(1, (0,), (5, 5))), Edge(1, 1, once), Edge(1, 1, other)]
    assert contract([*edges, Edge(1, 2, PathSummary.identity(3))], {0, 2}) == [
        Edge(0, 2, PathSummary(1, (0,), (5, 5))),
        Edge(0, 2, PathSummary(1, (0,), (6, 0))),
        Edge(0, 2, PathSummary(1, (1,), (0, 3))),
        Edge(0, 2, PathSummary(1, (1,), (1, 0))),
    ]


def test_a_loop_that_only_returns_later_is_left_out() -> None:
    assert contract([Edge(0, 1, TWO), Edge(1, 0, ROUND)], {0}) == []


def test_the_paths_to_a_location_include_those_round_its_loops() -> None:
    edges = [
        Edge(0, 1, PathSummary.enter(2)),
        Edge(1, 2, PathSummary.leave(3)),
        Edge(2, 0, PathSummary.feedback(2)),
    ]
    round_outside = PathSummary(2, (0, 1), (0,))
    assert summaries_to(1, 3, edges) == {
        0: [PathSummary.enter(2)],
        1: [PathSummary.identity(3), round_outside],
        2: [round_outside],
    }


def test_a_path_for_which_a_shorter_one_is_found_ends_no_search() -> None:
    late = PathSummary.feedback(1, 2)
    edges = [Edge(0, 1, ONE), Edge(1, 4, ONE), Edge(2, 3, ONE), Edge(3, 4, late), Edge(3, 4, ONE)]
    assert summaries_to(4, 1, edges) == {place: [ONE] for place in range(5)}
