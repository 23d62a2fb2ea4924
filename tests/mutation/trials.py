"""Trying mutants of some files, one after the other, in forks of a process that has collected and run its tests.

The process, itself a fork, runs the tests once as they are, and keeps for each how long it took and which lines of the
files it came by. Then, for each mutant, a fork of it puts the mutant's code in the place of the file's, in the
functions that are loaded already, forgets what cached ones know, and runs those tests that came by the place, first
those that find most mutants in least time, until one fails. What the tests draw at random is the same each time, so a
test that did not come by a place never does.

No thread outlives a fork. The one with which ZeroMQ gives back frames that it has not copied is ended before, so that
each fork makes its own: else a fork would find the sockets of the other's, and fail for leaving them open.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import select
import signal
import sys
import threading
import time as clock
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import IO, Any, TypeAlias

import pytest
from zmq.utils.garbage import gc as uncopied_frames

from tests.mutation.mutants import Mutant

Place: TypeAlias = tuple[str, int]
Functions: TypeAlias = list[tuple[Place, FunctionType]]

OFTEN = 300
"""After so many calls in a test a function is taken to have been everywhere."""

OUT_OF_TIME = (2, -signal.SIGPROF, -signal.SIGKILL)
"""How a process ends in which a test took too long; one that reads where there is no memory ends otherwise."""

BROKEN = 71
"""The exit status of a process whose tests fail without any mutant."""


class Trials:
    """A plugin for pytest that tries mutants, in place of running the tests."""

    def __init__(self, tree: Path, mutants: Sequence[Mutant], deadline: float, budget: float, results: IO[str]) -> None:
        self.files = {mutant.path: tree / mutant.path for mutant in mutants}
        self.mutants = mutants
        self.deadline = deadline
        self.budget = budget
        self.results = results
        self.lines: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.kills: Counter[str] = Counter()
        self.failure: str | None = None
        self.caches: list[_lru_cache_wrapper[Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep that a test failed, and whether it was for want of time."""
        if report.failed:
            self.failure = "timed out" if "Timeout (>" in report.longreprtext else "killed"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests as they are, then try the mutants; write fate and test of each as a line of JSON."""
        items = {item.nodeid: item for item in session.items}
        for name, item in items.items():
            started = clock.process_time()
            with _lines_into(self.lines[name], {str(file) for file in self.files.values()}):
                self._run(item)
            self.seconds[name] = clock.process_time() - started
            if self.failure:
                self._write(["", "", f"fails without any mutant: {name}"])
                os._exit(BROKEN)
        self._write(["", "", f"{len(items)} tests take {sum(self.seconds.values()):.0f} s"])
        originals = {path: file.read_text() for path, file in self.files.items()}
        functions = {path: _functions(str(file)) for path, file in self.files.items()}
        self.caches = [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]
        uncopied_frames.stop()
        gc.freeze()  # else the forks copy every object's page when they collect garbage
        for mutant in self.mutants:
            if clock.monotonic() > self.deadline:
                break
            self.files[mutant.path].write_text(mutant.source)  # for processes that the tests start
            self._write(self._try(functions[mutant.path], mutant, [items[name] for name in self._order(mutant)]))
            self.files[mutant.path].write_text(originals[mutant.path])
        return True

    def _order(self, mutant: Mutant) -> list[str]:
        """Return the tests that come by a mutant's place, the most promising first, as many as the budget allows."""
        places = {(str(self.files[mutant.path]), line) for line in mutant.lines}
        passing = [name for name, lines in self.lines.items() if not lines.isdisjoint(places)]
        passing.sort(key=lambda name: (0.1 + self.kills[name]) / (0.01 + self.seconds[name]), reverse=True)
        spent = itertools.accumulate(self.seconds[name] for name in passing)
        return [name for name, seconds in zip(passing, spent) if seconds <= self.budget]

    def _try(self, functions: Functions, mutant: Mutant, items: list[pytest.Item]) -> list[Any]:
        """Return a mutant's key, its fate, and the test that decided it."""
        ear, mouth = os.pipe()
        child = os.fork()
        if not child:
            self._find(functions, mutant, items, mouth)
        os.close(mouth)
        status = _status(child, 60 + int(20 * self.budget))
        with open(ear) as said:
            tests = said.read().splitlines()
        if status == 0:
            return [mutant.key, "survived", f"{len(tests)} tests"]
        self.kills[tests[-1]] += 1
        return [mutant.key, "timed out" if status in OUT_OF_TIME else "killed", tests[-1]]

    def _find(self, functions: Functions, mutant: Mutant, items: list[pytest.Item], mouth: int) -> None:
        """Run tests until one fails, the name of each said before, and end this process."""
        status = 1
        try:
            os.setsid()
            _replace(functions, mutant.source)
            for cached in self.caches:
                cached.cache_clear()
            for item in items:
                os.write(mouth, f"{item.nodeid}\n".encode())
                # Processor time, so that a machine busy with other things kills nobody.
                signal.setitimer(signal.ITIMER_PROF, 1 + 1.5 * self.seconds[item.nodeid])
                self._run(item)
                if self.failure:
                    status = 2 if self.failure == "timed out" else 1
                    break
            else:
                status = 0
        finally:
            os._exit(status)

    def _run(self, item: pytest.Item) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

    def _write(self, line: list[Any]) -> None:
        self.results.write(json.dumps(line) + "\n")
        self.results.flush()


def _status(child: int, timeout: int) -> int:
    """Return how a process ends, which leads a group, within so many seconds in which this one is not stopped."""
    handle = os.pidfd_open(child)
    try:
        # A second at a time: of one for which the processes are stopped no more is lost, and none of the next.
        if not any(select.select([handle], [], [], 1)[0] for _ in range(timeout)):
            os.killpg(child, signal.SIGKILL)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class _lines_into:
    """Note which lines of some files are run; of a function called often, in the end all, for noting is slow."""

    def __init__(self, lines: set[tuple[str, int]], files: set[str]) -> None:
        calls: Counter[CodeType] = Counter()

        def local(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            return local

        def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
            code = frame.f_code
            if code.co_filename not in files or calls[code] > OFTEN:
                return None
            calls[code] += 1
            if calls[code] <= OFTEN:
                return local
            lines.update((code.co_filename, line) for _, _, line in code.co_lines() if line is not None)
            return None

        self.trace = trace

    def __enter__(self) -> None:
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)


def _functions(file: str) -> Functions:
    """Return every function of a file there is, by its name and the how manieth of that name it is."""
    places = {
        (code.co_qualname, code.co_firstlineno): place
        for place, code in _codes(compile(Path(file).read_text(), file, "exec", dont_inherit=True))
    }
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType) and one.__code__.co_filename == file]
    return [(places[one.__code__.co_qualname, one.__code__.co_firstlineno], one) for one in functions]


def _replace(functions: Functions, source: str) -> None:
    """Put the code of another text of their file in the place of the functions' own."""
    codes = dict(_codes(compile(source, functions[0][1].__code__.co_filename, "exec", dont_inherit=True)))
    for place, function in functions:
        code = codes.get(place)
        # A function inside another is made anew by the other's code, and may need other variables of it.
        if code is not None and len(code.co_freevars) == len(function.__code__.co_freevars):
            function.__code__ = code


def _codes(module: CodeType) -> Iterator[tuple[Place, CodeType]]:
    """Yield the code of every function, by its name and the how manieth of that name it is."""
    seen: Counter[str] = Counter()
    stack = [module]
    while stack:
        code = stack.pop(0)
        yield (code.co_qualname, seen[code.co_qualname]), code
        seen[code.co_qualname] += 1
        stack += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
