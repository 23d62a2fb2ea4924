"""What graph algorithms mean: each by its definition or by trying everything, on a few nodes.

Edges are a multiset of pairs of nodes; the result is a multiset of records. `GRAPHS` puts the algorithms of
`differential.graphs` beside their meanings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from differential import Collection
from differential.graphs import (
    approximate_distances,
    bfs,
    bidirectional_search,
    cliques4,
    colouring,
    core_numbers,
    cyclic_edges,
    grammar_reachability,
    independent_set,
    k_core,
    label_propagation,
    landmark_distances,
    motif,
    pagerank,
    propagate,
    reachability,
    shortest_distances,
    strongly_connected_components,
    transitive_closure,
    triangles,
    triangles_by_joins,
    weakly_connected_components,
)
from tests.oracle.grid import Multiset

NODES = range(5)
FAR = 100
"""More edges than a path needs."""

Records = dict[Any, int]


def both_ways(edges: Multiset) -> set[tuple[Any, Any]]:
    """Return the pairs of nodes that an edge joins, in either direction."""
    return {pair for a, b in edges for pair in ((a, b), (b, a))}


def core(edges: Multiset, k: int = 2) -> Records:
    """Return (node, neighbour) of the nodes that keep `k` neighbours when those with fewer go."""
    left = {(a, b) for a, b in both_ways(edges) if a != b}
    for _ in NODES:
        enough = {node for node in NODES if sum(a == node for a, _ in left) >= k}
        left = {(a, b) for a, b in left if a in enough and b in enough}
    return dict.fromkeys(left, 1)


def core_depths(edges: Multiset) -> Records:
    """Return (node, the largest k in whose core it is)."""
    depths = {node: k for k in NODES if k for node, _ in core(edges, k)}
    return dict.fromkeys(depths.items(), 1)


def colours(edges: Multiset) -> Records:
    """Return (node, least colour that no smaller neighbour has)."""
    joined, given = both_ways(edges), dict[Any, int]()
    for node in sorted({a for a, _ in joined}):
        taken = {colour for other, colour in given.items() if (node, other) in joined}
        given[node] = min(colour for colour in (*NODES, FAR) if colour not in taken)
    return dict.fromkeys(given.items(), 1)


def independent(edges: Multiset) -> Records:
    """Return the nodes that a walk in ascending order takes if it has taken no neighbour of theirs."""
    joined, taken = both_ways(edges), set[Any]()
    for node in sorted({a for a, _ in joined}):
        if not any((node, other) in joined for other in taken):
            taken.add(node)
    return {(node,): 1 for node in taken}


def communities(edges: Multiset, rounds: int = 3) -> Records:
    """Return (node, label) after each has taken the label of most of its neighbours in this many rounds."""
    labels = {node: node for edge in edges for node in edge}
    for _ in range(rounds):
        received: dict[Any, Counter[Any]] = {node: Counter() for node in labels}
        for (a, b), times in edges.items():
            received[a][labels[b]] += times
            received[b][labels[a]] += times
        labels = {node: min(each, key=lambda label: (-each[label], label)) for node, each in received.items()}
    return dict.fromkeys(labels.items(), 1)


def ranks(edges: Multiset, tolerance: int = 1, rounds: int = 4, weights: Multiset | None = None) -> Records:
    """Return (node, rank), of units of 600; jumps go to all nodes, or by weights, of which each record has some."""

    def rounded(amount: int) -> int:
        return (amount + tolerance // 2) // tolerance * tolerance

    nodes = {node for edge in edges for node in edge}
    degrees = Counter[Any]()
    for (source, _), times in edges.items():
        degrees[source] += times
    shares = Counter(nodes)
    if weights is not None:
        shares = Counter()
        for (node, weight), times in weights.items():
            if node in nodes:
                shares[node] += weight * times
    total = sum(shares.values())
    rank = dict.fromkeys(nodes, 600)
    for _ in range(rounds):
        jumping = sum(17 * rounded(rank[node]) // 20 for node in nodes if not degrees[node])
        passed = dict.fromkeys(nodes, 90)
        if weights is not None:
            jumping += 90 * len(nodes)
            passed = dict.fromkeys(nodes, 0)
        for node, share in shares.items():
            passed[node] += rounded(jumping * share // total) if total else 0
        for (source, target), times in edges.items():
            passed[target] += times * (17 * rounded(rank[source]) // (20 * degrees[source]))
        rank = passed
    return {(node, each): 1 for node, each in rank.items() if each}


def closure(edges: Multiset) -> Records:
    """Return all pairs joined by a path, by Warshall's algorithm."""
    joined = set(edges)
    for middle in NODES:
        joined |= {(a, b) for a in NODES for b in NODES if (a, middle) in joined and (middle, b) in joined}
    return dict.fromkeys(joined, 1)


