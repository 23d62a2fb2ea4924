"""A program that is killed again and again takes every record of its sources once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from differential.durable import Directory, Shard

PROGRAM = Path(__file__).with_name("feeding.py")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("seed", "processes"), [(0, 1), (1, 1), (2, 2)])
def test_each_record_counts_once_however_often_the_program_is_killed(tmp_path: Path, seed: int, processes: int) -> None:
    program = [sys.executable, str(PROGRAM), str(tmp_path), str(processes)]
    chance = random.Random(seed)
    (tmp_path / "in").mkdir()
    (tmp_path / "log.csv").write_text("at,n\n")
    number = bad = 0

    def write() -> None:
        nonlocal number, bad
        with (tmp_path / "log.csv").open("a") as file:
            for _ in range(chance.randrange(1, 200)):
                if chance.random() < 0.1:
                    file.write(f"x,bad {bad}\n")
                    bad += 1
                file.write(f'"a,\n{number}",{number}\n')
                number += 1
        lines = [json.dumps({"n": number + each, "at": "file"}) for each in range(chance.randrange(1, 50))]
        (tmp_path / "new").write_text("\n".join(lines) + "\n")
        (tmp_path / "new").rename(tmp_path / "in" / f"{number:08d}")
        number += len(lines)

    for _ in range(6):
        with subprocess.Popen(program, stdout=subprocess.PIPE) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == b"begins\n"
                for _ in range(chance.randrange(1, 12)):
                    write()
                    time.sleep(chance.random() * 0.05)
            finally:
                child.kill()
    (tmp_path / "end").touch()
    subprocess.run(program, check=True, timeout=60, stdout=subprocess.DEVNULL)
    shards = {
        name: Shard(name, Directory(str(tmp_path / "db")).store(name)) for name in ("numbers", "rejects", "total")
    }
    assert sorted(n for n, _ in shards["numbers"].read()) == list(range(number))
    assert set(shards["numbers"].read().values()) == {1}
    assert shards["total"].read() == {(n,): 1 for n in range(number)}
    assert sorted(record[3] for record in shards["rejects"].read()) == sorted(f"x,bad {each}" for each in range(bad))
