"""Which modules import each other in a cycle, and what does a change to a module reach?

    python examples/imports.py src --reach mypackage.core --plot imports.svg
    timely run -n 2 examples/imports.py src --follow

The modules of a tree of Python files and their imports are a graph; `import_graph.py` describes what counts as an
import. An import cycle is a strongly connected component of more than one module. A change to a module reaches the
modules that import it, directly or through others, which is reachability against the direction of imports. Both are
definitions of `differential.graphs`, here over modules named by text.

With `--follow` the files are watched, and the answers change as they are edited: only what an edit affects is computed
again. A file with a syntax error is reported, with its line, and left out until it is repaired.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from import_graph import Edge, Tree, shortest_cycle
from imports_picture import cycle_picture, importers_picture
from pace import Pace

from differential import Collection, new_input
from differential.extra import needed_for
from differential.graphs import reachability, strongly_connected_components
from differential.jobs import counted
from differential.jobs.command_line import add_output, at_least, options_from, parser_of
from differential.jobs.interrupt import Interrupt
from differential.jobs.outputs import Outputs, Result, reporting
from differential.jobs.status import CheckError, status_of
from timely import Worker, execute
from timely.errors import DataError
from timely.services import Display

EPILOG = """\
The answer has a record (question, module, of) for each module in a cycle, "cycle", where `of` is the first module of
the cycle by name, and for each module that a change to the module `of` reaches, "reach".

examples:
  {program} src --check
  {program} src --reach mypackage.core --csv answer.csv --plot imports.svg
  {program} src --follow --changes -     (until Ctrl-C)
  timely run -n 2 {script} src       (two processes)
