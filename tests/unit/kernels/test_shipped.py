"""The compiled kernels of a wheel are used if they are whole, safe, and for this processor and these sources."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from random import Random

import pytest

from differential.kernels import loader as loading, shipped as shipping, store as stores
from differential.kernels.__main__ import import_all
from differential.kernels.compile import kernel, largest_first
from differential.kernels.digest import reached
from differential.kernels.fields import append_field, field
from differential.kernels.packing import divided, made_for
from differential.kernels.processor import Processor
from differential.kernels.shipped import Shipped, name_of
from differential.kernels.store import UnsafeError

ROOT = Path(shipping.__file__).parents[2]
BASELINE = Processor.levels()[-1]


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report what was reported before, too."""
    monkeypatch.setattr(stores, "_reported", set())


def test_a_file_holds_what_was_written(tmp_path: Path) -> None:
    payloads = {name_of("one"): b"code of one\n\0", name_of("none"): b"", name_of("two"): b"code of two"}
    path = Shipped(BASELINE, payloads).write(tmp_path / "new", BASELINE.name)
    read = Shipped.read(path)
    assert read.processor == BASELINE
    assert [read.payload(key) for key in ("one", "none", "two", "three")] == [
        b"code of one\n\0",
        b"",
        b"code of two",
        None,
    ]


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
@pytest.mark.usefixtures("reported")
def test_a_damaged_file_is_reported_in_one_line_and_not_used(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Shipped(BASELINE, {name_of("one"): b"code" * 100}).write(tmp_path, BASELINE.name)
    content = path.read_bytes()
    damaged = {"cut": content[:-1], "flipped": content[:-9] + b"C" + content[-8:], "text": b"this is not a kernel"}
    path.write_bytes(damaged[damage])
    assert Shipped.of_directory(tmp_path) is None
    assert capsys.readouterr().err == f"differential: {path} is damaged; the kernels are compiled again\n"


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_file_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    path = Shipped(BASELINE, {}).write(tmp_path, BASELINE.name)
    path.chmod(0o666)
    with pytest.raises(UnsafeError, match="can be written by all users"):
        Shipped.read(path)


@pytest.mark.usefixtures("reported")
def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Shipped(BASELINE, {}).write(tmp_path, "elsewhere")
    (tmp_path / f"{BASELINE.name}.kernels").symlink_to(path)
    assert Shipped.of_directory(tmp_path) is None
    assert "; the kernels are compiled again" in capsys.readouterr().err


def test_the_best_file_that_this_processor_runs_is_used(tmp_path: Path) -> None:
    for processor in Processor.levels():
        Shipped(processor, {}).write(tmp_path, processor.name)
    best = next(each for each in Processor.levels() if each.runs_here())
    found = Shipped.of_directory(tmp_path)
    assert found is not None
    assert found.processor == best


def test_a_file_for_another_processor_is_not_used(tmp_path: Path) -> None:
    Shipped(Processor("another", "+wings"), {}).write(tmp_path, "host")
    assert Shipped.of_directory(tmp_path) is None


@pytest.mark.lengthy
@pytest.mark.timeout(300)
def test_kernels_are_packed_under_the_keys_by_which_they_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from differential.kernels import compile as compiling

    monkeypatch.setattr(compiling, "_KERNELS", [])
    made = [kernel(one.source) for one in (field, append_field)]  # type: ignore[attr-defined]
    for shipped in made_for([Processor.of_host(), BASELINE], processes=2):
        for one in made:
            assert shipped.payload(one.entry().key(shipped.processor))  # type: ignore[attr-defined]


@pytest.mark.parametrize("processes", [1, 2, 4, 100])
def test_each_kernel_is_compiled_by_one_process(processes: int) -> None:
    import_all()
    kernels = largest_first()
    groups = divided(kernels, processes)
    assert len(groups) == min(processes, len(kernels))
    assert sorted(place for group in groups for place in group) == list(range(len(kernels)))


def test_kernels_that_have_functions_in_common_are_compiled_by_one_process() -> None:
    import_all()
    kernels = largest_first()
    sources = [one.source for one in kernels]

    def compiled(groups: list[list[int]]) -> int:
        return sum(len({part for place in group for part in reached(sources[place], sources)}) for group in groups)

    dealt = []
    for seed in range(100):
        places = list(range(len(kernels)))
        Random(seed).shuffle(places)
        dealt.append(compiled([places[::2], places[1::2]]))
    assert compiled(divided(kernels, 2)) < min(dealt), "fewer functions than in any of a hundred divisions at random"


@pytest.mark.usefixtures("reported")
def test_a_kernel_of_the_package_that_cannot_be_loaded_is_reported_and_taken_from_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = field.entry()  # type: ignore[attr-defined]
    broken = Shipped(BASELINE, {name_of(entry.key(BASELINE)): b"no object code"})
    monkeypatch.setattr(Shipped, "of_package", lambda: broken)
    monkeypatch.setattr(loading, "_functions", {})
    assert entry.read()
    assert entry.load() is not None
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "differential: the compiled kernel differential.kernels.fields.field of this package cannot be"
    )


BREADTH_FIRST = """
    import numpy as np
    from differential import Collection, example

    def hops(edges, roots):
        start = roots.map(lambda root: (root, 0))
        return start.iterate(lambda inner:
            inner.join_map(edges, lambda node, hop, to: (to, hop + 1)).concat(start).min())

    sources, targets = np.array([0, 1]), np.array([1, 2])
    print(example(lambda scope: hops(Collection.of(scope, sources, targets), Collection.of(scope, 0))))
    import sys
    print("numba" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_installed_wheel_answers_without_compiling_and_compiles_if_its_kernels_are_damaged(tmp_path: Path) -> None:
    """The wheel is installed beside the libraries of this environment, which need not be those of the build."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    plain = {**os.environ, "TIMELY_COMPILE": "0", "TIMELY_KERNELS": "host"}
    wheels = [*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path / "wheels"), str(ROOT)]
    subprocess.run(wheels, check=True, timeout=1500, env=plain, stdout=subprocess.DEVNULL)
    [wheel] = (tmp_path / "wheels").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=100)
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True, timeout=200)
    (site / "libraries.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(BREADTH_FIRST))

    def run() -> tuple[list[str], str]:
        environ = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
        python = tmp_path / "venv" / "bin" / "python"
        done = subprocess.run([python, script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600)
        return done.stdout.splitlines(), done.stderr

    (tmp_path / "home").mkdir(mode=0o700)
    answer = "[((0, 0), 1), ((1, 1), 1), ((2, 2), 1)]"
    assert run() == ([answer, "False"], "")
    assert list((tmp_path / "home").iterdir()) == []
    [kernels] = site.glob("differential/kernels/*.kernels")
    kernels.write_bytes(kernels.read_bytes()[:-1])
    output, errors = run()
    assert output == [answer, "True"]
    lines = [line for line in errors.splitlines() if not line.startswith("differential: compiling ")]
    assert lines == [f"differential: {kernels} is damaged; the kernels are compiled again"]
    assert run() == ([answer, "False"], lines[0] + "\n")
