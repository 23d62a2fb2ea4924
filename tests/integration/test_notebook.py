"""Cells of a notebook, one after another: a worker continues from one to the next, and errors name cells and lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for cell in open(sys.argv[1]).read().split("#%%\\n")[1:]:
    print("=== cell ===")
    shell.run_cell(cell, store_history=True)
"""

SETUP = """#%%
import numpy as np
from differential import new_input
from timely import Config, execute, execute_directly
worker = execute_directly(lambda worker: worker)
with worker.dataflow("follows") as scope:
    follows, graph = new_input(scope)
    followers = graph.map(lambda one, other: other).count().output()
"""


def run(cells: str, directory: Path) -> list[str]:
    """Run cells in a process of their own; return what each printed."""
    (directory / "cells").write_text(cells)
    command = [sys.executable, "-c", RUN, str(directory / "cells")]
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 0, ended.stderr
    return [part.strip() for part in ended.stdout.split("=== cell ===\n")[1:]]


def test_a_worker_continues_from_cell_to_cell(tmp_path: Path) -> None:
    first, second, third = run(
        SETUP
        + """#%%
follows.insert(np.array([1, 2, 3]), np.array([2, 3, 2]))
follows.advance_to(1)
worker.step_while(lambda: followers.less_than(1))
print(followers.contents())
#%%
follows
""",
        tmp_path,
    )
    assert first == ""
    assert second == "{(2, 2): 1, (3, 1): 1}"
    assert third.endswith("InputSession(Input('input', time=(1,)))")


def test_an_error_names_the_cells_and_shows_no_line_of_the_library(tmp_path: Path) -> None:
    _, _, printed, after = run(
        SETUP
        + """#%%
def wrong(one, other):
    return one.nothing
#%%
with worker.dataflow() as scope:
    numbers, pairs = new_input(scope)
    pairs.map(wrong).output()
numbers.insert(1, 2)
numbers.close()
#%%
follows.insert(1, 2)
follows.close()
worker.step_while(lambda: not followers.done())
print(followers.contents())
""",
        tmp_path,
    )
    message, *lines = printed.splitlines()
    assert message.startswith(
        "timely: operator 'map' failed at time (0,) on worker 0 of 1 "
        "(Cell In[2], line 2, built at Cell In[3], line 3): AttributeError: "
    )
    assert lines == [
        "  Cell In[3], line 5, in <module>",
        "    numbers.close()",
        "  Cell In[2], line 2, in wrong",
        "    return one.nothing",
    ]
    assert after == "{(2, 1): 1}"


def test_an_error_names_the_worker_that_failed(tmp_path: Path) -> None:
    _, printed = run(
        SETUP
        + """#%%
def program(worker):
    with worker.dataflow() as scope:
        scope.to_stream([1]).exchange(lambda x: x).map(lambda x: 1 // 0)
execute(program, Config(workers=2))
""",
        tmp_path,
    )
    assert printed.splitlines()[1:] == [
        "  Cell In[2], line 4, in <module>",
        "    execute(program, Config(workers=2))",
        "  Cell In[2], line 3, in <lambda>",
        "    scope.to_stream([1]).exchange(lambda x: x).map(lambda x: 1 // 0)",
    ]
    assert "on worker 1 of 2" in printed


def test_a_refusal_shows_the_line_of_the_cell(tmp_path: Path) -> None:
    _, printed = run(SETUP + "#%%\nprint(followers.less_than((1, 2)))\n", tmp_path)
    assert printed.splitlines()[1:] == ["  Cell In[2], line 1, in <module>", "    print(followers.less_than((1, 2)))"]


def test_an_explanation_names_the_cell_that_holds_a_time_back(tmp_path: Path) -> None:
    _, printed = run(SETUP + "#%%\nprint(worker.explain())\n", tmp_path)
    assert "a capability for (0,) on output 0 of operator 'input' (built at Cell In[1], line 6), made at" in printed
