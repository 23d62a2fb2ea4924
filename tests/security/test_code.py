"""What is run as code: the named program, and nothing from data or from the directory in which the command starts."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.launching import ROOT, Run
from timely.worker.garbage import paused

RUNS_CODE = frozenset({"eval", "exec", "compile", "pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"})
MAY = {
    "timely/run/launched.py": {"exec", "compile"},  # the program that `timely run` is given
    "timely/interruption.py": {"exec"},  # a text of its own
    "differential/session/channel.py": {"pickle", "cloudpickle"},  # between the processes of a session: test_processes
    "differential/kernels/loader.py": {"pickle"},  # exceptions of kernels: a reader that refuses all but plain data
}
READS_OBJECTS = frozenset({"load", "loads", "fromfile"})
HOSTILE = sorted({*sys.stdlib_module_names} - {"__future__", "builtins", "sys"})
INSTALLED = ("timely", "differential", "numpy", "zmq", "msgpack", "numba", "llvmlite", "sitecustomize", "usercustomize")
SCRIPT = """
import sys, json
import timely, differential
from timely import execute
execute(lambda worker: None)
print(sys.path[0])
"""


def sources() -> Iterator[Path]:
    for package in ("timely", "differential", "examples"):
        yield from (ROOT / package).rglob("*.py")


def names_in(path: Path) -> Iterator[str]:
    """Yield the names through which a module could run data."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in ("np", "numpy") and node.func.attr in READS_OBJECTS:
                yield "pickle"  # NumPy's own files may hold objects
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            yield "pickle"


def test_no_module_runs_what_it_reads() -> None:
    found = {}
    with paused():
        for path in sources():
            place = str(path.relative_to(ROOT))
            names = RUNS_CODE.intersection(names_in(path)) - MAY.get(place, set())
            if names:
                found[place] = names
    assert found == {}


def test_the_search_finds_forbidden_calls(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    for line in ("import pickle", "from yaml import load", "eval(text)", "np.load(path)", "f(allow_pickle=True)"):
        path.write_text(line)
        assert RUNS_CODE.intersection(names_in(path)), line


@pytest.mark.parametrize("processes", [1, 2])
def test_modules_in_the_working_directory_are_not_imported(processes: int, tmp_path: Path) -> None:
    for name in (*HOSTILE, *INSTALLED):
        (tmp_path / f"{name}.py").write_text(
            f"raise SystemExit('{name} was imported from where the command started')\n"
        )
    (tmp_path / "elsewhere").mkdir()
    script = tmp_path / "elsewhere" / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "command"  # as the installed command
    command.write_text("import sys\nfrom timely.run.cli import main\nsys.exit(main())\n")
    run = Run("run", "-n", str(processes), script, directory=tmp_path, command=[str(command)])
    try:
        assert run.end() == 0, run.error
        assert len(run.lines) == processes
        assert all(line.endswith(f"{script.parent}\n") for line in run.lines)
    finally:
        run.close()


def test_a_module_to_run_is_searched_in_the_working_directory_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SCRIPT)
    run = Run("run", "-m", "program", directory=tmp_path)
    try:
        assert run.end() == 0, run.error
        assert run.lines == [f"{tmp_path}\n"]
    finally:
        run.close()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_safe_path_excludes_the_working_directory(processes: int, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("print('a package where the command starts was imported')\n")
    (tmp_path / "package" / "program.py").write_text(SCRIPT)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "command"
    command.write_text("import sys\nfrom timely.run.cli import main\nsys.exit(main())\n")
    safe = {"PYTHONSAFEPATH": "1"}
    arguments = ("run", "-n", str(processes), "-m", "package.program")
    run = Run(*arguments, directory=tmp_path, command=[str(command)], environ=safe)
    try:
        assert run.end() == 2
        assert (run.output, "no module named 'package.program'" in run.error) == ("", True)
    finally:
        run.close()


@pytest.mark.lengthy
def test_a_safe_path_excludes_the_directory_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "differential.py").write_text("raise SystemExit('a file beside the script was imported')\n")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for safe, status in (("1", 0), ("", 1)):
        run = Run("run", "-n", "2", script, environ={"PYTHONSAFEPATH": safe})
        try:
            assert run.end() == status, run.error
        finally:
            run.close()
