"""How kernels are compiled: late, for one signature, once, and again when something they call changes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from differential.kernels import compile as compiling, digest
from differential.kernels.compile import Ints, Kernel, Table, bare, bulk, inner, kernel
from differential.kernels.memory import at, column, times_of
from differential.kernels.processor import Processor

ROOT = Path(compiling.__file__).parents[2]


@kernel
def total(items: Ints, factor: int) -> int:
    """Add up."""
    result = 0
    for item in items:
        result += at(items, 0, 0) * 0 + item * factor
    return result


@kernel
def difference_of(items: Ints, least: int) -> Ints:
    """Return the items minus `least`, in room of their own."""
    result = np.empty(len(items), np.int64)
    for place in range(len(items)):
        result[place] = items[place] - least
    return result


@kernel
def total_twice(items: Ints) -> int:
    return 2 * total(items, 1)


@bare
def total_of(row: Ints, table: Table, number: int) -> int:
    """Add up a row, and a view of it again, and return early if there is nothing."""
    own = table[number]
    if number == 0:
        return 0
    result = 0
    for place in range(len(row)):
        result += row[place] + own[1:][place - 1] if place > 0 else row[place]
    return int(result)


@kernel
def sums_of_rows(rows: int) -> Ints:
    """Return a sum of each of `rows` rows; every item of a row is the number of the row."""
    sums = np.zeros(rows, np.int64)
    table = np.empty((rows, rows), np.int64)
    for row in range(rows):
        table[row, :] = row
        sums[row] = total_of(table[row], table, row)
    return sums


def _run(directory: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script = directory / "script.py"
    script.write_text(textwrap.dedent(text))
    variables = {"PYTHONPATH": f"{ROOT}:{directory}", "PATH": "/usr/bin:/bin", "HOME": str(directory), **environment}
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=280, env=variables)


@pytest.mark.lengthy
def test_a_kernel_keeps_its_name_and_documentation() -> None:
    assert isinstance(total, Kernel)
    assert total.__name__ == "total"
    assert total.__doc__ == "Add up."


@pytest.mark.lengthy
def test_a_kernel_can_call_a_kernel_and_an_inner_function() -> None:
    assert total(np.arange(5), 3) == 30
    assert total_twice(np.arange(5)) == 20


@pytest.mark.lengthy
@pytest.mark.parametrize("items", [np.arange(10)[::2], np.arange(3).astype(np.int32), np.ones(3)])
def test_other_kinds_of_arrays_are_refused(items: Ints) -> None:
    with pytest.raises(
        TypeError, match=r"total: argument 1 must be a C-contiguous, writable int64 array of one dimension; "
    ):
        total(items, 1)


@pytest.mark.lengthy
def test_a_read_only_array_is_refused() -> None:
    items = np.arange(3)
    items.flags.writeable = False
    with pytest.raises(TypeError, match="readonly"):
        total(items, 1)


def _allocated() -> int:
    """Return how many bytes are allocated by the C library, in its arenas and in mappings."""

    class Information(ctypes.Structure):
        _fields_ = (("sizes", ctypes.c_size_t * 10),)

    measure = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if measure is None:
        pytest.skip("the C library does not report what is allocated")
    measure.restype = Information
    sizes = measure().sizes
    return int(sizes[4] + sizes[7])


@pytest.mark.lengthy
def test_arrays_that_kernels_make_are_released() -> None:
    expected = [199 * row for row in range(100)]
    assert sums_of_rows(100).tolist() == expected
    before = _allocated()
    for _ in range(200):
        assert sums_of_rows(100).tolist() == expected
    assert _allocated() - before < 100 * 100 * 8


@pytest.mark.lengthy
def test_inner_functions_cannot_be_called_from_python() -> None:
    for function, args in ((at, (np.arange(3), 0, 0)), (column, (np.zeros((1, 8), np.int64), 0, 1))):
        with pytest.raises(TypeError, match="cannot be called from Python"):
            function(*args)  # type: ignore[operator]


@pytest.mark.lengthy
def test_an_annotation_of_another_type_is_named() -> None:
    @kernel
    def wrong(items: list[int]) -> int:
        return len(items)

    compiling._KERNELS.remove(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"wrong: the annotation of 'items'"):
        wrong([1])


@pytest.mark.lengthy
def test_importing_kernels_does_not_import_numba(tmp_path: Path) -> None:
    done = _run(tmp_path, "import sys, differential.kernels.consolidate; print('numba' in sys.modules)")
    assert done.stdout.split() == ["False"], done.stderr


@pytest.mark.lengthy
def test_the_digest_covers_inner_functions_and_constants() -> None:
    def make(factor: int) -> compiling.FunctionType:
        namespace = {"inner": inner, "FACTOR": factor}
        exec("def scaled(x): return x * FACTOR", namespace)
        namespace["scaled"] = inner(namespace["scaled"])  # type: ignore[arg-type]
        exec("def outer(x): return scaled(x)", namespace)
        return namespace["outer"]  # type: ignore[return-value]

    assert digest.digest_of(make(2)) == digest.digest_of(make(2))
    assert digest.digest_of(make(2)) != digest.digest_of(make(3))


@pytest.mark.lengthy
def test_the_digest_covers_constants_that_are_slices_and_code() -> None:
    """In Python 3.14 slices can be constants too."""

    def make(end: int, step: int) -> compiling.FunctionType:
        namespace: dict[str, Any] = {}
        exec(f"def outer(x): return (lambda y: y + {step})", namespace)
        function: compiling.FunctionType = namespace["outer"]
        function.__code__ = function.__code__.replace(co_consts=(*function.__code__.co_consts, slice(0, end)))
        return function

    assert digest.digest_of(make(2, 1)) == digest.digest_of(make(2, 1))
    assert len({digest.digest_of(make(end, step)) for end in (2, 3) for step in (1, 2)}) == 4


def digest_of(text: str, **namespace: object) -> str:
    exec(text, namespace)
    return digest.digest_of(namespace["outer"])  # type: ignore[arg-type]


@pytest.mark.lengthy
def test_the_digest_covers_constants_of_functions_within_functions() -> None:
    text = "def outer(x): return (lambda y: y + FACTOR)(x)"
    assert digest_of(text, FACTOR=2) != digest_of(text, FACTOR=3)


@pytest.mark.lengthy
def test_the_digest_covers_unmarked_functions() -> None:
    text = "def helper(): return {}\ndef outer(x): return x + helper()"
    assert digest_of(text.format(2)) == digest_of(text.format(2)) != digest_of(text.format(3))


@pytest.mark.lengthy
def test_the_digest_covers_arrays_tuples_and_defaults() -> None:
    text = "def outer(x): return TABLE[x]"
    tables = [np.arange(5000), np.where(np.arange(5000) == 2500, 0, np.arange(5000)), (1, 2), (1, 3)]
    assert len({digest_of(text, TABLE=table) for table in tables}) == 4
    assert digest_of("def outer(x, y=2): return x + y") != digest_of("def outer(x, y=3): return x + y")


def test_each_function_is_digested_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled_out, digested = digest.spelled_out, []
    monkeypatch.setattr(digest, "spelled_out", lambda code: digested.append(code.co_name) or spelled_out(code))
    namespace: dict[str, Any] = {}
    exec("def helper(): return 1\ndef one(x): return x + helper()\ndef two(x): return x - helper()", namespace)
    assert digest.digest_of(namespace["one"]) != digest.digest_of(namespace["two"])
    assert sorted(digested) == ["helper", "one", "two"]


@pytest.mark.lengthy
def test_the_digest_is_the_same_whatever_the_order_of_a_set(tmp_path: Path) -> None:
    text = """
        from differential.kernels.digest import digest_of
        namespace = {}
        exec("def outer(x): return x in {'one', 'two', 'three', 'four', 'five'}", namespace)
        print(digest_of(namespace["outer"]))
    """
    assert len({_run(tmp_path, text, PYTHONHASHSEED=str(seed)).stdout for seed in range(3)}) == 1


CALLER = """
    from __future__ import annotations
    import numpy as np
    from caller import scaled
    print(scaled(np.arange(4)))
