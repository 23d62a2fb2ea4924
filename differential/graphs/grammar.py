"""Reachability along paths whose labels a grammar allows, as in program analysis (Graspan, ASPLOS 2017)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from differential import Collection, Variable, innermost
from differential.graphs.directions import transpose
from differential.graphs.inputs import check_inputs
from timely.lowlevel import check_kind, refusal

Production = tuple[str, Sequence[str]]
"""A label, and the labels of consecutive edges that together are an edge with it."""


def grammar_reachability(edges: Mapping[str, Collection], productions: Sequence[Production]) -> dict[str, Collection]:
    """Return, for each label that a production makes, the (source, target) of all edges with it, given ones included.

    Raises BuildError where no edges are given, or a production has no body or a label that is neither given nor made,
    and for arguments of other kinds.
    The example computes what each variable may point to, when values flow along assignments:

    >>> def program(scope):
    ...     new, assign = Collection.of(scope, 10, 1), Collection.of(scope, *np.array([[1, 2], [2, 3]]).T)
    ...     flows = [("points", ["new"]), ("points", ["points", "assign"])]
    ...     return grammar_reachability({"new": new, "assign": assign}, flows)["points"]
    >>> example(program)
    [((10, 1), 1), ((10, 2), 1), ((10, 3), 1)]
    """
    check_kind("grammar_reachability", Mapping, "a dictionary of edges by label", edges=edges)
    check_inputs("grammar_reachability", **{f"edges[{label!r}]": given for label, given in edges.items()})
    if not edges:
        raise refusal("grammar_reachability", "`edges` must have at least one label")
    _check_productions(productions)
    heads = list(dict.fromkeys(head for head, _ in productions))
    for head, body in productions:
        unknown = [label for label in body if label not in edges and label not in heads]
        if not body or unknown:
            problem = f"no edges and no production have the label {unknown[0]!r}" if unknown else "it has no body"
            raise refusal("grammar_reachability", f"the production of {head!r} cannot be used: {problem}")
    outside = dict(zip(edges, innermost(*edges.values())))
    scope = next(iter(outside.values())).scope
    with scope.iterative("grammar") as inner:
        variables = {head: Variable(inner) for head in heads}
        known = {label: collection.enter(inner) for label, collection in outside.items()}
        known |= {head: variable.collection for head, variable in variables.items()}
        # Every label is a variable before any is defined, since productions may refer to each other in any order.
        made: dict[str, Collection] = {}
        for head, variable in variables.items():
            rows = [_path(known, body) for other, body in productions if other == head]
            rows += [outside[head].enter(inner)] if head in outside else []
            made[head] = rows[0].concat(*rows[1:]).distinct()
            variable.set(made[head])
        return {head: collection.leave(scope) for head, collection in made.items()}


def _check_productions(productions: Any) -> None:
    """Raise BuildError unless these are productions: a list of labels, each with a list of labels."""
    form = "a label and a list of labels, as ('points', ['new'])"
    if not _is_list(productions):
        raise refusal("grammar_reachability", f"`productions` must be a list, each {form}, not {productions!r:.80}")
    for each in productions:
        is_pair = isinstance(each, tuple) and len(each) == 2 and _is_list(each[1])
        if not is_pair or not all(isinstance(label, Hashable) for label in (each[0], *each[1])):
            raise refusal("grammar_reachability", f"a production is {form}, not {each!r:.80}")


def _is_list(given: Any) -> bool:
    """Return whether this is a list or something like it, but not text."""
    return isinstance(given, Sequence) and not isinstance(given, (str, bytes))


def _path(known: Mapping[str, Collection], body: Sequence[str]) -> Collection:
    """Return (source, target) for all paths with these labels in a row."""
    path = known[body[0]]
    for label in body[1:]:
        path = transpose(path).join_map(known[label], lambda _, source, target: (source, target))
    return path
