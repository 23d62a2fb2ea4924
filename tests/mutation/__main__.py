"""`python -m tests.mutation`: break the heart of the packages in one place at a time, and see whether a test notices.

Works on a copy of the tree, so it may run while one works. Where a kernel is broken, or tests need none, kernels are
interpreted (see `trials` for how a mutant is tried). A mutant that no test of its file's notices survives; those that
cannot be noticed, because they mean the same, are listed in `equivalent.md` with the reason. Prints each mutant that
survives or is given up for taking too long, and a table in the end; `--json FILE` keeps everything, a line for each
mutant, and goes on from what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time as clock
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.trials import Trials

ROOT = Path(__file__).parents[2]
PRELOADED = ("numpy", "msgpack", "zmq", "hypothesis", "hypothesis.extra.numpy", "pytest", "_pytest.doctest")
TRACE = ("tests/unit/trace", "tests/property/trace", "tests/unit/test_interning.py", "tests/unit/test_traces.py")
PROGRAMS = (
    "tests/property/differential/test_imported_traces.py",
    "tests/property/differential/test_programs_mean_what_they_say.py",
)
OPERATORS = ("tests/unit/operators", "tests/property/differential/test_operators_at_every_time.py", *PROGRAMS)
KERNELS = (
    "tests/unit/kernels/test_join.py",
    "tests/property/kernels",
    "tests/property/trace/test_batcher.py",
    "tests/unit/trace/test_merge.py",
)
PROGRESS = ("tests/unit/progress", "tests/property/progress", "tests/simulation/protocol")
REDUCE = ("tests/unit/kernels/test_reduce.py", "tests/property/kernels/test_reduce.py", "tests/unit/operators")
CODES = ("tests/unit/test_interning.py", "tests/property/differential/test_codes.py")
SOCKETS = tuple(
    f"tests/unit/communication/test_{name}.py"
    for name in ("doorbell", "ends", "wire", "watch", "sockets", "allocators")
)
CODEC = ("tests/unit/communication/test_codec.py", "tests/property/communication/test_codec.py")
EVENTS = (
    *(f"tests/unit/communication/test_event_{name}.py" for name in ("codec", "file", "socket")),
    "tests/unit/dataflow/operators/test_capture.py",
    "tests/property/communication/test_event_codec.py",
)
QUEUES = tuple(f"tests/unit/communication/test_{name}.py" for name in ("allocators", "thread", "simulated", "message"))
KINDS = ("killed", "timed out", "survived")
TESTS: dict[str, tuple[str, ...]] = {
    **{
        f"differential/trace/{name}.py": (*TRACE, *PROGRAMS)
        for name in ("spine", "merge", "batcher", "handle", "cursor", "batch", "storage")
    },
    "differential/trace/parts.py": ("tests/property/kernels/test_consolidate.py", *TRACE),
    **{f"differential/operators/{name}.py": OPERATORS for name in ("join", "join_arrangements", "reduce")},
    **{
        f"differential/operators/{name}.py": (*OPERATORS, "tests/unit/test_accounting.py")
        for name in ("count", "count_in_order", "threshold_in_order")
    },
    "differential/operators/arrange.py": (*OPERATORS, "tests/unit/test_interning.py"),
    **{
        f"differential/kernels/{name}.py": REDUCE
        for name in (
            "reduce",
            "reduce_float",
            "reduce_fold",
            "reduce_history",
            "reduce_layers",
            "reduce_output",
            "reduce_rows",
            "reduce_times",
            "reduce_rounds",
            "reduce_visit",
        )
    },
    **{
        f"differential/kernels/{name}.py": KERNELS
        for name in (
            "join",
            "merge",
            "consolidate",
            "radix",
            "words",
            "times",
            "batching",
            "seek",
            "count",
            "memory",
            "route",
            "occurrences",
            "extend",
        )
    },
    "differential/kernels/fields.py": CODES,
    **{
        f"timely/progress/{name}.py": PROGRESS
        for name in (
            "reachability",
            "cycles",
            "graph",
            "summary",
            "antichain",
            "change_batch",
            "protocol",
            "accumulation",
        )
    },
    "timely/order.py": PROGRESS,
    "timely/shapes.py": ("tests/unit/test_shapes.py", "tests/unit/test_refused.py"),
    "timely/dataflow/arrivals.py": ("tests/unit/test_refused.py",),
    "timely/dataflow/outstanding.py": (
        "tests/unit/dataflow/test_outstanding.py",
        "tests/unit/test_refused.py",
        "tests/simulation/pressure",
    ),
    **{f"timely/{name}.py": (f"tests/unit/test_{name}.py",) for name in ("heap", "large_pages", "text")},
    **{
        f"timely/communication/{name}.py": SOCKETS
        for name in ("door", "doorbell", "ends", "link", "meeting", "sockets", "watch", "wire")
    },
    "timely/communication/codec.py": CODEC,
    **{f"timely/communication/event_{name}.py": EVENTS for name in ("codec", "file", "socket")},
    **{f"timely/communication/{name}.py": QUEUES for name in ("message", "allocator", "thread", "simulated")},
    **{
        f"timely/communication/{name}.py": (f"tests/unit/communication/test_{name}.py",)
        for name in ("endpoint", "curve", "descriptors")
    },
}
"""The files, and what must notice that they are broken."""


def main() -> int:
    """Run what the command line asks for."""
    options = _parser().parse_args()
    fates: Counter[tuple[str, str]] = Counter()
    known = _known(options.json, options.again)
    deadline = clock.monotonic() + 60 * options.minutes
    count = 0
    for name in PRELOADED:
        import_module(name)
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", "site", "*_cache"))
        for tests in {TESTS[path]: None for path in _paths(options.only)}:
            untried = []
            for path in [path for path in _paths(options.only) if TESTS[path] == tests]:
                found = list(mutants(path, (tree / path).read_text()))
                count += len(found)
                fates.update((path, known[mutant.key]) for mutant in found if mutant.key in known)
                left = [mutant for mutant in found if mutant.key not in known]
                untried += random.Random(options.seed).sample(left, len(left))
            for key, fate, test in _tried(tree, untried, deadline, options.budget) if untried else ():
                if fate in KINDS:
                    fates[key.partition(":")[0], fate] += 1
                    if options.json:
                        with options.json.open("a") as file:
                            file.write(json.dumps([key, fate, test]) + "\n")
                if fate != "killed":
                    print(f"{fate:10}{key} ({test})", flush=True)
    _print(fates, count)
    return 0


def _paths(only: Sequence[str]) -> list[str]:
    """Return the files whose path contains one of some texts, in the order of these."""
    return list({path: None for one in only for path in TESTS if one in path})


def _tried(tree: Path, untried: Sequence[Mutant], deadline: float, budget: float) -> Iterator[tuple[str, str, str]]:
    """Try mutants that have the same tests in a process of their own; yield key, fate and deciding test of each."""
    ear, mouth = os.pipe()
    child = os.fork()
    if not child:
        os.close(ear)
        _test(tree, untried, deadline, budget, mouth)
    os.close(mouth)
    with open(ear) as lines:
        for line in lines:
            yield tuple(json.loads(line))
    os.waitpid(child, 0)


def _test(tree: Path, untried: Sequence[Mutant], deadline: float, budget: float, mouth: int) -> None:
    """Try mutants in this process, and end it."""
    try:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        sys.path[:] = [str(tree), *(place for place in sys.path if place not in ("", str(ROOT)))]
        os.chdir(tree)
        path = untried[0].path
        kernels = "interpreted" if path.startswith(("differential/kernels/", "timely/communication/")) else "compiled"
        os.environ |= {"PYTHONPATH": str(tree), "DIFFERENTIAL_KERNELS": kernels}
        sys.dont_write_bytecode = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        import hypothesis
        import pytest

        # A mutant that fails need not fail in the simplest way, and each is to meet the same examples.
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutation",
            phases=phases,
            database=None,
            deadline=None,
            derandomize=True,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],  # a busy machine fails nobody
        )
        hypothesis.settings.load_profile("mutation")
        quickly = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-o", "timeout=300"]
        with open(mouth, "w") as results:
            trials = Trials(tree, untried, deadline, budget, results)
            pytest.main([*quickly, "-W", "ignore::pytest.PytestAssertRewriteWarning", *TESTS[path]], plugins=[trials])
    finally:
        os._exit(0)


def _known(file: Path | None, again: bool) -> dict[str, str]:
    """Return the fates in a file of results; `again`, only of those killed."""
    if file is None or not file.exists():
        return {}
    fates = {key: fate for key, fate, _ in map(json.loads, file.read_text().splitlines())}
    return {key: fate for key, fate in fates.items() if fate == "killed" or not again}


def _print(fates: Counter[tuple[str, str]], count: int) -> None:
    print(f"{'file':48} {'tried':>9}", *(f"{kind:>9}" for kind in KINDS))
    for path in TESTS:
        counts = [fates[path, kind] for kind in KINDS]
        if any(counts):
            print(f"{path:48} {sum(counts):>9}", *(f"{count:>9}" for count in counts))
    print(f"{sum(fates[path, kind] for path in TESTS for kind in KINDS)} of {count} mutants tried")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PATH", help="only files whose path contains PATH")
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long (default 60)")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests a mutant is worth (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which mutants are tried (default 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep results here, and go on from those there")
    parser.add_argument("--again", action="store_true", help="try again those of FILE that were not killed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
