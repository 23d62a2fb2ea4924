"""Compiled kernels are shared if everything they depend on is the same, and compiled again if anything is wrong."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

from differential.kernels import (
    cache as caching,
    compile as compiling,
    digest,
    loader as loading,
    store as stores,
    turn as turns,
)
from differential.kernels.cache import CacheEntry, compilers, environment, toolchain
from differential.kernels.compile import Ints, Kernel, bare, inner, kernel
from differential.kernels.processor import Processor

ROOT = Path(compiling.__file__).parents[2]
STRANGER = 65534

pytestmark = pytest.mark.timeout(300)


@inner
def thrice(item: int) -> int:
    return 3 * item


@bare
def twice(item: int) -> int:
    return 2 * item


def fourfold(item: int) -> int:
    return twice(twice(item))


def tiny(items: Ints) -> int:
    result = 0
    for item in items:
        result += thrice(item)
    return result


class Compiled:
    """How often kernels were compiled and loaded."""

    def __init__(self) -> None:
        self.compiled = 0
        self.loaded = 0


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """Use a separate cache for each test, and count compilations and loads."""
    monkeypatch.setenv("DIFFERENTIAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(stores, "_reported", set())
    monkeypatch.setattr(turns, "_PATIENCE", 600.0)  # this machine may be slow, which is reported too
    monkeypatch.setattr(compiling, "_KERNELS", [])
    numbers = Compiled()
    compile, load = Kernel.object_codes, CacheEntry.load

    def compile_counted(one: Kernel, processors: list[Processor]) -> list[bytes]:
        numbers.compiled += 1
        return compile(one, processors)

    def load_counted(entry: CacheEntry) -> object:
        loaded = load(entry)
        numbers.loaded += loaded is not None
        return loaded

    monkeypatch.setattr(Kernel, "object_codes", compile_counted)
    monkeypatch.setattr(CacheEntry, "load", load_counted)
    return numbers


def answer() -> int:
    """Return the result of the kernel in a process that has not used it yet."""
    return kernel(tiny)(np.arange(5))


def entry_of(function: Callable[..., object] = tiny) -> CacheEntry:
    """Return what is kept of a function as a kernel."""
    made = kernel(function)
    assert isinstance(made, Kernel)
    return made.entry()


def entry() -> Path:
    made = entry_of()
    return made.store.directory / made.name


def test_a_kernel_is_compiled_once_and_then_loaded(counted: Compiled, capsys: pytest.CaptureFixture[str]) -> None:
    assert [answer(), answer(), answer()] == [30, 30, 30]
    assert (counted.compiled, counted.loaded) == (1, 2)
    assert capsys.readouterr().err == ""
    assert [path.name for path in entry().parent.iterdir() if path.suffix == ".kernel"] == [entry().name]


@pytest.mark.parametrize("damage", ["emptied", "cut", "flipped", "text", "directory", "link", "foreign"])
def test_a_damaged_entry_is_compiled_again_with_one_line(
    damage: str, counted: Compiled, capsys: pytest.CaptureFixture[str]
) -> None:
    answer()
    path = entry()
    content = path.read_bytes()
    if damage == "emptied":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :])
    elif damage == "text":
        path.write_text("this is not a kernel")
    elif damage == "directory":
        path.unlink()
        path.mkdir()
    elif damage == "link":
        path.rename(path.with_suffix(".other"))
        path.symlink_to(path.with_suffix(".other"))
    elif os.geteuid() == 0:
        os.chown(path, STRANGER, -1)
    else:
        pytest.skip("only root can give files to another user")
    assert [answer(), answer()] == [30, 30]
    assert (counted.compiled, counted.loaded) == (2, 1)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"differential: {path} ")
    assert line.endswith("; this kernel is compiled again")


def test_a_whole_entry_that_cannot_be_loaded_is_compiled_again(
    counted: Compiled, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = entry_of()
    made.store.write(made.name, made.own_key, b"no object code")
    monkeypatch.setattr(loading, "_functions", {})
    assert [answer(), answer()] == [30, 30]
    assert (counted.compiled, counted.loaded) == (1, 1)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"differential: {entry()} cannot be loaded (")


def test_an_entry_with_a_wrong_digest_is_not_linked(
    counted: Compiled, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer()
    entry().write_bytes(entry().read_bytes() + b".")
    monkeypatch.setattr(CacheEntry, "load", lambda read: pytest.fail("linked") if read._payload else None)
    assert answer() == 30


def test_a_kernel_that_calls_a_kernel_is_loaded_after_it(counted: Compiled) -> None:
    """Its object code names the kernels that it calls."""
    for _ in range(2):
        called = kernel(tiny)
        namespace = {"called": called, "__name__": __name__}
        exec("def caller(items): return 2 * called(items)", namespace)
        function = namespace["caller"]
        function.__annotations__["items"] = "Ints"
        assert kernel(function)(np.arange(5)) == 60  # type: ignore[arg-type,call-overload]
    assert isinstance(called, Kernel)
    assert called.loaded is not None
    assert (counted.compiled, counted.loaded) == (2, 2)


BASELINE = Processor("x86-64", "")


@pytest.mark.parametrize("setting", ["BOUNDSCHECK", "OPT"])
def test_another_numba_setting_is_another_entry(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment.__wrapped__(BASELINE)
    monkeypatch.setenv(f"NUMBA_{setting}", "1")
    assert environment.__wrapped__(BASELINE) != before


def test_a_configuration_file_of_numba_is_another_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = environment.__wrapped__(BASELINE)
    (tmp_path / ".numba_config.yaml").write_text("boundscheck: 1")
    assert environment.__wrapped__(BASELINE) != before


@pytest.mark.parametrize("module", ["numba", "llvmlite"])
def test_another_version_of_a_compiler_is_another_entry(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    before = compilers.__wrapped__()
    (tmp_path / "_version.py").write_text("version = 0")
    another = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: another if name == module else found(name))
    assert compilers.__wrapped__() != before


def test_another_layout_of_arrays_is_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment.__wrapped__(BASELINE)
    monkeypatch.setattr("numpy._core._multiarray_umath._get_ndarray_c_version", lambda: 3)
    assert environment.__wrapped__(BASELINE) != before


@pytest.mark.parametrize("processor", [Processor("x86-64", "-sse3"), Processor("znver4", "")])
def test_another_processor_is_another_entry(processor: Processor) -> None:
    assert environment(processor) != environment(BASELINE)


def test_another_system_is_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment.__wrapped__(BASELINE)
    monkeypatch.setattr("llvmlite.binding.get_process_triple", lambda: "another")
    assert environment.__wrapped__(BASELINE) != before


def test_another_python_is_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment.__wrapped__(BASELINE)
    monkeypatch.setattr(sys, "hexversion", 0x04000000)
    other = environment.__wrapped__(BASELINE)
    monkeypatch.setattr(caching.sysconfig, "get_config_var", lambda name: "cpython-400t")
    assert len({before, other, environment.__wrapped__(BASELINE)}) == 3


def test_another_way_to_compile_is_another_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = toolchain.__wrapped__()
    for name in caching._COMPILERS:
        (tmp_path / name).write_text("")
    monkeypatch.setattr(caching, "__file__", str(tmp_path / "cache.py"))
    assert toolchain.__wrapped__() != before


def test_other_compiler_options_are_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_alone", digest._alone.__wrapped__)  # which keeps what it found in this process
    before = entry_of(fourfold).name
    monkeypatch.setattr(compiling, "_BARE", {"forceinline": True})
    assert entry_of(fourfold).name != before


def test_a_kernel_of_the_same_name_in_another_module_is_another_entry() -> None:
    other = FunctionType(tiny.__code__, tiny.__globals__)  # type: ignore[attr-defined]
    other.__module__, other.__annotations__ = "elsewhere", tiny.__annotations__
    assert entry_of(other).name != entry().name


def test_a_lock_that_cannot_be_opened_does_not_block(
    counted: Compiled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / "compiling.lock").symlink_to(tmp_path / "elsewhere")
    assert [answer(), answer()] == [30, 30]
    assert (counted.compiled, counted.loaded) == (1, 1)
    assert not (tmp_path / "elsewhere").exists()
    assert capsys.readouterr().err == ""


def test_a_numba_that_cannot_compile_kernels_is_named(counted: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> object:
        raise AttributeError("no such thing")

    monkeypatch.setattr(compiling, "importlib", SimpleNamespace(import_module=fail))
    with pytest.raises(RuntimeError, match=r"Numba .*cannot compile the kernels of this package \(no such thing\)"):
        answer()


def test_a_kernel_that_must_be_compiled_without_numba_names_the_extra(
    counted: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "differential.kernels.codegen", raising=False)
    with pytest.raises(RuntimeError, match=r"pip install 'timely-dataflow\[compile\]'"):
        answer()


SCRIPT = """
    import os, resource, sys
    import numpy as np
    import differential
    from differential.kernels import compile as compiling

    print("from", differential.__file__)
    compile = compiling.Kernel.object_codes

    def compile_counted(*args):
        print("compiled")
        return compile(*args)

    compiling.Kernel.object_codes = compile_counted
    compiling._KERNELS.clear()  # or a process that waits compiles all of the package's
    import own
    {before}
    print("answer", own.tiny(np.arange(5)))
