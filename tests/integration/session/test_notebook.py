"""The cells of docs/howto/notebook.md, in a real kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.modules import ROOT

CELL = re.compile(r"```py\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


def texts(cell: Any) -> str:
    """Return what a cell shows, as text."""
    shown = []
    for output in cell.outputs:
        if output.output_type == "stream":
            shown.append(output.text)
        elif output.output_type == "error":
            shown += output.traceback
        else:
            shown.append(output.data["text/plain"])
    return "\n".join(shown).rstrip()


RUN = """
import sys, nbclient, nbformat
from jupyter_client import AsyncKernelManager
source, directory = sys.argv[1:]
book = nbformat.read(source, 4)
manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{directory}/kernel")
nbclient.NotebookClient(book, timeout=50, km=manager, allow_errors=True).execute()
nbformat.write(book, source)
"""
"""A program that runs a notebook: Jupyter's client leaves sockets open, which here would be an error."""


def run(cells: list[str], directory: Path) -> Any:
    """Run a notebook of these cells in a kernel; return it."""
    nbformat = pytest.importorskip("nbformat", reason="the extra `test` has it")
    file = directory / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells]), file)
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(file), str(directory)], cwd=ROOT, capture_output=True, text=True, timeout=55
    )
    assert ran.returncode == 0, ran.stderr
    return nbformat.read(file, 4)


@pytest.mark.slow
def test_the_cells_of_the_document_show_what_it_says(tmp_path: Path) -> None:
    cells = CELL.findall((ROOT / "docs/howto/notebook.md").read_text())
    assert len(cells) == 6
    book = run([code for code, _ in cells], tmp_path)
    for cell, (_, expected) in zip(book.cells, cells):
        if expected:
            assert texts(cell) == expected.rstrip()
    live = book.cells[1].outputs[0].data
    assert "as of commit 2" in live["text/plain"]
    assert "<td>bob</td>" in live["text/html"]
    assert "cem" not in live["text/html"]
    assert "view   2" in texts(book.cells[5])


FRAME = 'pl.DataFrame({"src": ["ann", "bob", "cem"], "dst": ["bob", "ann", "ann"]})'
BEGIN = f"""
import threading
import polars as pl
import differential as dd
from differential.graphs import reachability, strongly_connected_components

def later(src, dst):
    def change():
        follows.insert(src=src, dst=dst)
        db.commit()
    threading.Timer(0.5, change).start()

frame = {FRAME}
"""
MAKE = """
follows = db.table("follows", frame, key="src")
rings   = db.view("rings", lambda t: strongly_connected_components(t.follows))
db.commit()
"""
READ = {
    "rings": "view 'rings', 2 rows as of commit 1\ncolumn_0  column_1\nann       ann\nbob       ann",
    "rings.to_polars().rows()": "[('ann', 'ann'), ('bob', 'ann')]",
    "rings.to_pandas().values.tolist()": "[['ann', 'ann'], ['bob', 'ann']]",
    "rings.to_arrow().to_pydict()": "{'column_0': ['ann', 'bob'], 'column_1': ['ann', 'ann']}",
    "len(rings)": "2",
    "watch = rings.watch()": "view 'rings', 0 rows as of commit 2\ncolumn_0  column_1",
    'follows.insert(src=["ann"], dst=["bob"]); follows.delete(src="bob", dst="ann"); db.commit()': "2",
    'watch.close(); db.ask(lambda t: reachability(t.follows, "ann")).records()': "[('ann', 'ann'), ('bob', 'ann')]",
}
FOLLOW = {
    'later("bob", "cem")\nfor change in rings.changes():\n    print(change.to_polars().rows())\n    break': (
        "[('ann', 'ann', 3, 1), ('bob', 'ann', 3, 1), ('cem', 'ann', 3, 1)]"
    ),
    'later("cem", "dan")\nlater("dan", "cem")\n'
    "async for change in rings.changes():\n    print(change.records())\n    break": "[(('dan', 'ann'), 1)]",
    'seen = []\nwatch = rings.watch(seen.append)\nfollows.delete(src="dan")\ndb.commit(); watch.close()\n'
    "seen[0].records()": "[(('dan', 'ann'), -1)]",
}


@pytest.mark.slow
@pytest.mark.parametrize("session", ["dd.Session()", "dd.Session(workers=2, processes=True, state={state!r})"])
def test_a_session_is_used_cell_by_cell(tmp_path: Path, session: str) -> None:
    begin = f"{BEGIN}\ndb = {session.format(state=str(tmp_path / 'db'))}{MAKE}"
    expected = READ | FOLLOW
    book = run([begin, *expected, "print(db.explain())\ndb.status()", "db.close()"], tmp_path)
    assert texts(book.cells[0]) == "1"
    for cell, shown in zip(book.cells[1:], expected.values()):
        assert texts(cell) == shown
    assert "<td>ann</td>" in book.cells[1].outputs[0].data["text/html"]
    explained = texts(book.cells[-2])
    assert (
        "view 'rings': 3 rows, indexed by 1 column(s), reads table 'follows' (defined at Cell In[1], line" in explained
    )
    assert "rings    view   3" in explained
    assert texts(book.cells[-1]) == ""


def test_the_script_prints_what_the_notebook_shows() -> None:
    program = [sys.executable, "examples/notebook.py"]
    printed = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=50, check=True).stdout
    cells = CELL.findall((ROOT / "docs/howto/notebook.md").read_text())
    assert printed.startswith(cells[0][1])
    assert printed.endswith(cells[3][1])
