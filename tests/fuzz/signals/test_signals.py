"""Runs of the fuzzer of signals; `python -m tests.fuzz.signals` runs as many as wanted."""

from __future__ import annotations

import signal

import pytest

from tests.fuzz.signals import cases
from tests.fuzz.signals.cases import Case, Event, Fault
from tests.fuzz.signals.programs import PROGRAMS

PROMPT = 20.0
"""Seconds in which a run has to end here, where the machine may be busy with other tests."""


@pytest.mark.lengthy
@pytest.mark.parametrize("number", range(20))
def test_signals_at_random_moments_leave_nothing_behind_and_hide_nothing(number: int) -> None:
    Case.drawn(number).run(PROMPT)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("program", "event", "what"),
    [
        ("ends early", None, "its status is 0, but not all processes have done their work"),
        ("fails", None, "its status is 1, but no signal requested that"),
        ("leaves a file", None, r"\['left'\] are left among the temporary files"),
        ("leaves a process", None, r"processes \[.+\] are left"),
        ("goes on", Event(2.5, signal.SIGINT, "launcher", 0), r"it has not ended [\d.]+ s after the last signal"),
    ],
)
def test_a_violated_requirement_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, program: str, event: Event | None, what: str
) -> None:
    monkeypatch.setitem(PROGRAMS, program, FAULTY[program])
    monkeypatch.setattr(cases, "_load", lambda: 1.0)
    with pytest.raises(Fault, match=what):
        Case(program, 2, 1, () if event is None else (event,)).run(1.0)


FAULTY = {
    "ends early": "",
    "fails": "import sys\nsys.exit(1)\n",
    "leaves a file": "import tempfile\nopen(tempfile.gettempdir() + '/left', 'w')\nprint('done', flush=True)\n",
    "leaves a process": (
        "import subprocess, sys\nprint('done', flush=True)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'], stdout=-3, stderr=-3)\n"
    ),
    "goes on": "import time\ntry:\n    time.sleep(60)\nfinally:\n    time.sleep(60)\n",
}