"""
OWN = """
    from __future__ import annotations
    from differential.kernels.compile import Ints, kernel

    @kernel
    def tiny(items: Ints) -> int:
        result = 0
        for place in range(len(items)):
            result += 3 * items[place]
        return result + items[{place}]
"""


def write(directory: Path, before: str = "", place: int = 0) -> None:
    """Write the script, and the module with the kernel that it uses.

    This is not part of `start`: an interpreter that reads a script between its truncation and its writing runs nothing,
    prints nothing and exits with 0.
    """
    (directory / "own.py").write_text(textwrap.dedent(OWN.format(place=place)))
    (directory / "script.py").write_text(textwrap.dedent(SCRIPT.format(before=before)))


def start(directory: Path, **environ: str) -> subprocess.Popen[str]:
    """Start a process that runs the script in `directory`; a signal that ends it leaves a traceback on stderr."""
    variables = {
        "PYTHONPATH": f"{directory}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
        "HOME": str(directory),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    return subprocess.Popen(
        [sys.executable, str(directory / "script.py")],
        env=kept | variables | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[list[str], list[str]]:
    """Return the lines that a process prints on stdout and on stderr, except the reports of slow work."""
    with process:
        try:
            out, err = process.communicate(timeout=200)
        finally:
            process.kill()
    slow = ("differential: compiling ", "differential: waiting ")
    return out.splitlines(), [line for line in err.splitlines() if not line.startswith(slow)]


def run(directory: Path, before: str = "", place: int = 0, **environ: str) -> tuple[list[str], list[str]]:
    """Return what a process prints that uses the kernel of a module in `directory`."""
    write(directory, before, place)
    return finish(start(directory, **environ))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of kernels in which that of the script is compiled."""
    home = tmp_path_factory.mktemp("home")
    run(home)
    return home / ".cache/timely-dataflow/kernels"


