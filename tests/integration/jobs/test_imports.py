"""The job `imports` knows who imports whom, finds cycles and reach as networkx does, and follows edits."""

from __future__ import annotations

import json
import signal
import time as clock
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest

from tests.examples_loading import example_module
from tests.integration.jobs.programs import (
    INTERRUPTED,
    SECONDS,
    answered,
    drawn,
    epochs,
    here,
    on_two_processes,
    refused,
    started,
    table,
)

graph = example_module("import_graph")
imports = example_module("imports")

MODULES = ["app", "app.core", "app.core.base", "app.core.tools", "app.web", "app.web.views", "main"]
PACKAGES = {"app", "app.core", "app.web"}


def path_of(root: Path, module: str) -> Path:
    parts = module.split(".")
    return root.joinpath(*parts, "__init__.py") if module in PACKAGES else root.joinpath(*parts).with_suffix(".py")


def write_module(root: Path, module: str, lines: str) -> None:
    """Replace a module at once, so that nobody reads an empty file meanwhile."""
    path = path_of(root, module)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".whole")
    whole.write_text(lines + "\n")
    whole.replace(path)


def statement(random: Random, module: str, target: str) -> str:
    """Return an import of a module in one of the forms that Python has."""
    parent, _, name = target.rpartition(".")
    forms = [f"import {target}", f"import {target} as other", f"from {target} import something"]
    if parent:
        forms.append(f"from {parent} import {name}")
    package = module if module in PACKAGES else module.rpartition(".")[0]
    if package and parent == package:
        forms += [f"from . import {name}", f"from .{name} import something"]
    above = package.rpartition(".")[0]
    if above and parent == above:
        forms.append(f"from .. import {name}")
    line = random.choice(forms)
    return random.choice([line, f"def function():\n    {line}", f"try:\n    {line}\nexcept ImportError:\n    pass"])


def write_tree(root: Path, seed: int, count: int) -> set[tuple[str, str]]:
    """Write a tree with random imports, and others that do not count; return which there are."""
    random = Random(seed)
    every = [(module, target) for module in MODULES for target in MODULES if module != target]
    edges = set(random.sample(every, count))
    for module in MODULES:
        lines = ["from __future__ import annotations", "import os.path", "from typing import TYPE_CHECKING"]
        lines += [statement(random, module, target) for source, target in sorted(edges) if source == module]
        lines += [f"if TYPE_CHECKING:\n    import {random.choice(MODULES)}", f"import {module}"]
        write_module(root, module, "\n".join(lines))
    return edges


def expected(edges: set[tuple[str, str]], changed: list[str]) -> set[tuple[str, ...]]:
    whole = nx.DiGraph(edges)
    whole.add_nodes_from(changed)
    parts = [part for part in nx.strongly_connected_components(whole) if len(part) > 1]
    found = {("cycle", module, min(part)) for part in parts for module in part}
    return found | {("reach", module, root) for root in changed for module in nx.ancestors(whole, root)}


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(6))
def test_cycles_and_reach_are_those_of_networkx(tmp_path: Path, seed: int) -> None:
    root, answer, report = tmp_path / "src", tmp_path / "answer.csv", tmp_path / "report.json"
    edges = write_tree(root, seed, 5 + 2 * seed)
    given = "--reach", "app.core.base", "--reach", "app.web", "--csv", answer, "--json", report, "--check"
    answered("imports", root, *given, workers=1 + seed % 3)
    assert set(table(answer)) == expected(edges, ["app.core.base", "app.web"])
    found = json.loads(report.read_text())
    assert (found["modules"], found["imports"], found["left_out"]) == (len(MODULES), len(edges), [])
    parts = sorted(map(sorted, (part for part in nx.strongly_connected_components(nx.DiGraph(edges)) if len(part) > 1)))
    assert sorted(found["cycles"]) == parts
    cycle = found["shortest_cycle"]
    assert bool(cycle) == bool(parts)
    if cycle:
        assert set(zip(cycle, [*cycle[1:], cycle[0]])) <= edges
        largest = nx.DiGraph(edges).subgraph(found["cycles"][0])
        assert len(cycle) == min(map(len, nx.simple_cycles(largest)))


