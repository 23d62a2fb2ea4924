"""Plot rows with the plotting library that is installed.

matplotlib is used if it is there, or else plotly: both show what they have drawn in a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from importlib import import_module
from numbers import Real
from types import NoneType
from typing import Any, Literal

import numpy as np

from differential.frames.python import items
from differential.session.rows import Rows
from timely.errors import SessionError

Shape = Literal["line", "bar", "scatter"]
SHAPES = ("line", "bar", "scatter")


def plotted(rows: Rows, x: str | None, y: str | Sequence[str] | None, shape: Shape | None) -> Any:
    """Return a plot of columns, as `Readable.plot` describes it."""
    columns = dict(zip(rows.columns, map(items, rows.arrays())))
    across = rows.columns[0] if x is None else x
    given = [y] if isinstance(y, str) else y
    up = [name for name in columns if name != across and _is_of_numbers(columns[name])] if given is None else [*given]
    for name in (across, *up):
        if name not in columns:
            raise SessionError(f"there is no column {name!r} to plot: the columns are {', '.join(columns)}")
    wrong = [name for name in up if not _is_of_numbers(columns[name])]
    if wrong or not up:
        which = f"column {wrong[0]!r} does not hold" if wrong else f"no column but {across!r} holds"
        raise SessionError(f"{which} numbers, which a plot needs: plot(x, y) names columns")
    if shape is not None and shape not in SHAPES:
        raise SessionError(f"shape is 'line', 'bar' or 'scatter', not {shape!r:.80}")
    places = _places(columns[across])
    # A date or a number beside text has become text in `_places`.
    made = shape or ("bar" if any(isinstance(value, str) for value in places) else "line")
    series = {name: [None if value is None else float(value) for value in columns[name]] for name in up}
    return _drawn(across, places, series, made)


def _is_of_numbers(values: Sequence[Any]) -> bool:
    return all(value is None or hasattr(value, "__float__") or isinstance(value, Real) for value in values)


def _places(values: Sequence[Any]) -> Sequence[Any]:
    """Return what is on the axis: numbers and dates as they are, and the text of anything else, with that of its nulls.

    >>> _places([1, None]), _places(["ann", None])
    ([1, None], ['ann', 'None'])
    """
    are_known = _is_of_numbers(values) or all(isinstance(value, (date, np.datetime64, NoneType)) for value in values)
    return values if are_known else list(map(str, values))


def _drawn(across: str, places: Sequence[Any], series: dict[str, list[float | None]], shape: Shape) -> Any:
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError:
        return _in_plotly(across, places, series, shape)
    axes = pyplot.subplots()[1]
    for name, values in series.items():
        known = [float("nan") if value is None else value for value in values]
        {"line": axes.plot, "bar": axes.bar, "scatter": axes.scatter}[shape](places, known, label=name)
    axes.set_xlabel(across)
    if len(series) == 1:
        axes.set_ylabel(next(iter(series)))
    else:
        axes.legend()
    return axes


def _in_plotly(across: str, places: Sequence[Any], series: dict[str, list[float | None]], shape: Shape) -> Any:
    try:
        objects: Any = import_module("plotly.graph_objects")
    except ImportError:
        raise ImportError("plot() draws with matplotlib or plotly: pip install matplotlib") from None
    figure = objects.Figure()
    for name, values in series.items():
        if shape == "bar":
            figure.add_bar(x=places, y=values, name=name)
        else:
            figure.add_scatter(x=places, y=values, name=name, mode="lines" if shape == "line" else "markers")
    figure.update_layout(xaxis_title=across, yaxis_title=next(iter(series)) if len(series) == 1 else None)
    return figure
