"""When the garbage collector searches everything, and which objects are frozen."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from timely.worker.garbage import LONG, Searches


class Frozen:
    """A stand-in for the collector, whose searches last as long as a test requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.is_frozen = False
        self.searches = Searches(lambda: self.now)
        monkeypatch.setattr(gc, "freeze", lambda: setattr(self, "is_frozen", True))
        monkeypatch.setattr(gc, "unfreeze", lambda: setattr(self, "is_frozen", False))

    def search(self, seconds: float, generation: int = 2) -> bool:
        """Search for this long; return whether frozen objects were left out."""
        self.searches.observe("start", {"generation": generation})
        left_out = self.is_frozen
        self.now += seconds
        self.searches.observe("stop", {"generation": generation})
        return left_out


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Frozen:
    return Frozen(monkeypatch)


def test_objects_that_survive_a_long_full_search_are_left_out_of_later_ones(frozen: Frozen) -> None:
    assert not frozen.search(LONG / 2)
    assert not frozen.is_frozen
    assert not frozen.search(1.0, generation=1)
    assert not frozen.is_frozen
    assert not frozen.search(0.1)
    assert all(frozen.search(LONG / 2) for _ in range(1000))


def test_everything_is_searched_once_the_searches_since_then_have_together_taken_as_long(frozen: Frozen) -> None:
    frozen.search(0.25)
    assert [frozen.search(0.125) for _ in range(4)] == [True, True, False, True]
    assert not frozen.search(0.5)
    assert [frozen.search(0.25) for _ in range(3)] == [True, True, False]


def test_a_thaw_has_everything_searched(frozen: Frozen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "callbacks", [])
    frozen.search(0.25)
    frozen.searches.thaw()
    assert frozen.is_frozen  # a process whose searches are not kept short is left unchanged
    frozen.searches.keep_short()
    frozen.searches.keep_short()
    assert gc.callbacks == [frozen.searches.observe]
    frozen.searches.thaw()
    assert not frozen.is_frozen
    assert not frozen.search(0.25)
    assert frozen.is_frozen


SCRIPT = """
import gc, weakref, sys
import timely.worker.garbage
from timely import Pipeline, execute, new_input

timely.worker.garbage.LONG = 0.0  # however fast the machine

class Thing: pass

def circular(thing):
    thing.itself = thing
    return weakref.ref(thing)

def forgetful(capability):
    kept = [capability]
    kept.append(kept)  # alive until the function is called first, then garbage that has been frozen
    held = [kept]
    del kept, capability
    def logic(input, output):
        for _ in input:
            held.clear()
    return logic

def program(worker):
    with worker.dataflow() as scope:
        numbers, stream = new_input(scope)
        probe = stream.unary_frontier(Pipeline(), forgetful, name="forgetful").probe()
    before = circular(Thing())
    gc.collect()
    print("frozen", gc.get_freeze_count() > 10_000, "garbage", before() is not None)
    numbers.send(1)
    numbers.advance_to(1)
    worker.step()
    gc.collect(1)
    gc.collect()
    worker.step()
    print("held", probe.less_than(1))
    while probe.less_than(1):  # it stands still, and the worker searches everything
        worker.step_or_park()
    print("dropped")
    with worker.dataflow() as scope:
        new_input(scope)
    worker.drop_dataflow(scope.dataflow)
    print("frozen", gc.get_freeze_count() > 0)

execute(program)
"""


@pytest.mark.lengthy
def test_a_run_freezes_and_finds_forgotten_capabilities_that_were_frozen(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "timely", "run", "--stall", "1", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    lines = ["frozen True garbage False", "held True", "dropped", "frozen False"]
    assert ended.stdout.splitlines() == lines, ended.stderr
    assert "was forgotten on worker 0" in ended.stderr
    assert ended.returncode == 0, ended.stderr


def test_a_script_run_by_python_keeps_the_collector_as_it_is() -> None:
    text = (
        "import gc, timely; timely.execute_directly(lambda _: gc.collect()); print(gc.get_freeze_count(), gc.callbacks)"
    )
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100, check=True)
    assert ended.stdout == "0 []\n"
