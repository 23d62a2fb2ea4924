"""Every Python block in the documents runs and prints what the text block after it says; links lead to files."""

from __future__ import annotations

import re

import pytest

from tests.api.modules import ROOT

BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!http)([^)#]+)")
EXAMPLES = [
    pytest.param(code, printed, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    for number, (code, printed) in enumerate(BLOCK.findall(path.read_text()))
]


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_a_block_prints_what_the_document_says(
    code: str, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    if printed:
        assert capsys.readouterr().out == printed


def test_a_link_leads_to_a_file() -> None:
    links = [(path, link) for path in DOCUMENTS for link in LINK.findall(path.read_text())]
    assert len(links) > 30
    assert [f"{path}: {link}" for path, link in links if not (path.parent / link).exists()] == []