@pytest.mark.lengthy
def test_two_processes_answer_as_one_does(tmp_path: Path) -> None:
    edges = write_tree(tmp_path / "src", 3, 15)
    ended = on_two_processes("imports", tmp_path / "src", "--csv", tmp_path / "answer.csv", "--check", workers=2)
    assert ended.status == 0, ended.error
    assert set(table(tmp_path / "answer.csv")) == expected(edges, [])


@pytest.mark.lengthy
def test_a_directory_that_is_a_package_has_its_name(tmp_path: Path) -> None:
    edges = {edge for edge in write_tree(tmp_path / "src", 2, 12) if "main" not in edge}
    tree = graph.Tree(str(tmp_path / "src" / "app"))
    tree.refresh()
    assert tree.edges == edges
    assert tree.modules == set(MODULES) - {"main"}


@pytest.mark.lengthy
def test_imports_that_run_later_can_be_left_out(tmp_path: Path) -> None:
    write_module(tmp_path, "main", "import app\ndef function():\n    import app.web\nlater = lambda: __import__('app')")
    write_module(tmp_path, "app", "class Class:\n    import app.web\n    def method(self):\n        import main")
    write_module(tmp_path, "app.web", "if typing.TYPE_CHECKING:\n    import main\nelse:\n    import app")
    for at_import, extra in ((False, {("main", "app.web"), ("app", "main")}), (True, set())):
        tree = graph.Tree(str(tmp_path), at_import)
        tree.refresh()
        assert tree.edges == {("main", "app"), ("app", "app.web"), ("app.web", "app")} | extra


def test_statements_may_be_nested_deeply_and_links_lead_nowhere(tmp_path: Path) -> None:
    write_module(tmp_path, "main", "if x == 0:\n    pass\n" + "elif x:\n    pass\n" * 2000 + "else:\n    import app")
    write_module(tmp_path, "app", "import loop")
    (tmp_path / "loop.py").symlink_to("loop.py")
    tree = graph.Tree(str(tmp_path))
    assert tree.refresh() == ([], [("main", "app")])
    assert not tree.faults


@pytest.mark.lengthy
def test_an_import_beyond_the_top_counts_for_nothing(tmp_path: Path) -> None:
    write_module(tmp_path, "app", "from ... import main\nfrom .. import main")
    write_module(tmp_path, "main", "from . import app")
    tree = graph.Tree(str(tmp_path))
    assert tree.refresh() == ([], [])


@pytest.mark.lengthy
def test_a_file_with_an_error_is_left_out_and_named(tmp_path: Path) -> None:
    write_tree(tmp_path, 1, 8)
    write_module(tmp_path, "app.web.views", "import main\n\ndef function(:\n    pass")
    (tmp_path / "binary.py").write_bytes(b"\x00\xff\xfe")
    ended = here("imports", tmp_path, "--check")
    assert ended.status == 0
    assert f"imports: left out: {path_of(tmp_path, 'app.web.views')}, line 3: invalid syntax\n" in ended.error
    assert f"imports: left out: {tmp_path / 'binary.py'}" in ended.error
    assert ended.error.count("\n") == 2
    assert "2 files left out" in ended.output


@pytest.mark.lengthy
def test_a_random_walk_of_edits_is_followed(tmp_path: Path) -> None:
    random, tree = Random(5), graph.Tree(str(tmp_path))
    edges = write_tree(tmp_path, 0, 10)
    known: set[tuple[str, str]] = set()
    for number in range(30):
        gone, new = tree.refresh()
        known = (known - set(gone)) | set(new)
        assert tree.edges == known == edges, number
        module = random.choice(MODULES)
        targets = random.sample([other for other in MODULES if other != module], random.randrange(4))
        lines = [statement(random, module, target) for target in targets] + [f"number = {number}{'0' * number}"]
        write_module(tmp_path, module, "\n".join(lines))
        edges = {edge for edge in edges if edge[0] != module} | {(module, target) for target in targets}


