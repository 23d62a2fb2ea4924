"""No module imports from a layer above its own."""

from __future__ import annotations

import ast

import pytest

from tests.api.modules import modules, source

# Lowest first. A module belongs to the first entry that its name starts with; it may import its own layer and those
# that its layer names.
LEAVES = (
    "timely.errors",
    "timely.order",
    "timely.origin",
    "timely.closing",
    "timely.config",
    "timely.columns",
    "timely.container",
    "timely.buffers",
    "timely.captured",
    "timely.events",
    "timely.exact",
    "timely.interruption",
    "timely.notes",
    "timely.user_functions",
    "timely.text",
)
LAYERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "leaves": (LEAVES, ()),
    "progress": (("timely.progress",), ("leaves",)),
    "communication": (("timely.communication",), ("leaves",)),
    "dataflow": (("timely.dataflow",), ("leaves", "progress", "communication")),
    "running": (
        (
            "timely.worker",
            "timely.barrier",
            "timely.sequencer",
            "timely.accounting",
            "timely.executing",
            "timely.explaining",
            "timely.logging",
            "timely.shapes",
            "timely.signals",
            "timely.environment",
            "timely.stall",
            "timely.standstill",
            "timely.status",
            "timely.testing",
            "timely.failure",
            "timely.garbage",
            "timely.heap",
            "timely.large_pages",
            "timely.launched",
            "timely.launcher",
            "timely.terminal",
            "timely.child",
            "timely.run_directory",
            "timely.cli",
            "timely.command",
            "timely.__main__",
        ),
        ("leaves", "progress", "communication", "dataflow"),
    ),
    "kernels": (("differential.kernels",), ()),
    "trace": (("differential.trace",), ("kernels", "progress", "leaves")),
    "arguments": (("differential.arguments",), ("leaves",)),
    "graphs": (("differential.graphs",), ("differential", "delta", "arguments", "leaves")),
    "delta": (("differential.delta",), ("leaves", "collections")),
    "collections": (
        (
            "differential.operators",
            "differential.collection",
            "differential.arrangement",
            "differential.beside",
            "differential.capture",
            "differential.codes",
            "differential.errors",
            "differential.events",
            "differential.export",
            "differential.interning",
            "differential.keys",
            "differential.logging",
            "differential.negative",
            "differential.overflow",
            "differential.pact",
            "differential.replay",
            "differential.seen",
            "differential.tally",
            "differential.traces",
            "differential.updates",
            "differential.example",
        ),
        ("leaves", "progress", "dataflow", "timely", "kernels", "trace", "arguments"),
    ),
    "graphlinq": (("timely.graphlinq",), ("timely", "leaves")),
    "timely": (
        ("timely", "timely.api", "timely.capture"),
        ("leaves", "progress", "communication", "dataflow", "running"),
    ),
    "differential": (("differential",), ("collections", "timely")),
}
OWNERS = {"zmq": "timely.communication", "msgpack": "timely.communication", "numba": "differential.kernels"}


def layer_of(module: str) -> str:
    for layer, (prefixes, _) in LAYERS.items():
        for prefix in prefixes:
            if module == prefix or (module.startswith(prefix + ".") and prefix not in ("timely", "differential")):
                return layer
    raise AssertionError(f"{module} belongs to no layer: give it one in {__file__}")


def imports(module: str) -> set[str]:
    """Return what a module imports when it runs: imports for type checking alone do not count."""
    tree = ast.parse(source(module).read_text())
    found: set[str] = set()
    pending: list[ast.AST] = [tree]
    known = set(modules())
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{module} has a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known
            found.update(inner or {node.module})
        pending.extend(ast.iter_child_nodes(node))
    return found


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_from_its_layer_and_those_below(module: str) -> None:
    layer = layer_of(module)
    allowed = {layer, *LAYERS[layer][1]}
    for imported in imports(module):
        root = imported.split(".")[0]
        if root in OWNERS:
            assert module.startswith(OWNERS[root]), f"{module} imports {root}; only {OWNERS[root]} may"
        elif root in ("timely", "differential"):
            assert layer_of(imported) in allowed, f"{module} ({layer}) imports {imported} ({layer_of(imported)})"
