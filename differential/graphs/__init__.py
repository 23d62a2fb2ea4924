"""Graph algorithms, each a definition over the public operators.

A graph is a collection of edges (source, target); a node is an integer (or text) at the end of an edge.
"""

from differential.graphs.bfs import bfs
from differential.graphs.bidirectional import bidirectional_search
from differential.graphs.closure import transitive_closure
from differential.graphs.colouring import colouring
from differential.graphs.components import weakly_connected_components
from differential.graphs.core_numbers import core_numbers
from differential.graphs.cores import k_core
from differential.graphs.grammar import grammar_reachability
from differential.graphs.independent_set import independent_set
from differential.graphs.label_propagation import label_propagation
from differential.graphs.landmarks import approximate_distances, landmark_distances
from differential.graphs.motifs import cliques4, motif, triangles, triangles_by_joins
from differential.graphs.pagerank import pagerank
from differential.graphs.propagate import propagate
from differential.graphs.reachability import reachability
from differential.graphs.shortest_distances import shortest_distances
from differential.graphs.strong_components import cyclic_edges, strongly_connected_components

__all__ = [
    "approximate_distances",
    "bfs",
    "bidirectional_search",
    "cliques4",
    "colouring",
    "core_numbers",
    "cyclic_edges",
    "grammar_reachability",
    "independent_set",
    "k_core",
    "label_propagation",
    "landmark_distances",
    "motif",
    "pagerank",
    "propagate",
    "reachability",
    "shortest_distances",
    "strongly_connected_components",
    "transitive_closure",
    "triangles",
    "triangles_by_joins",
    "weakly_connected_components",
]
