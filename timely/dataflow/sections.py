"""Which operators of a plan may run as one: the sections of its scopes.

A *section* is a part of a scope: operators, and loops inside the scope, in topological order. A worker without peers
runs a section as one scheduled operator (`timely.dataflow.region`): it calls the operators one after the other, and
each loop round by round, in the order of times. So the section needs one place at which progress is counted instead of
several for each operator. Two conditions make that right:

**Its operators are static.** A static operator receives all that is queued when it runs, emits and holds capabilities
only for what it has received, and asks for nothing but the frontiers of its inputs. So once everything before it in
topological order has run, the section itself knows what may still arrive. A loop belongs to a section if all operators
in it are static.

**It waits for the same sources.** What is not static cuts the scope: inputs, sources, a program's own operators, and
paths that advance time, such as feedback. What follows in the scope depends on a set of such *entries*, and a section
consists of what depends on the same set. Its operators then have the same frontier, once they have run. And no path
leads from a section to another and back to it: from entry to entry the sets only grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from timely.dataflow.plan import Node, Plan, Surroundings


class Section:
    """A part of a scope, or a whole loop: operators and inner loops in topological order."""

    def __init__(self, scope: Surroundings, items: list[Node | Section]) -> None:
        self.scope = scope
        self.items = items

    def nodes(self) -> Iterator[Node]:
        """Yield all operators, those of loops included, in topological order."""
        for item in self.items:
            if isinstance(item, Section):
                yield from item.nodes()
            else:
                yield item

    @property
    def is_worthwhile(self) -> bool:
        """Whether there is a loop among the items, or more than one item."""
        return len(self.items) > 1 or any(isinstance(item, Section) for item in self.items)


def sections(plan: Plan, in_line: set[int]) -> list[Section]:
    """Return the sections of a plan that are worth it: with a loop, or of several operators.

    The operators `in_line` are no part of any: they run where what they consume is emitted.
    """
    return [section for section in _Division(plan, in_line).sections() if section.is_worthwhile]


def loop_of(scope: Surroundings) -> Surroundings:
    """Return the innermost loop that a scope belongs to, or the scope of the whole dataflow."""
    while scope.parent is not None and scope.parent.width == scope.width:
        scope = scope.parent
    return scope


class _Foreign:
    """A loop in which not everything is static."""


_Part = Node | Section | _Foreign | int
"""What a scope has directly in it: operators, loops, and the places of streams."""
_Entry = Node | _Foreign | tuple[int]
"""What cuts a scope: an operator, a loop, or the place from which something comes in or advances."""


class _Division:
    """What is in each loop of a plan: which operators, which loops, and what is whole."""

    def __init__(self, plan: Plan, in_line: set[int]) -> None:
        scheduled = [node for node in plan.nodes if node.index not in in_line]
        self._edges = plan.edges
        self._owners = {place: node for node in scheduled for place in node.places}
        self._loops = [loop_of(place.scope) for place in plan.places]
        self._observed = {self._loops[place] for place in plan.observed}
        self._nodes: dict[Surroundings, list[Node]] = {}
        self._inner: dict[Surroundings, list[Surroundings]] = {}
        self._whole: dict[Surroundings, Section | None] = {}
        for loop in dict.fromkeys(self._loops):
            self._add(loop)
        for node in scheduled:
            self._nodes[loop_of(node.scope)].append(node)

    def _add(self, loop: Surroundings) -> None:
        if loop not in self._nodes:
            self._nodes[loop] = []
            self._inner[loop] = []
            if loop.parent is not None:
                outside = loop_of(loop.parent)
                self._add(outside)
                self._inner[outside].append(loop)

    def sections(self) -> list[Section]:
        """Return all sections."""
        return [section for loop in self._nodes if loop.parent is None for section in self._of(loop)]

    def _of(self, scope: Surroundings) -> list[Section]:
        """Return the sections of a scope, and of the loops in it that belong to none of them."""
        loops = {loop: self._as_whole(loop) for loop in self._inner[scope]}
        try:
            found = self._divided(scope, loops)
        except CycleError:  # what leaves a loop comes back into another part of it
            loops = dict.fromkeys(loops)
            found = self._divided(scope, loops)
        for loop, whole in loops.items():
            if whole is None:
                found += self._of(loop)
        return found

    def _as_whole(self, loop: Surroundings) -> Section | None:
        """Return a loop as one section; None where not all of it is static, or where somebody looks into it."""
        if loop not in self._whole:
            inner = {each: self._as_whole(each) for each in self._inner[loop]}
            whole = None
            if (
                loop not in self._observed
                and None not in inner.values()
                and all(node.is_static for node in self._nodes[loop])
            ):
                try:
                    order = self._in_order(loop, inner)
                    whole = Section(loop, [part for part in order if isinstance(part, (Node, Section))])
                except CycleError:
                    pass
            self._whole[loop] = whole if whole is not None and whole.items else None
        return self._whole[loop]

    def _divided(self, scope: Surroundings, loops: dict[Surroundings, Section | None]) -> list[Section]:
        """Return the sections directly in a scope, with the loops in it that are whole."""
        depends: dict[_Part, frozenset[_Entry]] = {}
        groups: dict[frozenset[_Entry], list[Node | Section]] = {}
        for part, sources in self._in_order(scope, loops).items():
            if isinstance(part, _Foreign) or (isinstance(part, Node) and not part.is_static):
                # A source that emits all it has at the start holds up nothing later, so nothing is divided by it.
                depends[part] = frozenset() if isinstance(part, Node) and part.is_constant else frozenset((part,))
                continue
            entries: set[_Entry] = set()
            for source in sources:
                if isinstance(source, tuple):
                    entries.add(source)
                else:
                    entries |= depends[source]
            depends[part] = frozenset(entries)
            if not isinstance(part, int):
                groups.setdefault(depends[part], []).append(part)
        return [Section(scope, items) for items in groups.values()]

    def _in_order(
        self, scope: Surroundings, loops: dict[Surroundings, Section | None]
    ) -> dict[_Part, list[_Part | tuple[int]]]:
        """Return what is directly in a scope, with what each follows: what cuts the scope, then the others in order.

        Whatever advances time, and whatever comes from outside of the scope, is named by its place, as a tuple. Raises
        CycleError where there is no order.
        """
        parts: dict[Surroundings, _Part | None] = {scope: None}
        for loop in self._nodes:
            if loop not in parts and (inside := self._directly_in(scope, loop)) is not None:
                parts[loop] = parts.get(inside) or loops[inside] or _Foreign()
                parts[inside] = parts[loop]
        of_place: list[_Part | None] = [
            (self._owners.get(place, place) if loop is scope else parts.get(loop))
            for place, loop in enumerate(self._loops)
        ]
        follows: dict[_Part, list[_Part | tuple[int]]] = {part: [] for part in of_place if part is not None}
        for source, target, summary in self._edges:
            one, other = of_place[source], of_place[target]
            if other is not None and one is not other:
                follows[other].append((source,) if one is None or summary.advances else one)
        foreign = [part for part in follows if _is_foreign(part)]
        before = {
            part: [each for each in sources if not isinstance(each, tuple) and not _is_foreign(each)]
            for part, sources in follows.items()
            if not _is_foreign(part)
        }
        order: list[_Part] = [*foreign, *TopologicalSorter(before).static_order()]
        return {part: [] if _is_foreign(part) else follows[part] for part in order}

    def _directly_in(self, scope: Surroundings, loop: Surroundings) -> Surroundings | None:
        """Return the loop directly in a scope that a loop is, or lies in; None if it lies elsewhere."""
        while loop.parent is not None:
            outside = loop_of(loop.parent)
            if outside is scope:
                return loop
            loop = outside
        return None


def _is_foreign(part: _Part) -> bool:
    """Return whether this cuts a scope."""
    return isinstance(part, _Foreign) or (isinstance(part, Node) and not part.is_static)