@pytest.mark.lengthy
def test_a_module_that_goes_takes_its_imports_along(tmp_path: Path) -> None:
    write_module(tmp_path, "main", "from app import core")
    write_module(tmp_path, "app", "")
    write_module(tmp_path, "app.core", "import main")
    tree = graph.Tree(str(tmp_path))
    assert tree.refresh() == ([], [("app.core", "main"), ("main", "app.core")])
    path_of(tmp_path, "app.core").unlink()
    assert tree.refresh() == ([("app.core", "main"), ("main", "app.core")], [("main", "app")])


def until(process: Any, is_so: Any, what: str) -> None:
    end = clock.monotonic() + SECONDS
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert clock.monotonic() < end, what
        clock.sleep(0.05)


@pytest.mark.lengthy
def test_edits_are_followed_until_ctrl_c(tmp_path: Path) -> None:
    root, changes = tmp_path / "src", tmp_path / "changes"
    write_module(root, "main", "import app")
    write_module(root, "app", "")
    write_module(root, "app.core", "import app.web")
    write_module(root, "app.web", "")
    given = "--follow", "--interval", "0.05", "--reach", "app", "--check", "--changes", changes
    with started("imports", root, *given) as process:

        def answer_is(*records: tuple[str, str, str]) -> bool:
            found = epochs(changes) if changes.exists() else {}
            return bool(found) and found[max(found)] == set(records)

        reach = ("reach", "main", "app")
        until(process, lambda: answer_is(reach), "the first answer")
        write_module(root, "app.web", "from ..core import something")
        cycle = ("cycle", "app.core", "app.core"), ("cycle", "app.web", "app.core")
        until(process, lambda: answer_is(reach, *cycle), "the cycle")
        write_module(root, "app.web", "from . import core as")
        until(process, lambda: answer_is(reach), "the error")
        write_module(root, "app.web", "import main, app.core  # repaired")
        wanted = reach, *cycle, ("reach", "app.core", "app"), ("reach", "app.web", "app")
        until(process, lambda: answer_is(*wanted), "the repaired file")
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=SECONDS)
    assert process.returncode == INTERRUPTED
    assert "1 import cycle, of 2 modules" in output
    fault = f"imports: left out: {path_of(root, 'app.web')}, line 1: "
    assert error.startswith(fault)
    assert error.count("\n") == 1


@pytest.mark.lengthy
def test_what_cannot_be_answered_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert refused("imports", missing) == f"imports: cannot read {missing}: No such file or directory"
    assert refused("imports", tmp_path) == f"imports: {tmp_path} has no Python files"
    write_tree(tmp_path, 1, 8)
    line = refused("imports", tmp_path, "--reach", "app.wed")
    assert line.startswith("imports: --reach app.wed: no module has this name; did you mean app.web")


@pytest.mark.lengthy
def test_a_difference_from_scratch_is_reported(tmp_path: Path) -> None:
    write_tree(tmp_path, 3, 15)
    tree = graph.Tree(str(tmp_path))
    tree.refresh()
    right = imports.from_scratch(tree.edges, ["app"])
    assert right == expected(tree.edges, ["app"])
    imports.check(right, tree, ["app"])
    with pytest.raises(imports.CheckError, match=r"\('cycle', 'none', 'none'\) should not be in the answer"):
        imports.check(right | {("cycle", "none", "none")}, tree, ["app"])


@pytest.mark.lengthy
@pytest.mark.parametrize("count", [0, 20])
def test_the_picture_has_axes(tmp_path: Path, count: int) -> None:
    write_tree(tmp_path / "src", 1, count)
    assert drawn("imports", tmp_path / "picture.svg", tmp_path / "src").count('<g id="axes_') == 2