"""

Record = tuple[str, str, str]
"""A question, `cycle` or `reach`; a module; and the first module of its cycle, or the one whose change reaches it."""


class Change(NamedTuple):
    """How the answer changed in an epoch."""

    epoch: int
    records: list[Record]
    diffs: list[int]


def cycles(imports: Collection) -> Collection:
    """Return ("cycle", module, first module of its cycle) for the modules in import cycles."""
    labels = strongly_connected_components(imports)
    return labels.map(lambda module, first: (np.full(len(module), "cycle"), module, first))


def reached(imports: Collection, changed: Collection) -> Collection:
    """Return ("reach", module, changed module) for the modules that a change reaches, itself left out."""
    importers = imports.map(lambda module, imported: (imported, module))
    found = reachability(importers, changed).filter(lambda module, root: module != root)
    return found.map(lambda module, root: (np.full(len(module), "reach"), module, root))


class Program:
    """The part of one worker: the dataflow. Worker 0 reads the files, and receives the answer."""

    def __init__(self, worker: Worker) -> None:
        self.pace = Pace()
        self.answer: set[Record] = set()
        self._worker = worker
        with worker.dataflow("imports") as scope:
            self._imports, imports = new_input(scope, name="imports")
            self._changed, changed = new_input(scope, name="changed modules")
            self._output = cycles(imports).concat(reached(imports, changed)).output()

    def take(self, gone: Sequence[Edge], new: Sequence[Edge], changed: Sequence[str] = ()) -> Change:
        """Change the imports in an epoch, and ask about changed modules; return how the answer has changed."""
        epoch = self._imports.epoch
        with self.pace.epoch(len(gone) + len(new)):
            for edges, diff in ((gone, -1), (new, 1)):
                if edges:
                    self._imports.update(*(np.array(column) for column in zip(*edges)), diff=diff)
            if changed:
                self._changed.insert(np.array(changed))
            self._imports.advance_to(epoch + 1)
            self._changed.advance_to(epoch + 1)
            self._worker.step_while(lambda: self._output.less_than(epoch + 1))
        changes = sorted((record, diff) for record, _, diff in self._output.changes())
        for record, diff in changes:
            (self.answer.add if diff > 0 else self.answer.remove)(record)
        return Change(epoch, [record for record, _ in changes], [diff for _, diff in changes])

    def wait(self, seconds: float, interrupt: Interrupt) -> None:
        """Step, and sleep until it is time to look at the files again, or Ctrl-C comes."""
        self._worker.step()
        interrupt.wait(seconds)

    def finish(self) -> None:
        """Close the inputs, and step until all workers have done so."""
        self._imports.close()
        self._changed.close()
        self._worker.step_while(lambda: not self._output.done())


def from_scratch(edges: set[Edge], changed: Sequence[str]) -> set[Record]:
    """Return the answer computed by networkx."""
    with needed_for("--check"):
        import networkx
    graph = networkx.DiGraph(sorted(edges))
    answer: set[Record] = set()
    for members in networkx.strongly_connected_components(graph):
        if len(members) > 1:
            answer |= {("cycle", module, min(members)) for module in members}
    for root in changed:
        if root in graph:
            answer |= {("reach", module, root) for module in networkx.ancestors(graph, root)}
    return answer


def check(found: set[Record], tree: Tree, changed: Sequence[str]) -> None:
    """Raise CheckError if the answer differs from the one computed from scratch."""
    for record in sorted(found ^ from_scratch(tree.edges, changed)):
        which = "should not be in the answer" if record in found else "is missing from the answer"
        raise CheckError(f"the answer is wrong: {record} {which}")


def components(answer: set[Record]) -> dict[str, list[str]]:
    """Return the modules of each cycle, in order, by the first of them; the largest cycles first."""
    members = defaultdict(list)
    for question, module, first in sorted(answer):
        if question == "cycle":
            members[first].append(module)
    return dict(sorted(members.items(), key=lambda item: (-len(item[1]), item[0])))


def described(program: Program, tree: Tree, changed: Sequence[str]) -> list[str]:
    """Return the answer as lines of text."""
    found = components(program.answer)
    lines = [f"{counted(len(tree.modules), 'module')}, {counted(len(tree.edges), 'import')} between them"]
    sizes = ", ".join(f"{len(each):,}" for each in found.values())
    lines.append(f"{counted(len(found), 'import cycle')}, of {sizes} modules" if found else "no import cycles")
    if found:
        largest = next(iter(found.values()))
        lines.append("a shortest cycle of the largest: " + written(shortest_cycle(tree.edges, set(largest))))
    for root in changed:
        others = [module for question, module, of in sorted(program.answer) if (question, of) == ("reach", root)]
        names = f": {', '.join(others[:10])}{', ...' if len(others) > 10 else ''}" if others else ""
        lines.append(f"a change to {root} reaches {counted(len(others), 'other module')}{names}")
    return lines


def written(cycle: Sequence[str]) -> str:
    """Return a cycle as text.

    >>> written(["a", "b"])
    'a -> b -> a'
    """
    return " -> ".join([*cycle, *cycle[:1]])


def news(change: Change) -> list[str]:
    """Return how the answer changed as lines of text."""
    phrases = {("cycle", 1): "is in the cycle of", ("cycle", -1): "is no longer in the cycle of"}
    phrases |= {("reach", 1): "is now reached by a change to", ("reach", -1): "is no longer reached by a change to"}
    return [f"  {module} {phrases[question, diff]} {of}" for (question, module, of), diff in zip(*change[1:])]


def known(tree: Tree, names: Sequence[str]) -> list[str]:
    """Return the modules that are named. Raises DataError for a name that no module has."""
    modules = tree.modules
    for name in names:
        if name not in modules:
            close = difflib.get_close_matches(name, modules)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise DataError(f"--reach {name}: no module has this name{hint}")
    return list(dict.fromkeys(names))


def read(tree: Tree, program: Program, options: argparse.Namespace, outputs: Outputs, display: Display) -> list[str]:
    """Answer for the files as they are; return the modules asked about."""
    display.begin("reading files", None)
    gone, new = tree.refresh()
    if not tree.modules:
        raise DataError(f"{options.directory} has no Python files")
    warn(tree.faults.values())
    changed = known(tree, options.reach)
    display.begin("computing the answer", None)
    change = program.take(gone, new, changed)
    outputs.change(*change)
    return changed


def follow(
    tree: Tree,
    program: Program,
    options: argparse.Namespace,
    outputs: Outputs,
    changed: Sequence[str],
    interrupt: Interrupt,
) -> None:
    """Keep the answer up to date while files are edited, until Ctrl-C."""
    outputs.print(*described(program, tree, changed))
    reported: Mapping[str, str] = dict(tree.faults)
    interrupt.expect()
    while not interrupt.has_come():
        if options.check:
            check(program.answer, tree, changed)
        program.wait(options.interval, interrupt)
        gone, new = tree.refresh()
        warn(fault for path, fault in tree.faults.items() if reported.get(path) != fault)
        reported = dict(tree.faults)
        if gone or new:
            change = program.take(gone, new)
            outputs.change(*change)
            if not outputs.has_changes:
                edit = [f"- {source} imports {target}" for source, target in gone]
                edit += [f"+ {source} imports {target}" for source, target in new]
                outputs.print(*edit, *(news(change) or ["  the answers stay the same"]))


def warn(faults: Any) -> None:
    """Print what is wrong with files."""
    for fault in faults:
        print(f"imports: left out: {fault}", file=sys.stderr, flush=True)


def run(worker: Worker, options: argparse.Namespace, interrupt: Interrupt) -> None:
    """Answer on one worker; worker 0 reads the files, and prints and writes the answer."""
    is_first = worker.index == 0
    with reporting("imports", worker, options) as (outputs, display):
        tree, program = Tree(options.directory, options.at_import), Program(worker)
        changed = read(tree, program, options, outputs, display) if is_first else []
        if options.follow and is_first:
            follow(tree, program, options, outputs, changed, interrupt)
        program.finish()
        if is_first:
            if options.check:
                check(program.answer, tree, changed)
            outputs.finish(result(program, tree, changed, options))


def result(program: Program, tree: Tree, changed: Sequence[str], options: argparse.Namespace) -> Result:
    """Return what is printed, written and drawn."""
    found = components(program.answer)
    largest = next(iter(found.values()), [])
    cycle = shortest_cycle(tree.edges, set(largest))
    reach = {root: sum((question, of) == ("reach", root) for question, _, of in program.answer) for root in changed}
    figures = {
        "modules": len(tree.modules),
        "imports": len(tree.edges),
        "left_out": sorted(tree.faults.values()),
        "cycles": list(found.values()),
        "shortest_cycle": cycle,
        "reach": reach,
        "seconds": round(program.pace.seconds, 4),
    }
    title = f"{options.directory}: {counted(len(tree.modules), 'module')}, {counted(len(tree.edges), 'import')}"
    panels = [importers_picture(tree.edges), cycle_picture(tree.edges, largest, cycle)]
    header = ("question", "module", "of")
    lines = described(program, tree, changed)
    if tree.faults:
        lines.append(f"{counted(len(tree.faults), 'file')} left out")
    return Result(lines, figures, header, sorted(program.answer), title, panels, shape=(6.0, 4.6), texts=header)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add = parser.add_argument
    add("directory", metavar="DIR", help="a directory of Python files: a package, or one that contains packages")
    reach = "list the modules that a change to MODULE reaches; may be repeated"
    add("--reach", action="append", default=[], metavar="MODULE", help=reach)
    add("--at-import", action="store_true", help="leave out imports inside of functions, which run later")
    add("--follow", action="store_true", help="watch the files, and print how the answers change, until Ctrl-C")
    interval = "seconds between two looks at the files with --follow (default %(default)s)"
    add("--interval", type=at_least(0.0), default=0.5, metavar="SECONDS", help=interval)
    add("--check", action="store_true", help="compute each answer from scratch with networkx, and compare")
    plot = "draw the most imported modules, and the largest cycle (.svg, .png, .pdf)"
    add_output(parser, plot=plot)
    return options_from(parser, arguments)


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()

    def body() -> None:
        with Interrupt(options.follow) as interrupt:
            execute(lambda worker: run(worker, options, interrupt))

    return status_of("imports", body)


if __name__ == "__main__":
    sys.exit(main())
