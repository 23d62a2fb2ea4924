"""Pictures for the job `imports`: the most imported modules, and the largest cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from import_graph import Edge

from differential.jobs.picture import BLUE, GREY, ORANGE, Panel, nothing

BARS = 15
NAMED = 24
"""A cycle of more modules is drawn with the names of the modules on its shortest cycle only."""
MANY = 60
"""A cycle of more modules is drawn with finer lines, and without arrowheads where it is not highlighted."""


def importers_picture(edges: Iterable[Edge]) -> Panel:
    """Return the panel of the modules that most others import."""
    most = Counter(target for _, target in edges).most_common(BARS)

    def panel(axes: Any) -> None:
        title = "Most imported modules"
        if not most:
            return nothing(axes, title)
        names, numbers = zip(*reversed(most))
        axes.barh(names, numbers, color=BLUE)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", labelsize=7)
        axes.set(title=title, xlabel="modules that import it directly", ylabel="module")
        return None

    return panel


def cycle_picture(edges: Iterable[Edge], members: Sequence[str], cycle: Sequence[str]) -> Panel:
    """Return the panel of the imports between the modules of a component, with a shortest cycle highlighted."""
    shown = set(zip(cycle, [*cycle[1:], *cycle[:1]]))
    inner = sorted((source, target) for source, target in edges if {source, target} <= set(members))

    def panel(axes: Any) -> None:
        if not members:
            axes.axis("off")
            return nothing(axes, "Largest import cycle", "no modules import each other")
        angles = dict(zip(members, np.linspace(0, 2 * np.pi, len(members), endpoint=False)))
        places = {name: (np.cos(angle), np.sin(angle)) for name, angle in angles.items()}
        for edge in sorted(inner, key=lambda edge: edge in shown):
            colour, width = (ORANGE, 1.8) if edge in shown else (GREY, 0.5 if len(members) <= MANY else 0.2)
            head = "-|>" if edge in shown or len(members) <= MANY else "-"
            style: dict[str, Any] = {
                "arrowstyle": head,
                "color": colour,
                "linewidth": width,
                "shrinkA": 4,
                "shrinkB": 4,
            }
            style |= {"connectionstyle": "arc3,rad=0.12"}
            axes.annotate("", places[edge[1]], places[edge[0]], arrowprops=style)
        axes.scatter(*zip(*places.values()), s=14 if len(members) <= MANY else 4, color=BLUE, zorder=3)
        for name, angle in angles.items():
            if len(members) <= NAMED or name in cycle:
                x, y = 1.06 * np.cos(angle), 1.06 * np.sin(angle)
                side = "left" if x > 0.2 else "right" if x < -0.2 else "center"
                rise = "bottom" if y > 0.8 else "top" if y < -0.8 else "center"
                colour = ORANGE if name in cycle else "black"
                axes.text(x, y, name, ha=side, va=rise, fontsize=7, color=colour)
        axes.set(title=f"Largest import cycle: {len(members)} modules", xlim=(-1.9, 1.9), ylim=(-1.35, 1.35))
        axes.axis("off")
        return None

    return panel
