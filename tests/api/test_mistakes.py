"""Each mistake of `docs/mistakes.md` shows the error that the page shows."""

from __future__ import annotations

import re

import pytest

from differential import Session
from tests.api.modules import ROOT

PAGE = (ROOT / "docs" / "mistakes.md").read_text()
BEGIN = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
MISTAKES = re.findall(r"^## (.*?)\n\n```py\n(.*?)```\n\n```text\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_page_has_at_least_twenty_mistakes() -> None:
    assert len(MISTAKES) >= 20
    assert len(MISTAKES) == PAGE.count("\n## ")


@pytest.mark.parametrize(("code", "shown"), [pytest.param(code, shown, id=title) for title, code, shown in MISTAKES])
def test_a_mistake_shows_this_error(code: str, shown: str) -> None:
    assert BEGIN is not None
    names: dict[str, object] = {}
    exec(BEGIN[1], names)
    try:
        with pytest.raises(Exception, match=r".") as found:
            exec(compile(code, "cell.py", "exec"), names)
    finally:
        for value in tuple(names.values()):
            if isinstance(value, Session):
                value.close()
    assert f"{type(found.value).__name__}: {found.value}" == shown
