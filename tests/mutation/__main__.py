"""`python -m tests.mutation`: break the heart of the packages in one place at a time, and see whether a test notices.

Works on a copy of the tree, so it may run while one works. Where a kernel is broken, kernels are interpreted; each
mutant is tried in a fork of this process, which has what the tests import from elsewhere. A mutant that no test of
its file's notices survives; those that cannot be noticed, because they mean the same, are listed in `equivalent.md`
with the reason. Prints each survivor, and a table in the end; `--json FILE` keeps everything, a line for each mutant,
and goes on from what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time as clock
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
PRELOADED = ("numpy", "msgpack", "zmq", "hypothesis", "hypothesis.extra.numpy", "pytest", "_pytest.doctest")
OURS = ("timely", "differential", "tests")
TRACE = ["tests/unit/trace", "tests/property/trace", "tests/unit/test_interning.py", "tests/unit/test_traces.py"]
PROGRAMS = [
    "tests/property/differential/test_imported_traces.py",
    "tests/property/differential/test_programs_mean_what_they_say.py",
]
OPERATORS = ["tests/unit/operators", "tests/property/differential/test_operators_at_every_time.py", *PROGRAMS]
KERNELS = ["tests/unit/kernels", "tests/property/kernels", *TRACE]
PROGRESS = ["tests/unit/progress", "tests/property/progress"]
TESTS: dict[str, list[list[str]]] = {
    **{
        f"differential/trace/{name}.py": [TRACE, PROGRAMS]
        for name in ("spine", "merge", "batcher", "handle", "cursor", "batch")
    },
    **{f"differential/operators/{name}.py": [OPERATORS] for name in ("join", "reduce", "arrange")},
    **{
        f"differential/kernels/{name}.py": [
            ["tests/unit/kernels/test_reduce.py", "tests/property/kernels/test_reduce.py"],
            OPERATORS,
        ]
        for name in (
            "reduce",
            "reduce_fold",
            "reduce_history",
            "reduce_layers",
            "reduce_output",
            "reduce_rows",
            "reduce_times",
            "reduce_rounds",
        )
    },
    **{
        f"differential/kernels/{name}.py": [[f"tests/property/kernels/test_{test}.py"], KERNELS, PROGRAMS]
        for name, test in {
            "join": "join",
            "merge": "merge",
            "consolidate": "consolidate",
            "words": "consolidate",
            "times": "times",
            "batching": "times",
            "seek": "join",
            "count": "count",
        }.items()
    },
    "timely/progress/reachability.py": [PROGRESS],
    "timely/progress/protocol.py": [[*PROGRESS, "tests/simulation/protocol"]],
    "timely/progress/accumulation.py": [["tests/unit/progress", "tests/simulation/protocol/test_accumulation.py"]],
    "timely/progress/antichain.py": [PROGRESS],
}
"""The files, and what must notice that they are broken: the first tests, then, if they do not, the next."""


def main() -> int:
    """Run what the command line asks for."""
    options = _parser().parse_args()
    found = [(path, mutant) for path in _paths(options.only) for mutant in mutants((ROOT / path).read_text())]
    random.Random(options.seed).shuffle(found)
    known = _known(options.json)
    fates: Counter[tuple[str, str]] = Counter()
    for name in PRELOADED:
        import_module(name)
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", "*_cache"))
        for is_kernel, tests in {(_is_kernel(path), tuple(tests)) for path, _ in found for tests in TESTS[path]}:
            if not _passes(tree, tests, is_kernel, 600):
                print(f"without any mutant, these fail: {' '.join(tests)}", file=sys.stderr)
                return 1
        deadline = clock.monotonic() + 60 * options.minutes
        for path, mutant in found:
            key = f"{path}:{mutant.line}: {mutant.change}"
            fate = known.get(key)
            if fate is None:
                if clock.monotonic() > deadline:
                    continue
                fate = _fate(tree, path, mutant, options.timeout)
                if options.json:
                    with options.json.open("a") as file:
                        file.write(json.dumps([key, fate]) + "\n")
            fates[path, fate] += 1
            if fate == "survived":
                print(f"survived  {key}", flush=True)
    _print(fates, len(found))
    return 0


def _fate(tree: Path, path: str, mutant: Mutant, timeout: float) -> str:
    """Return whether the tests notice a mutant: killed, or survived."""
    file = tree / path
    original = file.read_text()
    file.write_text(mutant.source)
    try:
        passes = all(_passes(tree, tests, _is_kernel(path), timeout) for tests in TESTS[path])
        return "survived" if passes else "killed"
    finally:
        file.write_text(original)


def _is_kernel(path: str) -> bool:
    return path.startswith("differential/kernels/")


def _passes(tree: Path, tests: Sequence[str], interpreted: bool, timeout: float) -> bool:
    """Return whether tests pass, within so many seconds, in a fork of this process."""
    child = os.fork()
    if not child:
        os.setsid()
        _test(tree, tests, interpreted)
    handle = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([handle], [], [], timeout)
        if not ready:
            os.killpg(child, signal.SIGKILL)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _test(tree: Path, tests: Sequence[str], interpreted: bool) -> None:
    """Run tests of the tree, and end this process with their exit status."""
    status = 70
    try:
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        sys.path[:] = [str(tree), *(place for place in sys.path if place not in ("", str(ROOT)))]
        os.chdir(tree)
        os.environ |= {"PYTHONPATH": str(tree), "DIFFERENTIAL_KERNELS": "interpreted" if interpreted else "compiled"}
        sys.dont_write_bytecode = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        import hypothesis
        import pytest

        # A mutant that fails need not fail in the simplest way, and no test of a mutant is worth a minute.
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutation", phases=phases, database=None, deadline=None)
        hypothesis.settings.load_profile("mutation")
        quickly = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-o", "timeout=30"]
        status = int(pytest.main([*quickly, "-W", "ignore::pytest.PytestAssertRewriteWarning", *tests]))
    finally:
        os._exit(status)


def _paths(only: str) -> list[str]:
    return [path for path in TESTS if only in path]


def _known(file: Path | None) -> dict[str, str]:
    if file is None or not file.exists():
        return {}
    return dict(json.loads(line) for line in file.read_text().splitlines())


def _print(fates: Counter[tuple[str, str]], found: int) -> None:
    print(f"{'file':48} {'tried':>6} {'killed':>7} {'survived':>9}")
    for path in TESTS:
        killed, survived = fates[path, "killed"], fates[path, "survived"]
        if killed + survived:
            print(f"{path:48} {killed + survived:>6} {killed:>7} {survived:>9}")
    print(f"{sum(fates.values())} of {found} mutants tried")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", metavar="PATH", help="only files whose path contains PATH")
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long (default 60)")
    parser.add_argument("--timeout", type=float, default=90, help="seconds after which a mutant that hangs is killed")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which mutants are tried")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep results here, and go on from those there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