def kept(compiled: Path, directory: Path) -> Path:
    """Give `directory` a copy of the compiled kernels; return where that is."""
    return Path(shutil.copytree(compiled, directory / ".cache/timely-dataflow/kernels"))


@pytest.mark.lengthy
def test_a_second_installation_loads_what_the_first_one_has_compiled(tmp_path: Path) -> None:
    ran = []
    for name in ("one", "two"):
        for package in ("differential", "timely"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, tmp_path / name / package, ignore=ignored)
        ran.append(run(tmp_path / name, XDG_CACHE_HOME=str(tmp_path / "cache")))
    first, second = (tmp_path / name / "differential" / "__init__.py" for name in ("one", "two"))
    assert ran == [([f"from {first}", "compiled", "answer 30"], []), ([f"from {second}", "answer 30"], [])]


@pytest.mark.lengthy
def test_a_changed_kernel_is_another_entry(tmp_path: Path) -> None:
    outputs = [run(tmp_path, place=place)[0][1:] for place in (0, 1, 0)]
    assert outputs == [["compiled", "answer 30"], ["compiled", "answer 31"], ["answer 30"]]


@pytest.mark.lengthy
def test_code_without_bounds_checks_is_not_loaded_if_bounds_are_checked(tmp_path: Path) -> None:
    assert run(tmp_path, place=9)[0][1] == "compiled"
    output, errors = run(tmp_path, place=9, NUMBA_BOUNDSCHECK="1")
    assert output[1:] == ["compiled"]
    assert "IndexError: index is out of bounds" in errors


