"""Pictures of rows, by the library that is installed."""

from __future__ import annotations

import datetime as dt
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from differential.session import Session
from differential.session.plotting import plotted
from differential.session.rows import Rows
from timely.errors import SessionError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def rows() -> Rows:
    days = np.array(["2026-01-02", "2026-01-01"], "M8[D]")
    return Rows(("day", "people", "share"), (days, np.array([3, 1]), np.array([0.5, 0.25])), np.array([1, 1]))


def test_columns_of_numbers_are_lines_over_the_first_column() -> None:
    axes = plotted(rows(), None, None, None)
    assert [line.get_label() for line in axes.lines] == ["people", "share"]
    assert [line.get_xdata().tolist() for line in axes.lines] == [[dt.date(2026, 1, 1), dt.date(2026, 1, 2)]] * 2
    assert [line.get_ydata().tolist() for line in axes.lines] == [[1, 3], [0.25, 0.5]]
    assert (axes.get_xlabel(), axes.get_legend() is not None) == ("day", True)


def test_one_column_names_its_axis() -> None:
    axes = plotted(rows(), "people", "share", "scatter")
    assert axes.collections[0].get_offsets().tolist() == [[1, 0.25], [3, 0.5]]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_legend()) == ("people", "share", None)


def test_a_null_is_a_gap() -> None:
    with Session() as db:
        table = db.table("t", {"x": int, "y": int | None})
        table.insert([(1, 5), (2, None)])
        db.commit()
        values = table.plot().lines[0].get_ydata().tolist()
    assert values[0] == 5
    assert np.isnan(values[1])


def test_without_matplotlib_plotly_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, dict[str, Any]]] = []

    class Figure:
        def add_bar(self, **given: Any) -> None:
            drawn.append(("bar", given))

        def add_scatter(self, **given: Any) -> None:
            drawn.append(("scatter", given))

        def update_layout(self, **given: Any) -> None:
            drawn.append(("layout", given))

    objects = ModuleType("plotly.graph_objects")
    objects.Figure = Figure  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", objects)
    assert isinstance(plotted(rows(), "people", "share", None), Figure)
    assert drawn == [
        ("scatter", {"x": [1, 3], "y": [0.25, 0.5], "name": "share", "mode": "lines"}),
        ("layout", {"xaxis_title": "people", "yaxis_title": "share"}),
    ]


def test_without_either_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plotted(rows(), None, None, None)


@pytest.mark.parametrize(
    ("x", "y", "shape", "message"),
    [
        ("dey", None, None, "there is no column 'dey' to plot: the columns are day, people, share"),
        ("people", "day", None, "column 'day' does not hold numbers"),
        (None, [], None, "no column but 'day' holds numbers"),
        (None, None, "pie", "shape is 'line', 'bar' or 'scatter', not 'pie'"),
    ],
)
def test_what_cannot_be_plotted_is_refused(x: Any, y: Any, shape: Any, message: str) -> None:
    with pytest.raises(SessionError, match=message):
        plotted(rows(), x, y, shape)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["ann", None], ["ann", "None"]),
        ([dt.timedelta(hours=1), None], ["1:00:00", "None"]),
        ([dt.time(1), dt.time(2)], ["01:00:00", "02:00:00"]),
        ([[1], [1, 2]], ["(1,)", "(1, 2)"]),
    ],
)
def test_what_an_axis_has_no_place_for_is_shown_as_text(values: list[Any], labels: list[str]) -> None:
    with Session() as db:
        table = db.table("t", {"label": values, "number": [3, 5]})
        db.commit()
        axes = table.plot()
        axes.figure.canvas.draw()
        assert [label.get_text() for label in axes.get_xticklabels()] == labels
        assert [bar.get_height() for bar in axes.patches] == [3, 5]
