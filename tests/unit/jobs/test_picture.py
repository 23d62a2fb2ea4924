"""Pictures of what any file may be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential.jobs.files import OutputFile
from differential.jobs.picture import save

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", ["p_$1_$2.txt", r"a$\foo$.txt", "caf\udce9.txt"])
def test_a_title_is_the_name_of_a_file_and_not_a_formula(name: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    with OutputFile(str(picture), binary=True) as file:
        save(file, name, [])
    assert f"<!-- {name.encode(errors='backslashreplace').decode()} -->" in picture.read_text()