def lengths(edges: Multiset) -> Records:
    """Return the least number of edges from each node to each other, or FAR, by relaxing all as often as needed."""
    least = {(a, b): 0 if a == b else FAR for a in NODES for b in NODES}
    for _ in NODES:
        for source, target in edges:
            for node in NODES:
                least[node, target] = min(least[node, target], least[node, source] + 1)
    return least


def _components(edges: Multiset) -> Records:
    ends = {node for edge in edges for node in edge}
    joined = closure(Counter([*both_ways(edges), *((node, node) for node in ends)]))
    return {(node, min(other for other in ends if (node, other) in joined)): 1 for node in ends}


def _is_cyclic(edges: Multiset) -> set[Any]:
    joined = closure(edges)
    return {(a, b) for a, b in joined if (b, a) in joined}


def _cyclic(edges: Multiset) -> Records:
    together = _is_cyclic(edges)
    return {edge: times for edge, times in edges.items() if edge in together}


def _strong(edges: Multiset) -> Records:
    together = {(a, b) for a, b in _is_cyclic(edges) if a != b}
    nodes = {a for a, _ in together}
    return {(node, min(node, *(b for a, b in together if a == node))): 1 for node in nodes}


def _pattern(*pattern: tuple[int, int]) -> Callable[[Multiset], Records]:
    def occurrences(edges: Multiset) -> Records:
        found = [({}, 1)] if edges else []
        for ends in pattern:
            more: list[Any] = []
            for bound, times in found:
                for edge, number in edges.items():
                    both = dict(zip(ends, edge))
                    if all(bound.get(variable, node) == node for variable, node in both.items()):
                        more.append(({**bound, **both}, times * number))
            found = more
        return _added((tuple(node for _, node in sorted(bound.items())), times) for bound, times in found)

    return occurrences


def _added(parts: Any) -> Records:
    total: Counter[Any] = Counter()
    for record, times in parts:
        total[record] += times
    return total


def _distances(edges: Multiset, start: Multiset) -> Records:
    least = {node: min(distance for other, distance in start if other == node) for node, _ in start}
    for _ in NODES:
        for source, target in edges:
            if source in least:
                least[target] = min(least.get(target, FAR), least[source] + (source + target) % 3)
    return dict.fromkeys(least.items(), 1)


def _hops(edges: Multiset, roots: Multiset) -> Records:
    paths = lengths(edges)
    near = {node: min(paths[root, node] for root, _ in roots) for node in NODES} if roots else {}
    return {(node, distance): 1 for node, distance in near.items() if distance < FAR}


def _landmarks(edges: Multiset, landmarks: Multiset) -> Records:
    paths, at = lengths(edges), {landmark for landmark, _ in landmarks}
    return {(node, mark, paths[mark, node]): 1 for mark in at for node in NODES if paths[mark, node] < FAR}


def _by_way(edges: Multiset, pairs: Multiset) -> Records:
    paths, at = lengths(edges), {_mark(*pair) for pair in pairs}
    by_way = {(a, b): min(paths[a, mark] + paths[mark, b] for mark in at) for a, b in pairs}
    return {(*pair, distance): 1 for pair, distance in by_way.items() if distance < FAR}


def _mark(source: Any, target: Any) -> Any:
    return (2 * source + target) % len(NODES)


def _goals(edges: Multiset, goals: Multiset) -> Records:
    paths = lengths(edges)
    return {(*goal, paths[goal]): 1 for goal in goals if paths[goal] < FAR}


def _least_labels(edges: Multiset, labels: Multiset) -> Records:
    paths = lengths(edges)
    received = {(node, label) for root, label in labels for node in NODES if paths[root, node] < FAR}
    return {(node, min(label for other, label in received if other == node)): 1 for node, _ in received}


def _nested(opening: Multiset, closing: Multiset) -> Records:
    """Return the ends of paths of as many opening edges as closing ones after them."""
    found = set[Any]()
    for _ in range(len(NODES) ** 2):
        inside = found | {(node, node) for node in NODES}
        found |= {(a, d) for a, b in opening for c, d in closing if (b, c) in inside}
    return dict.fromkeys(found, 1)


def _grammar(opening: Collection, closing: Collection) -> Collection:
    rules = [("both", ["open", "close"]), ("both", ["open", "both", "close"])]
    return grammar_reachability({"open": opening, "close": closing}, rules)["both"]


