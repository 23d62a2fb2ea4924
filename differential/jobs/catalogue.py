"""Where the programs of the jobs are, and how to run one by its name.

In an installed package they are beside this module. In a checkout of the repository they are in `examples/`.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

INSTALLED = Path(__file__).parent / "examples"
CHECKOUT = Path(__file__).parents[2] / "examples"

MAIN = 'if __name__ == "__main__":'
"""The line that a program has, and a module that programs share does not."""


def directory() -> Path:
    return INSTALLED if INSTALLED.is_dir() else CHECKOUT


def programs() -> dict[str, Path]:
    """Return the path of each program, by its name.

    >>> programs()["components"].name
    'components.py'
    """
    return {path.stem: path for path in sorted(directory().glob("*.py")) if MAIN in path.read_text(encoding="utf-8")}


def about(path: Path) -> str:
    """Return the first line of a program's docstring.

    >>> about(programs()["components"])
    'Which nodes are connected: the weakly connected components of a graph.'
    """
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def run_program(path: Path, name: str, arguments: list[str]) -> int:
    """Run a program as a script, with these arguments; return its exit status."""
    sys.argv[:] = [f"-m differential.jobs {name}", *arguments]
    # Programs import modules beside them, as they do when they run as scripts.
    sys.path.insert(0, str(path.parent))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0
