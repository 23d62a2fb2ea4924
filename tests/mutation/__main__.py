"""`python -m tests.mutation`: break the heart of the packages in one place at a time, and see whether a test notices.

Works on a copy of the tree, so it may run while one works. A mutant that no test of its file's notices survives; those
that cannot be noticed, because they mean the same, are listed in `equivalent.md` with the reason. Prints each survivor,
and a table in the end; `--json FILE` keeps everything, a line for each mutant, and goes on from what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time as clock
from collections import Counter
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
REDUCE = ["tests/property/kernels/test_reduce.py", "tests/unit/kernels/test_reduce.py"]
TRACE = ["tests/property/trace", "tests/unit/trace", "tests/unit/test_interning.py"]
KERNELS = ["tests/property/kernels", "tests/unit/kernels"]
PROGRAMS = ["tests/property/differential/test_programs_mean_what_they_say.py"]
TESTS: dict[str, list[str]] = {
    **{f"differential/trace/{name}.py": TRACE for name in ("spine", "merge", "batcher", "handle", "cursor", "batch")},
    **{f"differential/operators/{name}.py": PROGRAMS for name in ("join", "reduce", "arrange")},
    **{
        f"differential/kernels/{name}.py": [
            "tests/property/kernels/test_reduce.py",
            "tests/unit/kernels/test_reduce.py",
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
        f"differential/kernels/{name}.py": [*KERNELS, *TRACE]
        for name in ("join", "merge", "consolidate", "words", "times", "batching", "seek", "gather", "count")
    },
    "timely/progress/reachability.py": ["tests/unit/progress", "tests/property/progress"],
    "timely/progress/protocol.py": ["tests/unit/progress", "tests/property/progress", "tests/simulation/protocol"],
    "timely/progress/antichain.py": ["tests/unit/progress", "tests/property/progress"],
}
"""The files, and what must notice that they are broken. Survivors are tried on all random programs, too."""


def main() -> int:
    """Run what the command line asks for."""
    options = _parser().parse_args()
    found = [(path, mutant) for path in _paths(options.only) for mutant in mutants((ROOT / path).read_text())]
    random.Random(options.seed).shuffle(found)
    known = _known(options.json)
    fates: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", "*_cache"))
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
        for tests in (TESTS[path], PROGRAMS):
            if not _passes(tree, tests, timeout):
                return "killed"
            if tests == TESTS[path] == PROGRAMS:
                break
        return "survived"
    finally:
        file.write_text(original)


def _passes(tree: Path, tests: list[str], timeout: float) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests]
    environ = os.environ | {"PYTHONPATH": str(tree)}
    process = subprocess.Popen(
        command, cwd=tree, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(timeout) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


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
    parser.add_argument("--timeout", type=float, default=120, help="seconds after which a mutant that hangs is killed")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which mutants are tried")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep results here, and go on from those there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
