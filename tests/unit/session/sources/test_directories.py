"""Directories and patterns: each file is read once, in few listings, whatever arrives or goes in the meantime."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from differential import Session
from differential.session.sources import json_lines, parts
from differential.session.sources.source import Position, SourceBatch, Target
from timely.errors import SessionError

FILES = 30


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count listings of directories, and texts that have the names of files."""
    counts, scandir, dumps = Counter[str](), os.scandir, json.dumps

    def counting_scandir(path: Any) -> Any:
        counts["listings"] += 1
        return scandir(path)

    def counting_dumps(value: Any, *args: Any, **more: Any) -> str:
        counts["positions"] += isinstance(value, dict) and "done" in value
        return dumps(value, *args, **more)

    monkeypatch.setattr(os, "scandir", counting_scandir)
    monkeypatch.setattr(json, "dumps", counting_dumps)
    return counts


def write(path: Path, *numbers: int) -> None:
    path.write_text("".join(f'{{"x": {number}}}\n' for number in numbers))


@pytest.mark.parametrize("pattern", ["", "*.jsonl"])
@pytest.mark.parametrize("follow", [False, True])
def test_many_files_cost_few_listings_and_one_position_for_each_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, costs: Counter[str], pattern: str, follow: bool
) -> None:
    monkeypatch.setattr(parts, "BLOCK", 20)  # several blocks for each file
    for number in range(FILES):
        write(tmp_path / f"{number}.jsonl", *range(number * 10, number * 10 + 10))
    with Session(progress=False) as db:
        table = db.table("t", {"x": int})
        table.read_from(json_lines(tmp_path / pattern, follow=follow))
        db.commit()
        assert [x for (x,) in table.records()] == list(range(10 * FILES))
        assert costs["listings"] <= 3
        assert costs["positions"] == 1
        write(tmp_path / "next.jsonl", -1)
        db.commit()
        assert len(table) == 10 * FILES + follow
        assert costs["listings"] <= 6
        assert costs["positions"] == 1 + follow


def numbers_of(reader: Any) -> Iterator[int]:
    """Yield the numbers that a reader delivers, file by file."""
    while (batch := reader.poll()) is not None:
        for _, (column,) in batch.changes:
            yield from column.tolist()


def opened(path: Path, position: Position | None = None, **options: Any) -> Any:
    return json_lines(path, **options).open(Target("t", ("x",), ("int64",), 1), position)


@pytest.mark.parametrize("follow", [False, True])
def test_files_that_arrive_or_go_while_others_are_read(tmp_path: Path, follow: bool) -> None:
    for number, name in enumerate("bcdf"):
        write(tmp_path / name, number)
    reader = opened(tmp_path, follow=follow)
    found = numbers_of(reader)
    assert next(found) == 0
    write(tmp_path / "a", 10)  # before the one that is read
    write(tmp_path / "e", 11)
    (tmp_path / "c").unlink()
    assert list(found) == [2, 3, 10, 11]
    assert reader.is_ended == (not follow)
    reader.close()


def test_files_that_all_go_before_they_are_read_do_not_end_a_source_before_the_others(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        write(tmp_path / name, number)
    reader = opened(tmp_path)
    found = numbers_of(reader)
    assert next(found) == 0
    for name in "bc":
        (tmp_path / name).unlink()
    write(tmp_path / "d", 3)
    assert list(found) == [3]
    reader.close()


def test_a_directory_that_is_away_for_a_while_is_not_read_again(tmp_path: Path) -> None:
    directory, away = tmp_path / "in", tmp_path / "away"
    directory.mkdir()
    for number, name in enumerate("ab"):
        write(directory / name, number)
    with Session() as db:
        table = db.table("t", {"x": int})
        table.read_from(json_lines(directory, follow=True))
        for move in (directory, away), (away, directory):
            db.commit()
            os.rename(*move)
        write(directory / "c", 2)
        db.commit()
        assert table.records() == [(0,), (1,), (2,)]


def test_each_batch_has_the_position_after_it_whenever_that_is_asked(tmp_path: Path) -> None:
    for number, name in enumerate("abcd"):
        write(tmp_path / name, number)
    reader = opened(tmp_path)
    batches = []
    while (batch := reader.poll()) is not None:
        batches.append(batch)
    reader.close()
    for count, batch in enumerate(batches, 1):
        again = opened(tmp_path, batch.position)
        assert list(numbers_of(again)) == list(range(count, 4))
        again.close()


def test_an_interrupt_while_a_file_is_opened_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate("abc"):
        write(tmp_path / name, number)
    reader = opened(tmp_path)
    part, interrupts = type(json_lines(tmp_path)).part, iter([True, False, True, False, False, False])

    def interrupted(*args: Any) -> Any:
        if next(interrupts):
            raise KeyboardInterrupt
        return part(*args)

    monkeypatch.setattr(type(json_lines(tmp_path)), "part", interrupted)
    found: list[int] = []
    while not reader.is_ended:
        try:
            found += numbers_of(reader)
        except KeyboardInterrupt:
            continue
    reader.close()
    assert found == [0, 1, 2]


def test_the_extent_of_a_directory_is_that_of_all_its_files(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        write(tmp_path / name, number)
    reader = opened(tmp_path)
    assert reader.extent == (0, 27)
    position: Position | None = None
    for _ in range(2):
        batch = reader.poll()
        assert reader.extent[1] == 27
        position = batch.position
    reader.close()
    reader = opened(tmp_path, position)
    assert reader.extent[1] == 18
    assert list(numbers_of(reader)) == [2]
    assert reader.extent == (18, 18)
    reader.close()


def test_a_position_that_is_a_function_is_made_once() -> None:
    made = []

    def position() -> Position:
        made.append(1)
        return "there"

    batch = SourceBatch((), (), position)
    assert not made
    assert (batch.position, batch.position, made) == ("there", "there", [1])


def test_a_pattern_of_directories_reads_each_record_once_and_notices_files_that_grow(tmp_path: Path) -> None:
    for number, name in enumerate("ab"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "x", number)
    for _ in range(2):
        with Session(state=tmp_path / "db", progress=False) as db:
            table = db.table("t", {"x": int})
            table.read_from(json_lines(tmp_path / "[ab]" / "*", follow=True))
            db.commit()
            assert table.records() == [(0,), (1,)]
            db.commit()
    with Session(state=tmp_path / "db", progress=False) as db:
        table = db.table("t", {"x": int})
        feed = table.read_from(json_lines(tmp_path / "[ab]" / "*", follow=True))
        write(tmp_path / "a" / "x", 0, 2)
        with pytest.raises(SessionError, match=rf"{tmp_path}/a/x had 9 bytes when it was read, and now has 18"):
            db.commit()
        assert feed.error is not None
