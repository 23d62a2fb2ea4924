"""The entry point of the command."""

from __future__ import annotations

import signal
import sys
from types import ModuleType

import pytest

from timely.run import command


def test_an_interrupt_in_the_first_moments_ends_the_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "timely.run.cli", Interrupted("timely.run.cli"))
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        assert command.main() == 130
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
