"""Each room imports only from rooms below it, and no modules import each other in a ring.

Imports for type checking count, and so do those inside functions: an arrow that only the type checker follows is one
that a reader follows too.
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator

import pytest

from tests.api.modules import modules, tree
from timely.progress.cycles import strong_components
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary

ROOMS: dict[str, tuple[str, ...]] = {
    "timely leaves": tuple(
        f"timely.{name}"
        for name in ("errors", "arguments", "order", "origin", "closing", "interruption", "config", "uncopied")
    ),
    "timely.data": ("timely.data",),
    "timely.progress": ("timely.progress",),
    "timely.observe": ("timely.observe",),
    "timely.communication": ("timely.communication",),
    "timely.capture": ("timely.capture",),
    "timely.dataflow": ("timely.dataflow",),
    "timely.worker": ("timely.worker",),
    "timely.synchronization": ("timely.synchronization",),
    "timely.live": ("timely.live",),
    "timely.run": ("timely.run",),
    "timely.cluster": ("timely.cluster",),
    "timely": ("timely.api", "timely.lowlevel", "timely.services", "timely.testing", "timely.__main__", "timely"),
    "timely.graphlinq": ("timely.graphlinq",),
    "differential leaves": tuple(f"differential.{name}" for name in ("beside", "errors", "extra", "arguments", "keys")),
    "differential.kernels": ("differential.kernels",),
    "differential.data": ("differential.data",),
    "differential.trace": ("differential.trace",),
    "differential.arrangement": ("differential.arrangement",),
    "differential.frames": ("differential.frames",),
    "differential.operators": ("differential.operators",),
    "differential.capture": ("differential.capture",),
    "collections": tuple(f"differential.{name}" for name in ("collection", "variable", "sources", "example")),
    "differential.durable": ("differential.durable",),
    "differential.session": ("differential.session",),
    "differential": ("differential.lowlevel", "differential"),
    "differential.delta": ("differential.delta",),
    "differential.graphs": ("differential.graphs",),
    "differential.jobs": ("differential.jobs",),
}
"""The rooms of the packages, lowest first, and the modules or packages that each consists of."""
PUBLIC = (
    "timely",
    "timely.lowlevel",
    "timely.services",
    "timely.errors",
    "timely.capture",
    "timely.observe.events",
    "timely.progress",
)
"""The modules of timely whose exported names a layer on top may use."""
LAYERS = {
    "timely.graphlinq": PUBLIC,
    "differential": PUBLIC,
    "differential.graphs": (*PUBLIC, "differential", "differential.delta", "differential.lowlevel"),
}
"""The modules whose exported names a layer may use, besides its own."""
OWNERS = {
    "zmq": "timely.communication",
    "msgpack": "timely.communication",
    "numba": "differential.kernels",
    "pandas": "differential.frames",
    "polars": "differential.frames",
    "obstore": "differential.durable",
    "mpi4py": "timely.cluster",
    "ray": "timely.cluster",
}
"""The room that alone imports a library."""
SHARED = {
    "pyarrow": ("differential.durable", "differential.frames", "differential.jobs", "differential.session"),
    "confluent_kafka": ("differential.session.sinks", "differential.session.sources"),
    "psycopg": ("differential.session.sinks", "differential.session.sources"),
}
"""The rooms that share one."""


def exports(module: str) -> set[str]:
    """Return the names that a public module exports: those of `__all__`, or those that it defines."""
    found = importlib.import_module(module)
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", None) == module]
    return set(getattr(found, "__all__", own))


def room_of(module: str) -> str:
    found = [
        (len(prefix), room)
        for room, prefixes in ROOMS.items()
        for prefix in prefixes
        if module == prefix or (module.startswith(f"{prefix}.") and prefix not in ("timely", "differential"))
    ]
    assert found, f"{module} is in no room: give it one in {__file__}"
    return max(found)[1]


@functools.cache
def imports(module: str) -> frozenset[str]:
    """Return what a module imports: at its top, for type checking, and inside functions."""
    found: set[str] = set()
    known = set(modules())
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{module} has a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known
            found.update(inner or {node.module})
    return frozenset(found - {module})


def ours() -> Iterator[tuple[str, str]]:
    """Yield each import of one of our modules by another."""
    for module in modules():
        for imported in imports(module):
            if imported.split(".")[0] in ("timely", "differential"):
                yield module, imported


def test_rooms_import_only_from_rooms_below() -> None:
    order = list(ROOMS)
    upward = [
        f"{module} ({room_of(module)}) imports {imported} ({room_of(imported)})"
        for module, imported in ours()
        if order.index(room_of(imported)) > order.index(room_of(module))
    ]
    assert upward == []


def test_no_modules_import_each_other_in_a_ring() -> None:
    number = {module: place for place, module in enumerate(modules())}
    same = PathSummary.identity(0)
    edges = [Edge(number[module], number[imported], same) for module, imported in ours()]
    rings = [sorted(modules()[place] for place in part) for part in strong_components(number.values(), edges)]
    assert [ring for ring in rings if len(ring) > 1] == []


def test_a_library_is_imported_by_its_owner_alone() -> None:
    strangers = []
    for module in modules():
        for imported in imports(module):
            library = imported.split(".")[0]
            owners = SHARED.get(library, (OWNERS[library],) if library in OWNERS else ("",))
            if not module.startswith(owners):
                strangers.append(f"{module} imports {imported}; only {owners} may")
    assert strangers == []


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_public_names_alone(layer: str) -> None:
    """A layer like it can be written by anybody: what it asks of the packages below is documented, and typed."""
    members = [module for module in modules() if module == layer or module.startswith(f"{layer}.")]
    assert members
    assert [name for module in members for name in private_imports(module, layer, LAYERS[layer])] == []


def private_imports(module: str, layer: str, public: tuple[str, ...]) -> list[str]:
    """Return what a module of a layer imports of the packages that neither the layer nor a public module has."""
    private = []
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom):
            origin, names = str(node.module), {alias.name for alias in node.names} - {"*", "__all__"}
            named = [(origin, name) for name in sorted(names)]
        elif isinstance(node, ast.Import):
            named = [(alias.name, "") for alias in node.names]
        else:
            continue
        for origin, name in named:
            is_own = origin == layer or origin.startswith(f"{layer}.")
            if is_own or origin.split(".")[0] not in ("timely", "differential"):
                continue
            if origin not in public or (name and name not in exports(origin)):
                private.append(f"{module}: {origin}.{name}".rstrip("."))
    return private


def test_a_private_import_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
import timely.lowlevel, timely.worker
from timely import Stream, no_such_name
from timely.lowlevel import OperatorBuilder
from timely.data.container import Columns
from differential.graphs.inputs import nodes_of
from differential.trace.spine import Spine
"""
    monkeypatch.setattr(f"{__name__}.tree", lambda module: ast.parse(source))
    assert private_imports("differential.graphs.bfs", "differential.graphs", PUBLIC) == [
        "differential.graphs.bfs: timely.worker",
        "differential.graphs.bfs: timely.no_such_name",
        "differential.graphs.bfs: timely.data.container.Columns",
        "differential.graphs.bfs: differential.trace.spine.Spine",
    ]
