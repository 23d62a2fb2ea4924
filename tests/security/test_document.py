"""The tests that `SECURITY.md` names exist."""

from __future__ import annotations

import re

from tests.api.modules import ROOT

TEST = re.compile(r"`(test_\w+)`")


def test_every_test_that_the_document_names_exists() -> None:
    named = TEST.findall((ROOT / "SECURITY.md").read_text())
    assert len(named) > 30
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert [name for name in named if name not in there] == []
