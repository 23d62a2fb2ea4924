"""`timely top` beside a running job."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time as clock

import pytest

from tests.integration.live.browsing import job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def top(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timely", "top", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"COLUMNS": "160"},
        check=False,
    )


@pytest.mark.parametrize("by", ["process", "address"])
def test_it_prints_what_a_job_does(by: str) -> None:
    with job("-n", "2", "-w", "2", program="hops.py", seconds="30") as (run, address):
        end = clock.monotonic() + 25
        while True:  # the page is there before the workers are
            shown = top("--once", str(run.process.pid) if by == "process" else address)
            assert shown.returncode == 0, shown.stderr
            lines = shown.stdout.splitlines()
            if re.search(r"^join_map +[1-9.]", shown.stdout, re.MULTILINE):
                break
            assert clock.monotonic() < end, shown.stdout
        assert re.match(r"4 workers, [\d.]+ % busy", lines[0])
        assert sum(bool(re.match(r" +[0-3] +[01] +\d+ ", line)) for line in lines) == 4
        joins = [line for line in lines if line.startswith("join_map")]
        assert len(joins) == 1
        assert "hops.py:" in joins[0]
        assert re.search(r"join_map +[\d.]+ % +[\d.]+k? ", joins[0])
        assert "UserWarning" in shown.stdout
        assert "token" not in shown.stdout


def test_it_shows_who_holds_a_frontier() -> None:
    with job(program="hops.py", seconds="1") as (_, address):
        end = clock.monotonic() + 40
        while "waits for edges.advance_to(" not in (text := top("--once", address).stdout):
            assert clock.monotonic() < end, text


def test_in_a_terminal_it_goes_on_until_the_job_ends() -> None:
    with job(program="hops.py", seconds="8", more=("end",)) as (_, address):
        master, slave = pty.openpty()
        shown = subprocess.Popen([sys.executable, "-m", "timely", "top", address], stdout=slave, stderr=slave)
        os.close(slave)
        text, end = b"", clock.monotonic() + 60
        while clock.monotonic() < end:
            if select.select([master], [], [], 1.0)[0]:
                try:
                    text += os.read(master, 1 << 16)
                except OSError:
                    break
        os.close(master)
        assert shown.wait(20) == 0
        assert text.count(b"join_map") > 4
        assert text.rstrip().endswith(b"the job has ended")
