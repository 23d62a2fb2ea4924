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


@pytest.mark.slow
def test_the_cells_of_the_document_show_what_it_says(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the extra `test` has it")
    cells = CELL.findall((ROOT / "docs/howto/notebook.md").read_text())
    assert len(cells) == 6
    file = tmp_path / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code, _ in cells]), file)
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(file), str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=55
    )
    assert ran.returncode == 0, ran.stderr
    book = nbformat.read(file, 4)
    for cell, (_, expected) in zip(book.cells, cells):
        if expected:
            assert texts(cell) == expected.rstrip()
    live = book.cells[1].outputs[0].data
    assert "as of commit 2" in live["text/plain"]
    assert "<td>bob</td>" in live["text/html"]
    assert "cem" not in live["text/html"]
    assert "view   2" in texts(book.cells[5])


def test_the_script_prints_what_the_notebook_shows() -> None:
    program = [sys.executable, "examples/notebook.py"]
    printed = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=50, check=True).stdout
    cells = CELL.findall((ROOT / "docs/howto/notebook.md").read_text())
    assert printed.startswith(cells[0][1])
    assert printed.endswith(cells[3][1])
