"""How functions of the program are interrupted."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import pytest

from differential.session import interrupt as module
from differential.session.interrupt import Interrupted, interrupt


class Referred:
    pass


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
