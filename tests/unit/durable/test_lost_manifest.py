"""A collection whose manifest is lost is not taken for a new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential.durable import State, durable_input, persist
from differential.durable.command import show
from timely import Worker, execute_directly
from timely.errors import StateError


def program(worker: Worker, state: Path, keeps_counts: bool) -> int:
    opened = State.open(worker, state)
    with worker.dataflow() as scope:
        words, collection = durable_input(scope, opened.shard("words"))
        if keeps_counts:
            persist(collection.count(), opened.shard("counts"))
    first = words.epoch
    words.insert("to")
    words.close()
    return first


@pytest.mark.parametrize("name", ["words", "counts"])
def test_files_without_a_manifest_are_refused(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    keeps_counts = name == "counts"
    execute_directly(lambda worker: program(worker, tmp_path, keeps_counts))
    manifest = tmp_path / name / "manifest.json"
    whole = manifest.read_bytes()
    manifest.unlink()
    with pytest.raises(StateError, match=rf"'{name}' in .* has 1 file\(s\), and no manifest: restore the directory"):
        execute_directly(lambda worker: program(worker, tmp_path, keeps_counts))
    assert not manifest.exists()
    (tmp_path / "notes.txt").write_text("no collection")
    assert show(str(tmp_path), verify=False) == 1
    assert f"'{name}' in" in capsys.readouterr().err
    manifest.write_bytes(whole)
    assert show(str(tmp_path), verify=True) == 0
    assert execute_directly(lambda worker: program(worker, tmp_path, keeps_counts)) == 1


def test_a_collection_that_was_removed_begins_again(tmp_path: Path) -> None:
    execute_directly(lambda worker: program(worker, tmp_path, False))
    for path in sorted((tmp_path / "words").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert execute_directly(lambda worker: program(worker, tmp_path, False)) == 0
