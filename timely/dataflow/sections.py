"""Which operators of a plan may run as one: the sections of its scopes.

A *section* is a part of a scope: operators, and loops inside the scope, in topological order. A worker runs a section
as one scheduled operator (`timely.dataflow.region`): it calls the operators one after the other, and each loop round by
round, in the order of times. So the section needs one place at which progress is counted instead of several for each
operator. Two conditions make that right:

**Its operators are static.** A static operator receives all that is queued when it runs, emits and holds capabilities
only for what it has received, and asks for nothing but the frontiers of its inputs. So once everything before it in
topological order has run, the section itself knows what may still arrive. A loop belongs to a section if all operators
in it are static.

**It waits for the same sources.** What is not static cuts the scope: inputs, sources, a program's own operators, and
paths that advance time, such as feedback. These are its *entries*. A static operator depends on the entries from which
a path of static operators leads to it, and the operators with the same set of entries are a section. So they have the
same frontier, once they have run. And no path leads from a section to another one and back without an advance in time:
along static operators the sets only grow, so all on such a path have the same one; and an entry on it would be one that
the section depends on, and that depends on the section.

**With several workers**, whatever is spread over them cuts the scope as well, since a worker does not know what its
peers are about to send. So a loop that spreads anything does not run as one. Its parts between two exchanges do, and a
round of the loop is then a round of the tracker. Operators between two exchanges that lead to each other round the loop
are one section even if they depend on different streams from outside of it: what comes in to one of them gets to all of
them a round later.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import cast

from timely.dataflow.plan import Node, Plan, Surroundings, by_start, reached
from timely.progress.cycles import strong_components


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

    def is_worthwhile(self, has_peers: bool) -> bool:
        """Return whether this costs less as one operator: with a loop among the items, or with several items.

        For a worker with peers, two operators outside of all loops cost as much by themselves.
        """
        if any(isinstance(item, Section) for item in self.items):
            return True
        return len(self.items) > (2 if has_peers and self.scope.width == self.scope.outer else 1)


def sections(plan: Plan, in_line: set[int]) -> list[Section]:
    """Return the sections of a plan that are worth it.

    The operators `in_line` are not part of any: they run where what they consume is emitted.
    """
    division = _Division(plan, in_line)
    return [section for section in division.sections() if section.is_worthwhile(division.has_peers)]


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
        self._spreading = {inlet.place for node in scheduled for inlet in node.inlets if inlet.spreads}
        self.has_peers = bool(self._spreading)
        """Whether anything is spread over several workers."""
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
        """Return all sections, worthwhile or not."""
        return [section for loop in self._nodes if loop.parent is None for section in self._of(loop)]

    def _of(self, scope: Surroundings) -> list[Section]:
        """Return the sections of a scope, and of the loops in it that belong to none of them."""
        loops = {loop: self._as_whole(loop) for loop in self._inner[scope]}
        try:
            found = self._divided(scope, loops)
        except CycleError:  # what leaves a loop comes back into another part of it
            # Without whole loops there is an order: each cycle of a plan advances time, and what advances time is cut.
            loops = dict.fromkeys(loops)
            found = self._divided(scope, loops)
        for loop, whole in loops.items():
            if whole is None:
                found += self._of(loop)
        return found

    def _as_whole(self, loop: Surroundings) -> Section | None:
        """Return a loop as one section; None if part of it is not static or spreads batches, or is observed."""
        if loop not in self._whole:
            inner = {each: self._as_whole(each) for each in self._inner[loop]}
            whole = None
            if (
                loop not in self._observed
                and None not in inner.values()
                and all(node.is_static and self._spreading.isdisjoint(node.places) for node in self._nodes[loop])
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
        groups: dict[object, list[Node | Section]] = {}
        together = self._together(scope) if self.has_peers else {}
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
                    entries |= depends[source]  # known already: parts come in topological order
            depends[part] = frozenset(entries)
            if isinstance(part, Node) and part in together:
                # What enters from outside gets to all a round later, so only entries within the loop divide parts.
                cuts = {entry for entry in entries if not isinstance(entry, tuple) or self._is_within(scope, *entry)}
                groups.setdefault((together[part], frozenset(cuts)), []).append(part)
            elif not isinstance(part, int):
                groups.setdefault(depends[part], []).append(part)
        return [Section(scope, items) for items in groups.values()]

    def _together(self, loop: Surroundings) -> dict[Node, int]:
        """Return the operators directly in a loop that lead to others and back, with the number of their cycle."""
        within = {place for place in range(len(self._loops)) if self._is_within(loop, place)}
        edges = [edge for edge in self._edges if edge.source in within and edge.target in within]
        found: dict[Node, int] = {}
        for number, component in enumerate(strong_components(within, edges)):
            if len(component) > 1:
                found |= {self._owners[place]: number for place in component if place in self._owners}
        return {node: number for node, number in found.items() if loop_of(node.scope) is loop}

    def _is_within(self, loop: Surroundings, place: int) -> bool:
        """Return whether a place is in a loop, or in another one inside it."""
        return self._loops[place] is loop or self._directly_in(loop, self._loops[place]) is not None

    def _in_order(
        self, scope: Surroundings, loops: dict[Surroundings, Section | None]
    ) -> dict[_Part, list[_Part | tuple[int]]]:
        """Return what is directly in a scope, with what each follows: what cuts the scope, then the others in order.

        Whatever advances time, whatever is spread over the workers, and whatever comes from outside of the scope, is
        named by its place, as a tuple. Raises CycleError where there is no order.
        """
        parts: dict[Surroundings, _Part | None] = {scope: None}
        for loop in self._nodes:
            if loop not in parts and (inside := self._directly_in(scope, loop)) is not None:
                # A loop deeper inside is part of the loop directly in the scope that it lies in.
                parts[loop] = parts.get(inside) or loops[inside] or _Foreign()
                parts[inside] = parts[loop]
        of_place: list[_Part | None] = [
            (self._owners.get(place, place) if loop is scope else parts.get(loop))
            for place, loop in enumerate(self._loops)
        ]
        follows: dict[_Part, list[_Part | tuple[int]]] = {part: [] for part in of_place if part is not None}
        emitted = self._emitted(of_place)
        for source, target, summary in self._edges:
            one, other = of_place[source], of_place[target]
            if other is not None and one is not other:
                is_cut = one is None or summary.advances or (target in self._spreading and source in emitted)
                follows[other].append((source,) if is_cut else cast(_Part, one))
        foreign = [part for part in follows if _is_foreign(part)]
        before = {
            part: [each for each in sources if not isinstance(each, tuple) and not _is_foreign(each)]
            for part, sources in follows.items()
            if not _is_foreign(part)
        }
        order: list[_Part] = [*foreign, *TopologicalSorter(before).static_order()]
        return {part: [] if _is_foreign(part) else follows[part] for part in order}

    def _emitted(self, of_place: list[_Part | None]) -> set[int]:
        """Return the places of what static parts emit: their own, and the streams that follow in the same time."""
        steps = [
            (source, target)
            for source, target, summary in self._edges
            if not summary.advances and isinstance(of_place[target], int)
        ]
        parts = [(place, part) for place, part in enumerate(of_place) if isinstance(part, (Node, Section))]
        return reached([place for place, part in parts if not _is_foreign(part)], by_start(steps))

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
