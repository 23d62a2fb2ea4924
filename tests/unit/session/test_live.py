"""The table of a view in a cell of a notebook, which follows the commits."""

from __future__ import annotations

from typing import Any

import IPython.display
import pytest

from differential import Session
from timely.errors import SessionError


class Cell:
    """A cell that keeps what it shows, as text."""

    def __init__(self, shown: object) -> None:
        self.update(shown)

    def update(self, shown: object) -> None:
        self.text = repr(shown)


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that are shown."""
    shown: list[Cell] = []

    def display(view: object, display_id: bool) -> Cell:
        shown.append(Cell(view))
        return shown[-1]

    monkeypatch.setattr(IPython.display, "display", display)
    return shown


def inverse(t: Any) -> Any:
    return t.numbers.map(lambda x: [60 // each for each in x.tolist()]).named("inverse")


def test_a_cell_shows_the_rows_as_of_the_last_commit_until_it_is_closed(cells: list[Cell]) -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        watch = db.view("all", lambda t: t.numbers).watch()
        db.commit()
        assert cells[0].text == "view 'all', 1 rows as of commit 1\nx\n1"
        numbers.insert(x=2)
        db.commit()
        watch.close()
        numbers.insert(x=3)
        db.commit()
        assert cells[0].text == "view 'all', 2 rows as of commit 2\nx\n1\n2"


def test_a_cell_shows_that_its_view_or_one_that_the_view_reads_has_failed(cells: list[Cell]) -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        for view in db.view("inverse", inverse), db.view("reader", lambda t: t.inverse.count()):
            view.watch()
        db.commit()
        numbers.insert(x=0)
        with pytest.raises(SessionError, match="view 'inverse' failed"):
            db.commit()
        assert [cell.text for cell in cells] == ["<view 'inverse', dropped>", "<view 'reader', dropped>"]


def test_a_cell_shows_in_the_next_commit_that_its_view_was_dropped_or_replaced(cells: list[Cell]) -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": [1]})
        for name in "kept", "dropped", "replaced":
            db.view(name, lambda t: t.numbers).watch()
        db.commit()
        db.drop("dropped")
        db.view("replaced", lambda t: t.numbers.map(lambda x: -x)).watch()
        numbers.insert(x=2)
        db.commit()
    kept, dropped, replaced, again = (cell.text for cell in cells)
    assert (dropped, replaced) == ("<view 'dropped', dropped>", "<view 'replaced', dropped>")
    assert "2 rows as of commit 2" in kept
    assert "2 rows as of commit 2" in again
