"""The documents are right: Python blocks print the text block after them, links lead to files, names exist."""

from __future__ import annotations

import re

import pytest

import differential
import timely
import timely.capture
import timely.graphlinq
import timely.progress
from tests.api.modules import ROOT

PACKAGES = (timely, timely.capture, timely.graphlinq, timely.progress, differential)

BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!http)([^)#]+)")
EXAMPLES = [
    pytest.param(code, printed, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    for number, (code, printed) in enumerate(BLOCK.findall(path.read_text()))
]


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_a_block_prints_the_output_in_the_document(
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


def test_names_that_the_documents_mention_exist() -> None:
    public = {name for package in PACKAGES for name in package.__all__}
    public |= {name for package in PACKAGES for each in package.__all__ for name in dir(getattr(package, each))}
    rows = (ROOT / "docs" / "names.md").read_text().splitlines()
    ours = [name for row in rows if row.startswith("|") for name in re.findall(r"`([\w.]+)[`(]", row.split("|")[1])]
    assert len(ours) > 50
    assert [name for name in ours if name.rpartition(".")[2] not in public] == []
