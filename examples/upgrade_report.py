"""The output of `upgrade.py`: answers as text, a line of progress, and a report of the whole run."""

from __future__ import annotations

import shutil
import sys
import time as clock
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import upgrade_picture
from numpy.typing import NDArray

from differential.jobs.outputs import Result
from differential.jobs.report import percentiles
from timely.services import time_left

Answers = Mapping[str, Any]

TERMINAL_SECONDS = 0.1
PLAIN_SECONDS = 2.0
"""Seconds between lines of progress on a terminal, where each replaces the one before, and elsewhere."""


@dataclass
class Report:
    """The record of a run: answers, and how long they took.

    A batch is the steps that were inserted together. The latency of a step is the time of its batch, from inserting it
    until all answers were final, divided by the number of its steps.
    """

    load_seconds: float = 0.0
    initial_seconds: float = 0.0
    initial: Answers = field(default_factory=dict)
    final: Answers = field(default_factory=dict)
    steps: int = 0
    updates: int = 0
    differences: int = 0
    batches: list[tuple[int, float]] = field(default_factory=list)
    history: list[tuple[int, Answers]] = field(default_factory=list)
    """Answers now and then, with their steps: what `--plot` draws."""

    def passed(self, first: int, last: int, seconds: float) -> None:
        """Record the seconds that the answers after steps `first` to `last` took. Step 0 is the initial graph."""
        if last == 0:
            self.initial_seconds = seconds
            return
        self.steps = last
        self.batches.append((last - first + 1, seconds))

    @property
    def drawn(self) -> int:
        """The last step of the history, or less than any step if there is none."""
        return self.history[-1][0] if self.history else -sys.maxsize

    @property
    def step_seconds(self) -> float:
        """The seconds of all steps."""
        return sum(seconds for _, seconds in self.batches)

    def latency(self) -> dict[str, float]:
        """Return the latency of steps in milliseconds."""
        return percentiles(self.latencies()) or {"median": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}

    def latencies(self) -> NDArray[np.float64]:
        """Return the latency of each step in milliseconds."""
        if not self.batches:
            return np.zeros(0)
        steps, seconds = np.array(self.batches).T
        return np.repeat(1000 * seconds / steps, steps.astype(np.int64))

    def as_json(self) -> dict[str, Any]:
        """Return the report in its JSON form."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "initial": self.initial,
            "final": self.final,
            "latency_ms": {name: round(value, 4) for name, value in self.latency().items()},
            "seconds": {
                "load": round(self.load_seconds, 4),
                "initial": round(self.initial_seconds, 4),
                "steps": round(self.step_seconds, 4),
            },
            "differences": self.differences,
        }

    def result(self) -> Result:
        """Return what is printed, written and drawn."""
        title = f"Upgrade of a distribution: {self.steps:,} steps, {self.updates:,} changed dependencies"
        panels = upgrade_picture.panels(self.latencies(), self.history)
        return Result([*self.lines()], self.as_json(), title=title, panels=panels, columns=1, shape=(8.0, 2.1))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the summary."""
        yield f"after step {self.steps:,}:"
        yield from described(self.final)
        latency = ", ".join(f"{name} {value:.2f}" for name, value in self.latency().items())
        yield f"latency of a step: {latency} ms"
        speed = f"{rate(self.steps, self.step_seconds)} steps/s, {rate(self.updates, self.step_seconds)} updates/s"
        yield f"{self.steps:,} steps with {self.updates:,} updates in {self.step_seconds:.1f} s: {speed}"
        yield f"loaded in {self.load_seconds:.1f} s, initial answers in {self.initial_seconds:.1f} s"
        yield f"{self.differences:,} differences produced"


def rate(count: int, seconds: float) -> str:
    """Return the rate per second as text."""
    return f"{count / seconds:,.0f}" if seconds else "0"


def described(answers: Answers) -> Iterator[str]:
    """Yield answers as lines of text."""
    yield f"  edges       {answers['edges']:,}"
    if "components" in answers:
        components = answers["components"]
        yield f"  components  {components['count']:,}, the largest of {components['largest']:,} packages"
    if "cycles" in answers:
        cycles = answers["cycles"]
        yield f"  cycles      {cycles['count']:,}, the largest of {cycles['largest']:,}: {' '.join(cycles['packages'])}"
    for package, count in answers.get("watch", {}).items():
        yield f"  watch       {count:,} packages depend on {package}"
    if "top" in answers:
        yield "  top         " + ", ".join(f"{package} {degree:,}" for package, degree in answers["top"])


def figures(answers: Answers) -> str:
    """Return the current figures as a short text, for a line of progress."""
    parts = [f"{name} {answers[name]['count']:,}" for name in ("components", "cycles") if name in answers]
    parts += [f"{package} {count:,}" for package, count in answers.get("watch", {}).items()]
    parts += [f"{package} {degree:,}" for package, degree in answers.get("top", [])[:1]]
    return " | ".join(parts)


class Terminal:
    """Standard output, with a line of progress below the printed lines."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._overwrites = sys.stdout.isatty()
        self._pause = TERMINAL_SECONDS if self._overwrites else PLAIN_SECONDS
        self._shown_at = clock.monotonic()
        self._shown_steps = 0
        self._shown_seconds = 0.0
        self._stands = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def print(self, *lines: str) -> None:
        """Print lines."""
        if lines:
            self._clear()
            print(*lines, sep="\n", flush=True)

    def is_due(self) -> bool:
        """Return whether it is time for another line of progress."""
        return clock.monotonic() >= self._shown_at + self._pause

    def progress(self, report: Report, answers: Answers) -> None:
        """Show how far the run has come, with the speed and the latency since the last call."""
        steps = report.steps - self._shown_steps
        seconds = report.step_seconds - self._shown_seconds
        latency = 1000 * seconds / steps if steps else 0.0
        done = f"step {report.steps:,} of {self._steps:,}"
        speed = f"{rate(steps, seconds)} steps/s | {latency:.2f} ms"
        rest = time_left(report.steps, self._steps, report.step_seconds)
        line = " | ".join(filter(None, [done, rest, speed, figures(answers)]))
        if self._overwrites:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]}\x1b[K", end="", flush=True)
            self._stands = True
        else:
            print(line, flush=True)
        self._shown_at = clock.monotonic()
        self._shown_steps = report.steps
        self._shown_seconds = report.step_seconds

    def _clear(self) -> None:
        if self._stands:
            print("\r\x1b[K", end="", flush=True)
            self._stands = False
