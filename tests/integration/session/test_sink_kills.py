"""A program that is killed again and again writes every commit to its sinks once."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

PROGRAM = Path(__file__).with_name("delivering.py")
READERS: dict[str, Callable[[Path], list[Any]]] = {
    "parquet": lambda path: polars.read_parquet(path).rows(),
    "arrow": lambda path: polars.read_ipc(path).rows(),
    "npy": lambda path: np.load(path).tolist(),
}


def rows_of(directory: Path, read: Callable[[Path], list[Any]]) -> list[Any]:
    """Return the rows of a directory with a file for each commit, whose name is its number."""
    found = []
    for path in sorted(directory.glob("[0-9]*")):
        rows = read(path)
        assert {time for *_, time, _ in rows} <= {int(path.stem)}
        found += rows
    return found


@pytest.mark.slow
@pytest.mark.timeout(480)
@pytest.mark.parametrize("seed", range(2))
def test_files_have_each_commit_once_however_often_the_program_is_killed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (tmp_path / "in").mkdir()
    (tmp_path / "state").mkdir()
    sums: dict[int, int] = defaultdict(int)
    inserted: Counter[tuple[int, int]] = Counter()
    written = 0

    def write() -> None:
        nonlocal written
        rows = [(chance.randrange(10), chance.randrange(100)) for _ in range(chance.randrange(1, 50))]
        for group, n in rows:
            sums[group] += n
            inserted[n, group] += 1
        (tmp_path / "new").write_text("".join(json.dumps({"n": n, "group": group}) + "\n" for group, n in rows))
        (tmp_path / "new").rename(tmp_path / "in" / f"{written:08d}")
        written += 1

    for _ in range(12):
        with subprocess.Popen([sys.executable, str(PROGRAM), str(tmp_path)], stdout=subprocess.PIPE) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == b"begins\n"
                for _ in range(chance.randrange(1, 12)):
                    write()
                    time.sleep(chance.random() * 0.05)
            finally:
                child.kill()
    (tmp_path / "end").touch()
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path)], check=True, timeout=180, stdout=subprocess.DEVNULL)
    with (tmp_path / "sums.csv").open() as file:
        of_csv = [tuple(map(int, row.values())) for row in csv.DictReader(file)]
    of_json = [tuple(json.loads(line).values()) for line in (tmp_path / "sums.jsonl").read_text().splitlines()]
    assert of_csv == of_json
    assert {form: rows_of(tmp_path / form, read) for form, read in READERS.items()} == dict.fromkeys(READERS, of_csv)
    times = [time for *_, time, _ in of_csv]
    assert times == sorted(times)
    found: Counter[tuple[int, int]] = Counter()
    for time_ in sorted(set(times)):
        changed = [(group, total, diff) for group, total, at, diff in of_csv if at == time_]
        assert len(set(changed)) == len(changed)
        for group, total, diff in changed:
            found[group, total] += diff
        assert set(found.values()) <= {0, 1}, f"commit {time_} is there twice, or not whole"
        assert len({group for (group, _), count in found.items() if count}) == sum(found.values())
    assert {group: total for (group, total), count in found.items() if count} == dict(sums)
    of_table: Counter[tuple[int, int]] = Counter()
    for *row, _, diff in rows_of(tmp_path / "numbers", READERS["parquet"]):
        of_table[tuple(row)] += diff
    assert of_table == inserted
