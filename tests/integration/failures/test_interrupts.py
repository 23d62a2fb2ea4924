"""An interrupt ends a run as an interrupt, even if it arrives while a kernel runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.launcher.launching import Run

PROGRAM = """
import os
import random
import signal
import sys
import threading

import numpy as np

from differential import new_input
from timely import Worker, execute


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def program(worker: Worker) -> None:
    with worker.dataflow() as scope:
        session, collection = new_input(scope)
        least = collection.min().output()
    epoch = 0
    while True:
        session.insert(np.arange(100) % 7, np.arange(100) + epoch)
        epoch += 1
        session.advance_to(epoch)
        worker.step_while(lambda: least.less_than(epoch))
        if epoch == 3:
            threading.Timer(0.02 * random.random(), interrupt).start()


random.seed(1)
for _ in range(int(sys.argv[1])):
    try:
        execute(program)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_interrupts_while_kernels_run_end_each_run_as_interrupts() -> None:
    times = 20
    command = [sys.executable, "-c", PROGRAM, str(times)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout.split() == ["interrupted"] * times


LOADS = """
import os
import time

from differential.kernels.interrupts import uninterrupted
from timely import execute, new_input


def program(worker):
    with worker.dataflow() as scope:
        input, _ = new_input(scope)
    print("pid", os.getpid(), flush=True)
    if worker.index == 1:
        with uninterrupted():
            time.sleep(2.5)
    while worker.step_or_park():
        pass


execute(program)
"""


@pytest.mark.slow
def test_a_process_interrupted_while_it_loads_kernels_does_not_report_the_other_as_lost(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(LOADS)
    run = Run("run", "-n", "2", script)
    try:
        run.until_started(2)
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.end() == 130
        assert run.error == ""
    finally:
        run.close()
