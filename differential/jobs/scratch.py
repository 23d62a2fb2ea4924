"""Answers from scratch, by SciPy, networkx, NumPy and Arrow: what `--check` compares with.

Each function takes all edges, the nodes that the command line names, and the options. It returns the columns of the
answer, with the rows in any order; a record that occurs several times has as many rows. None of them uses this library.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.extra import needed_for
from differential.jobs.job import Column, Columns, Edges, Options

Ints = NDArray[np.int64]
NodeInputs = Mapping[str, Ints]


def components(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, least node of its weakly connected component)."""
    csgraph, present, matrix = _matrix(edges)
    _, label = csgraph.connected_components(matrix, connection="weak")
    # `present` is ascending, so the least position is that of the least node.
    return present, present[_least_of(label)]


def cycles(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, least node of its strongly connected component), for components of more than one node."""
    csgraph, present, matrix = _matrix(edges)
    _, label = csgraph.connected_components(matrix, connection="strong")
    rows = np.bincount(label, minlength=1)[label] > 1
    return present[rows], present[_least_of(label)][rows]


def distances(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (source, target, distance) or (node, distance), by the algorithm of Dijkstra."""
    if options.weighted and edges.weight is not None and _rounds(edges.weight):
        return _exact_distances(edges, nodes["from"])
    csgraph, present, matrix = _matrix(edges, *nodes.values(), weighted=options.weighted)
    sources = np.unique(nodes["from"])
    starts = np.searchsorted(present, sources)
    if not options.to:
        least = (
            csgraph.dijkstra(matrix, indices=starts, min_only=True) if len(starts) else np.full(len(present), np.inf)
        )
        reached = np.isfinite(least)
        has_floats = edges.weight is not None and edges.weight.dtype.kind == "f"
        return present[reached], least[reached] if has_floats else least[reached].astype(np.int64)
    targets = np.unique(nodes["to"])
    least = csgraph.dijkstra(matrix, indices=starts, unweighted=True)[:, np.searchsorted(present, targets)]
    source, target = np.nonzero(np.isfinite(least))
    return sources[source], targets[target], least[source, target].astype(np.int64)


def _rounds(length: Column) -> bool:
    """Return whether sums of integer lengths may be more than a float holds exactly."""
    return length.dtype.kind == "i" and bool(length.astype(float).sum() >= 2.0**53)


def _exact_distances(edges: Edges, starts: Ints) -> Columns:
    """Return (node, distance) in whole numbers, by networkx."""
    with needed_for("--check"):
        import networkx
    assert edges.weight is not None
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(starts.tolist())
    graph.add_weighted_edges_from(zip(edges.source.tolist(), edges.target.tolist(), edges.weight.tolist()))
    least = networkx.multi_source_dijkstra_path_length(graph, set(starts.tolist())) if len(starts) else {}
    return _columns(least.items(), 2)


def pagerank(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, rank) in millionths of the mean, in the same whole numbers, by NumPy."""
    from fractions import Fraction

    unit = 1_000_000
    tolerance = max(1, round(options.tolerance * unit))
    damping = Fraction(options.damping).limit_denominator(1000)
    share, whole = damping.numerator, damping.denominator

    def rounded(amount: Ints | int) -> Any:
        return (amount + tolerance // 2) // tolerance * tolerance

    present, ends = np.unique(np.concatenate([edges.source, edges.target]), return_inverse=True)
    source, target = np.split(ends, 2)
    degree = np.bincount(source, minlength=len(present))
    rank = np.full(len(present), unit)
    kept = unit * (whole - share) // whole
    for _ in range(options.rounds):
        jumping = int((share * rounded(rank[degree == 0]) // whole).sum())
        passed = share * rounded(rank) // (whole * np.maximum(degree, 1))
        rank = np.full(len(present), kept + (rounded(jumping // len(present)) if len(present) else 0))
        np.add.at(rank, target, passed[source])
    return present[rank != 0], rank[rank != 0]


def cores(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, core number), or (node, neighbour) both ways in one core, by networkx."""
    with needed_for("--check of this job"):
        import networkx
    graph = networkx.Graph()
    graph.add_edges_from(zip(edges.source.tolist(), edges.target.tolist()))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    graph.remove_nodes_from([node for node, degree in list(graph.degree) if not degree])
    if options.core is None:
        return _columns(networkx.core_number(graph).items(), 2)
    inside = networkx.k_core(graph, options.core).edges
    return _columns([pair for a, b in inside for pair in ((a, b), (b, a))], 2)


