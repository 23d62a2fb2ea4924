"""Interrupts of a real kernel, while cells await a session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.modules import ROOT

RUN = """
import json, queue, sys, time
from jupyter_client import KernelManager

cells, directory = json.loads(sys.argv[1]), sys.argv[2]
manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{directory}/kernel")
manager.start_kernel()
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout=60)

def shown(code, marker):
    cell, texts, begun, seconds = client.execute(code), [], None, None
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if begun is not None and seconds is None and time.monotonic() > begun + 0.2:
            manager.interrupt_kernel()
            seconds = time.monotonic()
        try:
            message = client.get_iopub_msg(timeout=0.05)
        except queue.Empty:
            continue
        kind, content = message["msg_type"], message["content"]
        if message["parent_header"].get("msg_id") != cell:
            continue
        if kind == "stream" and marker and marker in content["text"]:
            begun = time.monotonic()
        elif kind == "stream":
            texts.append(content["text"].strip())
        elif kind == "error":
            texts.append(content["ename"])
        elif kind == "status" and content["execution_state"] == "idle":
            return texts, None if seconds is None else time.monotonic() - seconds
    return [*texts, "the cell did not end"], None

try:
    print(json.dumps([shown(*cell) for cell in cells]))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""
"""A program that runs cells in a kernel, and interrupts those that print a marker soon afterwards."""

BEGIN = """
import asyncio, time
import differential as dd

def endless(x):
    while (x >= 100).any():
        time.sleep(0.01)
    return x


db = dd.Session(progress=False)
numbers = db.table("numbers", {"x": [1, 2]}, key="x")
view = db.view("all", lambda t: t.numbers)
db.commit()
"""
FOLLOW = "async for change in view.changes(): pass"
COMMIT = """
db.view("stuck", lambda t: t.numbers.map(endless)); numbers.insert(x=100)
print("begins", flush=True)
await {}
"""
USE = "numbers.insert(x=3); print(await db.commit_async() > 1, len(view) > 2)"


def seen(cells: list[tuple[str, str | None]], directory: Path) -> list[tuple[list[str], float | None]]:
    """Return what each cell shows, and how many seconds after its interrupt it ended."""
    pytest.importorskip("jupyter_client", reason="the extra `test` has it")
    ran = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(cells), str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr
    return [(shown, seconds) for shown, seconds in json.loads(ran.stdout)]


@pytest.mark.slow
def test_an_interrupt_ends_what_a_cell_awaits(tmp_path: Path) -> None:
    print_and = 'print("begins", flush=True)\n'
    interrupted = {
        print_and + FOLLOW: ["KeyboardInterrupt"],
        COMMIT.format("db.commit_async()"): ["KeyboardInterrupt"],
        f'{print_and}try:\n    {FOLLOW}\nexcept KeyboardInterrupt:\n    print("caught")\n'
        'await asyncio.sleep(0.01); print("goes on", flush=True)': ["caught\ngoes on"],
        f"async def follow():\n    {FOLLOW}\n{print_and}await asyncio.gather(follow(), follow())": ["CancelledError"],
    }
    cells: list[tuple[str, str | None]] = [(BEGIN, None)]
    for cell in interrupted:
        cells += [(cell, "begins"), (USE, None)]
    results = seen(cells, tmp_path)
    assert results[0][0] == []
    for (cell, expected), result, after in zip(interrupted.items(), results[1::2], results[2::2]):
        shown, seconds = result
        assert ["\n".join(shown)] == expected, cell
        assert seconds is not None, cell
        assert seconds < 5, (cell, seconds)  # within a second, unless the machine is busy
        assert after[0] == ["True True"], (cell, after)


@pytest.mark.slow
def test_a_timeout_of_the_program_stays_a_timeout(tmp_path: Path) -> None:
    timed = f"async with asyncio.timeout(0.1):\n    {FOLLOW}"
    assert [shown for shown, _ in seen([(BEGIN, None), (timed, None), (USE, None)], tmp_path)] == [
        [],
        ["TimeoutError"],
        ["True True"],
    ]