class Graph(NamedTuple):
    """An algorithm over edges, or over edges and other pairs, and what it means.

    It `is_monotone` if more edges make more records, of which none is ever replaced by another. It `is_delta_query` if
    no updates are added up before its records are.
    """

    build: Callable[..., Collection]
    meaning: Callable[..., Records]
    width: int = 2
    is_monotone: bool = False
    is_delta_query: bool = False


OF_EDGES = {
    "closure": Graph(transitive_closure, closure, is_monotone=True),
    "components": Graph(weakly_connected_components, _components),
    "strong components": Graph(strongly_connected_components, _strong),
    "cyclic": Graph(cyclic_edges, _cyclic, is_monotone=True),
    "core": Graph(lambda edges: k_core(edges, 2), core, is_monotone=True),
    "core numbers": Graph(core_numbers, core_depths),
    "colours": Graph(colouring, colours),
    "independent": Graph(independent_set, independent, width=1),
    "communities": Graph(lambda edges: label_propagation(edges, rounds=2), lambda edges: communities(edges, 2)),
    "ranks": Graph(lambda edges: pagerank(edges, rounds=2, unit=600), lambda edges: ranks(edges, rounds=2)),
    "about ranks": Graph(
        lambda edges: pagerank(edges, rounds=2, unit=600, tolerance=0.05), lambda edges: ranks(edges, 30, rounds=2)
    ),
    "triangles": Graph(triangles, _pattern((0, 1), (1, 2), (0, 2)), 3, True, True),
    "triangles by joins": Graph(triangles_by_joins, _pattern((0, 1), (1, 2), (0, 2)), 3, True),
    "cliques": Graph(cliques4, _pattern((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)), 4, True, True),
    "motif": Graph(
        lambda edges: motif(edges, [(0, 1), (1, 2), (2, 0)]), _pattern((0, 1), (1, 2), (2, 0)), 3, True, True
    ),
}

OF_EDGES_AND_MORE = {
    "ranks by weights": Graph(
        lambda edges, more: pagerank(edges, rounds=2, unit=600, personalisation=more),
        lambda edges, weights: ranks(edges, rounds=2, weights=weights),
    ),
    "hops": Graph(lambda edges, more: bfs(edges, more.map(lambda key, _: key)), _hops),
    "reachable": Graph(
        lambda edges, more: reachability(edges, more.map(lambda key, _: key)),
        lambda edges, roots: {(node, root): 1 for node, root, _ in _landmarks(edges, roots)},
        is_monotone=True,
    ),
    "distances": Graph(
        lambda edges, more: shortest_distances(edges.map(lambda a, b: (a, b, (a + b) % 3)), more), _distances
    ),
    "landmarks": Graph(
        lambda edges, more: landmark_distances(edges, more.map(lambda key, _: key)), _landmarks, width=3
    ),
    "by way of landmarks": Graph(
        lambda edges, more: approximate_distances(edges, more.map(_mark), more), _by_way, width=3
    ),
    "from both ends": Graph(bidirectional_search, _goals, width=3),
    "labels": Graph(propagate, _least_labels),
    "grammar": Graph(_grammar, _nested, is_monotone=True),
}

GRAPHS = OF_EDGES | OF_EDGES_AND_MORE
DELTA_QUERIES = {name: graph for name, graph in OF_EDGES.items() if graph.is_delta_query}
"""Each finds the occurrences of a pattern of edges, an edge as often as it is there."""


def meaning(name: str, *collections: Multiset) -> Counter[tuple[int, int]]:
    """Return the pairs that an algorithm makes of pairs taken for edges."""
    found = GRAPHS[name].meaning(*map(edges_of, collections))
    return _added((_packed(*record), times) for record, times in found.items())


def build(name: str, *collections: Collection) -> Collection:
    """Return the collection of pairs that an algorithm makes of pairs taken for edges."""
    return GRAPHS[name].build(*(one.map(_edge) for one in collections)).map(_packed)


def edges_of(pairs: Multiset) -> Records:
    """Return the edges that pairs are taken for."""
    return _added((_edge(*pair), times) for pair, times in pairs.items() if times)


def _edge(key: Any, value: Any) -> tuple[Any, Any]:
    return key % len(NODES), value % len(NODES)


def _packed(first: Any, *rest: Any) -> tuple[Any, Any]:
    """Return a record of any width as a pair."""
    *middle, last = rest or (first,)
    for each in middle:
        first = first * FAR + each
    return first, last
