"""How the build compiles modules (`hatch_build.py`): with the C code of mypyc, and few extensions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.modules import ROOT

pytestmark = pytest.mark.lengthy

SOURCES = {
    "timely/__init__.py": "",
    "timely/part.py": "def twice(number: int) -> int:\n    return number * 2\n",
    "timely/inner/__init__.py": "from timely.inner.part import Total\n",
    "timely/inner/part.py": """\
from timely.part import twice
from timely.plain import Plain

class Total:
    def __init__(self) -> None:
        self.plain = Plain()

    def add(self, number: int) -> int:
        return self.plain.add(twice(number)) + self.plain.total
""",
    "timely/plain.py": """\
class Plain:
    def __init__(self) -> None:
        self.total = 0

    def add(self, number: int) -> int:
        more = [number]
        self.total += sum(more)
        return self.total
""",
}
COMPILED = ("timely/inner/__init__.py", "timely/inner/part.py", "timely/part.py")

GENERATE = """
import sys
from pathlib import Path
from hatch_build import _generated
from mypyc.build import mypycify
paths = ["--config-file=", "--follow-imports=silent", *sys.argv[1:]]
(code, _), own = _generated(paths, Path("own")), Path("mypyc")
mypycify(paths, group_name="timely", multi_file=True, target_dir=str(own))
assert len(code[0]) >= 6
for name, text in code[0]:
    assert (own / name).read_text() == text, name
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a directory with the sources."""
    pytest.importorskip("mypyc")
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _run(directory: Path, *arguments: str, path: Path = ROOT, **variables: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(path)} | variables
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_c_code_does_not_depend_on_what_is_checked_of_other_modules(project: Path) -> None:
    pytest.importorskip("setuptools")
    _run(project, "-c", GENERATE, *COMPILED)


def test_a_compiler_that_lacks_the_passes_of_gcc_compiles_as_well(project: Path) -> None:
    pytest.importorskip("setuptools")
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    narrow = project / "cc"
    narrow.write_text(
        f"""#!/bin/sh
for each; do case "$each" in -fno-tree-*) echo "$0: unknown argument: $each" >&2; exit 1;; esac; done
exec {compiler} "$@"
"""
    )
    narrow.chmod(0o755)
    _run(project, str(ROOT / "hatch_build.py"), str(project / "made"), *COMPILED, CC=str(narrow))
    assert list((project / "made" / "modules").rglob("*.so"))


def test_modules_that_share_an_extension_are_imported_each(project: Path) -> None:
    """Two of them have the same last name, and one is a package."""
    pytest.importorskip("setuptools")
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    _run(project, str(ROOT / "hatch_build.py"), str(project / "made"), *COMPILED)
    modules = project / "made" / "modules"
    made = {str(each.relative_to(modules)).partition(".")[0] for each in modules.rglob("*.so")}
    assert made == {"timely__mypyc", *(name.removesuffix(".py") for name in COMPILED)}
    for name in SOURCES:
        if name not in COMPILED:
            shutil.copy(project / name, modules / name)
    text = """
import timely.inner.part, timely.part
total = timely.inner.Total()
print(total.add(3), total.add(4), timely.part.twice(5))
for module in (timely.inner, timely.inner.part, timely.part):
    assert module.__file__.endswith(".so"), module.__file__
"""
    assert _run(modules, "-c", text, path=modules).split() == ["12", "28", "10"]