"""


@pytest.mark.lengthy
@pytest.mark.timeout(300)
def test_a_cached_kernel_is_renewed_when_what_it_calls_has_changed(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        textwrap.dedent("""
        from __future__ import annotations
        from differential.kernels.compile import Ints, kernel
        from callee import factor

        @kernel
        def scaled(items: Ints) -> int:
            return items.sum() * factor()
    """)
    )
    for value in (3, 5):
        text = f"from differential.kernels.compile import inner\n\n@inner\ndef factor() -> int:\n    return {value}\n"
        (tmp_path / "callee.py").write_text(text)
        done = _run(tmp_path, CALLER, PYTHONDONTWRITEBYTECODE="1")
        assert done.stdout.split() == [str(6 * value)], done.stderr
    assert len(list((tmp_path / ".cache/timely-dataflow/kernels").glob("caller.scaled-*.kernel"))) == 2


@pytest.mark.lengthy
@pytest.mark.timeout(300)
def test_a_kernel_without_a_file_and_without_a_declared_result_is_compiled(tmp_path: Path) -> None:
    done = _run(
        tmp_path,
        """
        import numpy as np
        from differential.kernels.compile import kernel
        namespace = {}
        exec("def double(items): return 2 * items", namespace)
        double = namespace["double"]
        double.__annotations__["items"] = "Ints"
        print(kernel(double)(np.arange(3)))
    """,
    )
    assert done.stdout == "[0 2 4]\n", done.stderr


def test_a_bulk_kernel_is_other_code_under_another_key_with_the_same_results() -> None:
    plain: Kernel = difference_of  # type: ignore[assignment]
    other: Kernel = bulk(kernel(plain.source))  # type: ignore[assignment]
    compiling._KERNELS.remove(other)
    assert plain.entry().symbol != other.entry().symbol
    host = [Processor.of_host()]
    assert plain.object_codes(host) != other.object_codes(host)
    items = np.arange(37) * 3
    assert (other(items, 5) == items - 5).all()
    assert (plain(items, 5) == items - 5).all()


WAITS = """
import signal, sys
from pathlib import Path
from differential.kernels import compile as compiling
from differential.kernels import interrupts, turn