def motifs(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return the nodes at the places of each occurrence, by joins of Arrow, an edge of the motif after the other."""
    import pyarrow as pa

    found: Any = None
    for source, target in _connected_first(options.motif):
        if source == target:
            loops = edges.source[edges.source == edges.target]
            table = pa.table({f"node{source}": loops})
        else:
            table = pa.table({f"node{source}": edges.source, f"node{target}": edges.target})
        if found is None:
            found = table
            continue
        shared = [name for name in table.column_names if name in found.column_names]
        # There is a shared place, because a motif is connected. Repeated edges stay, and make repeated occurrences.
        found = found.join(table, keys=shared, join_type="inner")
    places = range(1 + max(map(max, options.motif)))
    return [found[f"node{place}"].to_numpy() for place in places]


def communities(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, label) by rounds of label propagation, in NumPy."""
    present, ends = np.unique(np.concatenate([edges.source, edges.target]), return_inverse=True)
    source, target = np.split(ends, 2)
    receiver, sender = np.append(source, target), np.append(target, source)
    label = np.arange(len(present))
    for _ in range(options.rounds if len(present) else 0):
        votes, number = np.unique(receiver * len(present) + label[sender], return_counts=True)
        node, vote = np.divmod(votes, len(present))
        # Of each node the label with the most votes comes first, and of equally many the least one.
        order = np.lexsort((vote, -number, node))
        first = np.unique(node[order], return_index=True)[1]
        label = vote[order][first]
    return present, present[label]


def asp(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (source, target, least distance by way of a landmark), by SciPy."""
    csgraph, present, matrix = _matrix(edges, *nodes.values())
    ends, degree = np.unique(np.concatenate([edges.source, edges.target]), return_counts=True)
    marks = ends[np.lexsort((ends, -degree))[: options.landmarks]]
    at = np.searchsorted(present, marks)
    sources, targets = (np.unique(nodes["from"]), np.unique(nodes["to"])) if options.pairs else (np.sort(marks),) * 2
    if not len(marks):
        return (np.zeros(0, np.int64),) * 3
    onward = csgraph.dijkstra(matrix, indices=at, unweighted=True)[:, np.searchsorted(present, targets)]
    toward = csgraph.dijkstra(matrix.T.tocsr(), indices=at, unweighted=True)[:, np.searchsorted(present, sources)]
    least = np.min(toward[:, :, None] + onward[:, None, :], axis=0)
    source, target = np.nonzero(np.isfinite(least))
    return sources[source], targets[target], least[source, target].astype(np.int64)


def closure(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return the pairs joined by a path, by networkx, or those of one generation, in plain Python."""
    pairs = set(zip(edges.source.tolist(), edges.target.tolist()))
    if not options.same_generation:
        with needed_for("--check of this job"):
            import networkx
        return _columns(networkx.transitive_closure(networkx.DiGraph(list(pairs)), reflexive=False).edges, 2)
    children = {parent: [child for _, child in group] for parent, group in groupby(sorted(pairs), lambda pair: pair[0])}
    found = {(a, b) for each in children.values() for a in each for b in each if a != b}
    fresh = found
    while fresh:
        below = ((a, b) for one, other in fresh for a in children.get(one, ()) for b in children.get(other, ()))
        fresh = {pair for pair in below if pair[0] != pair[1]} - found
        found |= fresh
    return _columns(found, 2)


def degrees(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, degree) or (degree, how many nodes have it), by NumPy."""
    counts = np.unique(edges.target if options.incoming else edges.source, return_counts=True)
    return np.unique(counts[1], return_counts=True) if options.distribution else counts


def colours(edges: Edges, nodes: NodeInputs, options: Options) -> Columns:
    """Return (node, colour) by a walk over the nodes in ascending order, in plain Python."""
    neighbours: dict[int, set[int]] = {}
    for source, target in zip(edges.source.tolist(), edges.target.tolist()):
        neighbours.setdefault(source, set()).add(target)
        neighbours.setdefault(target, set()).add(source)
    given: dict[int, int] = {}
    for node in sorted(neighbours):
        taken = {given[other] for other in neighbours[node] if other in given}
        # One more colour than are taken, so one of them is free.
        given[node] = next(colour for colour in range(len(taken) + 1) if colour not in taken)
    return _columns(given.items(), 2)


def _matrix(edges: Edges, *others: Ints, weighted: bool = False) -> tuple[Any, Ints, Any]:
    """Return SciPy's graph algorithms, the nodes in order, and the matrix of the edges between their positions.

    `others` are nodes that need not have edges. Of several edges between two nodes the shortest counts.
    """
    with needed_for("--check"):
        from scipy import sparse
        from scipy.sparse import csgraph
    present = np.unique(np.concatenate([edges.source, edges.target, *others]))
    source, target = np.searchsorted(present, edges.source), np.searchsorted(present, edges.target)
    length = edges.weight if weighted and edges.weight is not None else np.ones(len(source))
    order = np.lexsort((length, target, source))
    source, target, length = source[order], target[order], length[order]
    # Equal edges are neighbours, and the shortest of them is the first.
    first = np.ones(len(source), bool)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    # An edge of length 0 is one for SciPy if it is stored, and the matrix stores all that it is given.
    rows = source[first], target[first]
    matrix = sparse.csr_array((length[first].astype(float), rows), shape=(len(present),) * 2)
    return csgraph, present, matrix


def _least_of(label: Ints) -> Ints:
    """Return the least position with the same label, for each position."""
    _, first, which = np.unique(label, return_index=True, return_inverse=True)
    least: Ints = first[which]
    return least


def _connected_first(motif: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the edges of a motif in an order in which each shares a place with one before it, if there is one."""
    left, bound, order = list(motif), set(motif[0]), []
    while left:
        edge = next((edge for edge in left if bound & set(edge)), left[0])
        left.remove(edge)
        bound |= set(edge)
        order.append(edge)
    return order


def _columns(rows: Any, width: int) -> Columns:
    return tuple(np.array(list(rows), np.int64).reshape(-1, width).T)
