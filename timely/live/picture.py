"""Dataflows as a picture: by Graphviz, or, where there is none, by ELK in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from timely.errors import ConfigError
from timely.live.shape import Diagram
from timely.observe.notices import notify

DRAWER = Path(__file__).with_name("page") / "draw.mjs"
FORMATS = ("svg", "png", "pdf")
SECONDS = 120.0


def save(shapes: Sequence[Diagram], path: Path) -> None:
    """Write dataflows to a file, in the form that its name ends with; raise ConfigError where that cannot be drawn.

    Node.js draws one dataflow, the largest.
    """
    form = path.suffix.removeprefix(".").lower()
    if form in ("dot", "gv"):
        made = dot(shapes).encode(errors="surrogateescape")
    elif form == "json":
        made = json.dumps([shape.as_data() for shape in shapes], indent=1).encode()
    elif form not in FORMATS:
        raise ConfigError(f"cannot draw {path}: its name ends with .svg, .png, .pdf, .dot or .json")
    elif program := shutil.which("dot"):
        made = _output([program, f"-T{form}"], dot(shapes))
    elif form == "svg" and (program := shutil.which("node")):
        largest = max(shapes, key=lambda shape: len(shape.nodes))
        if len(shapes) > 1:
            others = len(shapes) - 1
            notify(
                f"{path} shows only the largest dataflow, {largest.dataflow} ({largest.name!r}), and leaves out "
                f"{others} other{'s' * (others > 1)}: install graphviz, which draws all"
            )
        made = _output([program, str(DRAWER)], json.dumps(largest.as_data()))
    else:
        raise ConfigError(
            f"cannot draw {path} without Graphviz: install graphviz, or write a .dot file and draw it later"
        )
    try:
        path.write_bytes(made)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None


def dot(shapes: Sequence[Diagram]) -> str:
    """Return dataflows in the language of Graphviz.

    >>> from timely.live.shape import Box, Diagram, DiagramEdge, DiagramNode
    >>> read = DiagramNode("input", 0, "job.py:3", "operator", True)
    >>> mapped = DiagramNode("map", 0, "job.py:4", "in line", False)
    >>> nodes = [read, mapped]
    >>> print(dot([Diagram(0, "words", [Box("words", -1, False)], nodes, [DiagramEdge(0, 1, -1, "", False)])]))
    digraph dataflows {
      ...
      subgraph cluster_0_0 {
        label="words"; ...
        n0_0 [label="input\\njob.py:3"];
        n0_1 [label="map\\njob.py:4", style="rounded,dashed"];
      }
      n0_0 -> n0_1;
    }
    """
    lines = ["digraph dataflows {", '  graph [fontname="sans-serif", style=rounded, color=gray60];']
    lines.append('  node [shape=box, style=rounded, fontname="sans-serif", fontsize=11]; edge [fontsize=9];')
    for shape in shapes:
        _scope(shape, 0, lines, "  ")
        for edge in shape.edges:
            marks = []
            if edge.pact and edge.pact != "pipeline":
                marks += ["penwidth=2", f"tooltip={_quoted(edge.pact)}"]
            if edge.is_loop:
                marks += ["style=dashed", "constraint=false"]
            ends = f"n{shape.dataflow}_{edge.source} -> n{shape.dataflow}_{edge.target}"
            lines.append(f"  {ends} [{', '.join(marks)}];" if marks else f"  {ends};")
    return "\n".join([*lines, "}"])


def _scope(shape: Diagram, number: int, lines: list[str], indent: str) -> None:
    """Add the lines of a scope with all in it."""
    box = shape.scopes[number]
    lines.append(f"{indent}subgraph cluster_{shape.dataflow}_{number} {{")
    mark = "style=dashed" if box.is_loop else "style=rounded"
    lines.append(f'{indent}  label={_quoted(box.name)}; {mark}; fontname="sans-serif"; fontsize=11;')
    for index, node in enumerate(shape.nodes):
        if node.scope == number:
            label = _quoted(node.name + (f"\n{Path(node.origin).name}" if node.origin else ""))
            style = {"in line": ', style="rounded,dashed"', "meeting": ", shape=ellipse"}.get(node.kind, "")
            lines.append(f"{indent}  n{shape.dataflow}_{index} [label={label}{style}];")
    for inner, other in enumerate(shape.scopes):
        if other.parent == number:
            _scope(shape, inner, lines, indent + "  ")
    lines.append(f"{indent}}}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _output(command: Sequence[str], given: str) -> bytes:
    try:
        done = subprocess.run(
            command, input=given.encode(errors="surrogateescape"), capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{command[0]} has not drawn the dataflow within {SECONDS:g} s: write a .dot file") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()[-500:]
        raise ConfigError(f"{command[0]} cannot draw the dataflow: {reason}")
    return done.stdout