def object_codes(kernel, processors):
    print("compiling", kernel.source.__name__, flush=True)
    sys.stdin.readline()
    return [b"code"]

signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
compiling.Kernel.object_codes = object_codes
compiling.CacheEntry.write = lambda entry, payload: None
compiling.CacheEntry.keep = lambda entry, payload: abs
compiling._KERNELS = []
turn._PATIENCE = 0.01
interrupts._SAME_INTERRUPT_SECONDS = float(sys.argv[1])

@compiling.kernel
def slow(number: "int") -> "int":
    return number

@compiling.kernel
def other(number: "int") -> "int":
    return -number

@compiling.kernel
def caller(number: "int") -> "int":
    return slow(number) + slow(number)  # the largest

for one in compiling._KERNELS:
    one.source.__annotations__ = {"number": "int", "return": "int"}
try:
    slow.prepare()
except KeyboardInterrupt:
    print("interrupted")
"""


def waiting(directory: Path, same: float = 0.0) -> subprocess.Popen[str]:
    """Start a process that compiles a kernel until it reads a line."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", WAITS, str(same)]
    environ = os.environ | {"DIFFERENTIAL_CACHE_DIR": str(directory)}
    return subprocess.Popen(command, text=True, env=environ, **pipes)  # type: ignore[call-overload,no-any-return]


def until(stream: Any, words: str) -> None:
    """Read lines until one contains these words."""
    assert any(words in line for line in iter(stream.readline, "")), words


@pytest.mark.lengthy
@pytest.mark.parametrize(("number", "printed"), [(signal.SIGINT, "interrupted\n"), (signal.SIGTERM, "")])
def test_signals_interrupt_the_wait_for_another_process_that_compiles(
    tmp_path: Path, number: signal.Signals, printed: str
) -> None:
    import fcntl

    with open(tmp_path / "compiling.lock", "a") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        with waiting(tmp_path) as process:
            until(process.stderr, f"waiting for another process that is compiling kernels (it holds {file.name})")
            process.send_signal(number)
            assert process.communicate(timeout=50)[0] == printed


@pytest.mark.lengthy
def test_a_process_compiles_other_kernels_while_another_compiles_the_one_it_needs(tmp_path: Path) -> None:
    with waiting(tmp_path) as first:
        until(first.stdout, "compiling slow")
        with waiting(tmp_path) as second:
            assert second.stdin is not None
            for name in ("caller", "other"):
                until(second.stdout, f"compiling {name}")
                second.stdin.write("\n")
                second.stdin.flush()
            until(second.stderr, "waiting for another process that is compiling kernels")
            assert first.communicate("\n", timeout=50)[0] == ""
            until(second.stdout, "compiling slow")  # it is not cached
            assert second.communicate("\n", timeout=50)[0] == ""


