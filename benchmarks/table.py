"""The printed table: figures with their references and targets, and comparisons of two cases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.comparisons import COMPARISONS
from benchmarks.harness import WARM_UP, Case, Figures, at_least
from benchmarks.incremental import INITIAL, SCIPY, SINGLE_MEAN

HEADINGS = ("case", "figure", "here", "reference", "ratio", "target", "")


def table(cases: Sequence[Case], figures: Mapping[str, Figures], peers: bool) -> str:
    """Return the lines of the cases, from their figures by name; with `peers` also the times of SciPy."""
    rows = [row for case in cases for row in _rows(case, figures[case.name], peers)]
    return aligned([HEADINGS, *rows, *_comparisons(figures)])


def _rows(case: Case, figures: Figures, peers: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, figure in figures.items():
        if name in (SCIPY, SINGLE_MEAN) and not peers:
            continue
        reference = case.references.get(name)
        ratio = "" if reference is None else f"{figure / reference.figure:.2f}"
        shown = "" if reference is None else str(reference)
        rows.append(("", name, _shown(figure), shown, ratio, *_target(case, name, figure)))
    if peers and SCIPY in figures:
        rows.append(("", "SciPy is slower after", break_even(figures), "", "", "", ""))
    return [(case.name, *rows[0][1:]), *rows[1:]]


def _comparisons(results: Mapping[str, Figures]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for each in COMPARISONS:
        found = each.of(results)
        if found is not None:
            target = "" if each.target is None else f"{'<=' if each.growth else '>='} {each.target:g}"
            rows.append((each.name, "", f"{found:.2f}", "", "", target, "" if each.is_met(found) else "missed"))
    return rows


def _target(case: Case, name: str, figure: float) -> tuple[str, str]:
    """Return the target of the figure, and whether it is missed."""
    limit = case.limits.get(name)
    reference = case.references.get(name)
    if limit is None and reference is not None and reference.target is not None:
        limit = reference.target * reference.figure
    if limit is None or name == WARM_UP:
        return "", ""
    met = figure >= limit if at_least(name) else figure <= limit
    return f"{'>=' if at_least(name) else '<='} {_shown(limit)}", "" if met else "missed"


def break_even(figures: Figures) -> str:
    """Return the number of one-edge changes after which SciPy, run again after each, would have taken longer."""
    if SINGLE_MEAN not in figures:
        return ""
    saved = figures[SCIPY] - 1e-6 * figures[SINGLE_MEAN]
    if saved <= 0:
        return "never"
    return f"{math.ceil(max(0.0, figures[INITIAL] - figures[SCIPY]) / saved):,} changes"


def _shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def aligned(rows: Sequence[tuple[str, ...]], left: int = 2) -> str:
    """Return rows as lines: the first `left` cells aligned to the left, and others but the last to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:left], widths)]
        cells += [cell.rjust(width) for cell, width in zip(row[left:-1], widths[left:])]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)
