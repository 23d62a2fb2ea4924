"""How functions of the program are interrupted."""

from __future__ import annotations

import signal
import sys
import weakref
from typing import Any

import pytest

from differential.session import interrupt as module
from differential.session.interrupt import Deferral, Interrupted, interrupt


class Referred:
    pass


def fail_deferring() -> None:
    """Raise an error while the signal waits."""
    with Deferral(), Deferral():
        signal.raise_signal(signal.SIGINT)
        raise OSError("the disk is full")


def test_an_interrupt_that_python_drops_is_not_printed_and_other_errors_are(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(unraisable.exc_type))
    monkeypatch.setattr(module, "_has_hook", False)
    for error in (Interrupted, KeyError):
        for _ in range(2):
            assert not interrupt(-1)

            def fails(_: object, error: type[BaseException] = error) -> None:
                raise error

            referred = Referred()
            reference = weakref.ref(referred, fails)
            del referred
            assert reference() is None
    assert reported == [KeyError, KeyError]


def test_a_deferred_signal_is_handled_if_the_block_raises() -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        fail_deferring()
    assert isinstance(raised.value.__context__, OSError)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_a_block_is_raised_if_the_handler_returns() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda signum, frame: seen.append(signum))
    try:
        with pytest.raises(OSError, match="the disk is full"):
            fail_deferring()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