@pytest.mark.lengthy
def test_an_interrupt_takes_effect_once_the_kernel_is_compiled(tmp_path: Path) -> None:
    with waiting(tmp_path, same=60.0) as process:
        until(process.stdout, "compiling")
        process.send_signal(signal.SIGINT)
        until(process.stderr, "interrupted; this takes effect when the kernel is compiled")
        process.send_signal(signal.SIGINT)  # passed on by `timely run`
        output, errors = process.communicate("\n", timeout=50)
        assert output == "interrupted\n"
        # A busy machine takes more than the second after which the compilation is reported.
        assert [line for line in errors.splitlines() if not line.startswith("differential: compiling ")] == []
        assert process.returncode == 0


@pytest.mark.lengthy
def test_a_second_interrupt_ends_a_process_that_compiles(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        until(process.stdout, "compiling")
        process.send_signal(signal.SIGINT)
        until(process.stderr, "interrupted; this takes effect when the kernel is compiled")
        process.send_signal(signal.SIGINT)
        assert process.wait(50) == -signal.SIGINT


@pytest.mark.lengthy
def test_a_process_that_compiles_is_terminated_at_once(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        until(process.stdout, "compiling")
        process.send_signal(signal.SIGTERM)
        assert process.wait(50) == -signal.SIGTERM


@pytest.mark.lengthy
def test_a_cached_kernel_is_loaded_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "Turn", None)
    assert compiling._loaded(total)(np.arange(4), 2) == 12  # type: ignore[arg-type]
    assert not compiling._compile_ahead(total)  # type: ignore[arg-type]


@pytest.mark.lengthy
def test_all_kernels_are_compiled_with_a_line_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_KERNELS", [total, total_twice])
    lines: list[str] = []
    compiling.compile_all(lines.append)
    assert [line.split()[:2] for line in lines] == [["1/2", f"{__name__}.total_twice:"], ["2/2", f"{__name__}.total:"]]


@pytest.mark.lengthy
def test_columns_are_viewed_by_address() -> None:
    @kernel
    def first_time(table: Table) -> int:
        return times_of(table, 0)[0, 1] + len(column(table, 0, 2)) + column(table, 0, 1)[1]

    keys, times = np.array([10, 20]), np.array([[1, 2]])
    compiling._KERNELS.remove(first_time)  # type: ignore[arg-type]
    table = np.array([[2, keys.ctypes.data, 0, 0, 0, times.ctypes.data, 1, 2]])
    assert first_time(table) == 22


@pytest.mark.lengthy
@pytest.mark.timeout(300)
def test_interpreted_kernels_do_the_same_without_numba(tmp_path: Path) -> None:
    text = """
        import sys
        import numpy as np
        from differential import Collection, example
        from differential.graphs import weakly_connected_components
        ends = np.array([2, 5]), np.array([1, 6])
        print(example(lambda scope: weakly_connected_components(Collection.of(scope, *ends))), "numba" in sys.modules)
    """
    run = _run(tmp_path, text, DIFFERENTIAL_KERNELS="interpreted")
    assert run.stdout == "[((1, 1), 1), ((2, 1), 1), ((5, 5), 1), ((6, 5), 1)] False\n", run.stderr


@pytest.mark.lengthy
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "tests",
    [
        ["tests/property/kernels"],
        ["tests/unit/kernels/test_reduce.py", "tests/unit/kernels/test_join.py"],
        ["tests/property/trace"],
    ],
    ids=["kernels", "reduce and join", "trace"],
)
def test_no_interpreted_kernel_reads_beyond_its_arrays(tests: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "--timeout=300"]
    # Two tests insert a million rows to see how often they are moved, which is the same whatever runs the kernels.
    many = "not logarithmically_often and not whole_large_merge"
    run = subprocess.run(
        [*command, *tests, "-k", many],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=390,
        env=os.environ | {"DIFFERENTIAL_KERNELS": "interpreted"},
    )
    assert run.returncode == 0, run.stdout