@pytest.mark.lengthy
def test_four_processes_over_a_damaged_entry_compile_and_report_once(compiled: Path, tmp_path: Path) -> None:
    write(tmp_path)
    (path,) = kept(compiled, tmp_path).glob("own.tiny-*.kernel")
    path.write_bytes(path.read_bytes()[:-1000])
    processes = [start(tmp_path) for _ in range(4)]
    ran = [finish(process) for process in processes]
    outcome = [(process.returncode, *printed) for process, printed in zip(processes, ran, strict=True)]
    assert sorted(output[1:] for output, _ in ran) == [["answer 30"]] * 3 + [["compiled", "answer 30"]], outcome
    assert [line for _, errors in ran for line in errors] == [
        f"differential: {path} is damaged; this kernel is compiled again"
    ], outcome
    assert run(tmp_path)[0][1:] == ["answer 30"]


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Make a directory read-only: root needs a read-only file system for that, others only lack permission."""
    if os.geteuid() != 0:
        directory.chmod(0o500)
        try:
            yield
        finally:
            directory.chmod(0o700)
        return
    steps = (["mount", "--bind", str(directory), str(directory)], ["mount", "-o", "remount,ro,bind", str(directory)])
    if any(subprocess.run(step, capture_output=True, timeout=30, check=False).returncode for step in steps):
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], timeout=30, check=True)


@pytest.mark.lengthy
def test_an_entry_in_a_read_only_directory_is_loaded(compiled: Path, tmp_path: Path) -> None:
    with read_only(kept(compiled, tmp_path)):
        assert run(tmp_path) == ([f"from {ROOT}/differential/__init__.py", "answer 30"], [])


@pytest.mark.lengthy
@pytest.mark.parametrize("is_damaged", [False, True])
def test_in_a_read_only_directory_nothing_is_cached_and_one_line_reports_it(
    is_damaged: bool, compiled: Path, tmp_path: Path
) -> None:
    directory = kept(compiled, tmp_path)
    (path,) = directory.glob("own.tiny-*.kernel")
    if is_damaged:
        path.write_bytes(b"")
    else:
        path.unlink()
    with read_only(directory):
        output, errors = run(tmp_path)
    assert output[1:] == ["compiled", "answer 30"]
    if is_damaged:
        assert errors.pop(0) == f"differential: {path} is damaged; this kernel is compiled again"
    assert len(errors) == 1, errors
    (line,) = errors
    assert line.startswith("differential: kernels that this process compiles are not kept for others: ")
    assert f" {directory}: {'Read-only file system' if os.geteuid() == 0 else 'Permission denied'}; " in line


@pytest.mark.lengthy
def test_on_a_full_disk_nothing_is_cached_and_one_line_reports_it(tmp_path: Path) -> None:
    output, (line,) = run(tmp_path, "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))")
    assert output[1:] == ["compiled", "answer 30"]
    assert f" {tmp_path}/.cache/timely-dataflow/kernels: File too large; " in line
    assert [path.name for path in (tmp_path / ".cache/timely-dataflow/kernels").iterdir()] == ["compiling.lock"]


@pytest.mark.lengthy
def test_a_directory_that_others_can_write_is_not_touched(compiled: Path, tmp_path: Path) -> None:
    directory = kept(compiled, tmp_path)
    directory.chmod(0o777)
    before = sorted(directory.iterdir())
    output, (line,) = run(tmp_path)
    assert output[1:] == ["compiled", "answer 30"]
    assert f" {directory} can be written by all users ('chmod go-w {directory}' changes that); " in line
    assert sorted(directory.iterdir()) == before


@pytest.mark.lengthy
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_directory_of_another_user_is_not_touched(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    os.chown(own, STRANGER, -1)
    output, (line,) = run(tmp_path, DIFFERENTIAL_CACHE_DIR=str(own))
    assert output[1:] == ["compiled", "answer 30"]
    assert f" {own} belongs to another user ({STRANGER}); " in line
    assert list(own.iterdir()) == []


@pytest.mark.lengthy
def test_the_directory_of_numba_is_used_if_it_is_set(tmp_path: Path) -> None:
    for expected in (["compiled", "answer 30"], ["answer 30"]):
        assert run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "numba"))[0][1:] == expected
    assert len(list((tmp_path / "numba" / "timely-dataflow").glob("*.kernel"))) == 1
    assert not (tmp_path / ".cache").exists()
