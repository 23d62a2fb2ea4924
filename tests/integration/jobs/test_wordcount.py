"""The job `wordcount` counts as Python does, however the text reaches it."""

from __future__ import annotations

import csv
import gzip
import os
import re
import signal
import time as clock
from collections import Counter
from pathlib import Path
from random import Random
from threading import Thread

import pytest
from pyarrow import parquet

from tests.integration.jobs.programs import (
    INTERRUPTED,
    SECONDS,
    answered,
    apart,
    as_text,
    drawn,
    epochs,
    on_two_processes,
    refused,
    started,
    table,
)

NUMBERS = "\n".join(str(Random(0).random()) for _ in range(2000)).encode()
TEXT = "To be, or not to be\n\nthat is the question: be\nis it größe GRÖSSE\n" * 5


def counted(text: str) -> Counter[str]:
    return Counter(word for word in re.split(r"\W+", text.lower()) if word)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text(TEXT)
    return path


@pytest.mark.lengthy
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_words_are_counted_after_each_epoch(text: Path, tmp_path: Path, workers: int, size: int) -> None:
    changes, answer = tmp_path / "changes", tmp_path / "answer.csv"
    given = text, "--lines", str(size), "--changes", changes, "--csv", answer, "--check"
    answered("wordcount", *given, workers=workers)
    lines = TEXT.splitlines()
    for epoch, found in epochs(changes).items():
        assert found == as_text(counted("\n".join(lines[: (epoch + 1) * size])).items())
    assert dict(table(answer)) == {word: str(number) for word, number in counted(TEXT).items()}


@pytest.mark.lengthy
def test_the_most_frequent_words_are_printed(text: Path) -> None:
    output = answered("wordcount", text, "--top", "2")
    assert output == "      15  be\n      10  is\n75 words, 11 of them distinct, in 20 lines\n"


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["text", "-"])
def test_two_processes_count_a_file_or_standard_input(text: Path, name: str) -> None:
    ended = on_two_processes("wordcount", "-" if name == "-" else text, "--csv", "-", "--check", input=TEXT)
    assert ended.status == 0, ended.error
    found = dict(re.findall(r'"(\w+)",(\d+)', ended.output))
    assert found == {word: str(number) for word, number in counted(TEXT).items()}


@pytest.mark.lengthy
def test_compressed_files_are_counted_together(text: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "text.gz").write_bytes(gzip.compress(TEXT.encode()))
    with pyarrow.output_stream(str(tmp_path / "text.zst"), compression="zstd") as file:
        file.write(TEXT.encode())
    answer = tmp_path / "answer.csv"
    answered("wordcount", text, tmp_path / "text.gz", tmp_path / "text.zst", "--csv", answer, workers=2)
    assert dict(table(answer)) == {word: str(3 * number) for word, number in counted(TEXT).items()}


@pytest.mark.lengthy
def test_an_empty_text_has_no_words(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert answered("wordcount", tmp_path / "empty") == "0 words, 0 of them distinct, in 0 lines\n"


def test_a_table_without_words_has_the_types_of_one_with_words(tmp_path: Path) -> None:
    schemas = []
    for words in ("", "to be"):
        text, words_of = tmp_path / "text.txt", tmp_path / "words.parquet"
        text.write_text(words)
        answered("wordcount", text, "--quiet", "--parquet", words_of)
        schemas.append(parquet.read_schema(words_of))
    assert schemas[0] == schemas[1]


@pytest.mark.lengthy
def test_a_file_is_followed_as_it_grows(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    changes, answer = tmp_path / "changes", tmp_path / "answer.csv"
    answer.write_text("from before")
    with started("wordcount", text, "--follow", "--changes", changes, "--csv", answer, "--check") as process:
        whole = TEXT
        for more in ("", "to be\n", "entirely new\nwords"):
            with open(text, "a") as file:
                file.write(more)
            whole += more
            complete = whole[: whole.rindex("\n") + 1]  # a line without an end may still grow
            end = clock.monotonic() + SECONDS
            while (
                not changes.exists()
                or (found := epochs(changes)) == {}
                or (found[max(found)] != as_text(counted(complete).items()))
            ):
                assert process.poll() is None, process.communicate()
                assert clock.monotonic() < end, changes.read_text()
                clock.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=SECONDS)
        assert (process.returncode, error) == (INTERRUPTED, "")
    with answer.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["word", "occurrences"]
    assert {word: int(count) for word, count in rows} == counted(complete)


@pytest.mark.lengthy
def test_a_pipe_is_followed_to_its_end() -> None:
    pytest.importorskip("pyarrow")
    ended = apart("wordcount", "-", "--follow", "--check", "--top", "1", input="a b\na\n")
    assert ended.status == 0, ended.error
    assert ended.output.splitlines()[-3:-1] == ["       2  a", "3 words, 2 of them distinct, in 2 lines"]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"words\n\n\xff\xfe words\n", ", line 3: not UTF-8 text"),
        (
            gzip.compress(NUMBERS)[:-40],
            " is a damaged gzip file: it ends in the middle of the compressed data; copy the file again",
        ),
        (b"\x1f\x8b\x08\x00 this is not gzip", " is a damaged gzip file: "),
    ],
)
def test_a_damaged_text_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    assert refused("wordcount", path).startswith(f"wordcount: {path}{message}")


@pytest.mark.lengthy
def test_damaged_zstd_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "text"
    path.write_bytes(b"\x28\xb5\x2f\xfd this is not zstd")
    assert str(path) in refused("wordcount", path)


@pytest.mark.lengthy
def test_a_text_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert refused("wordcount", missing) == f"wordcount: cannot read {missing}: No such file or directory"
    assert refused("wordcount", tmp_path) == f"wordcount: cannot read {tmp_path}: Is a directory"
    pytest.importorskip("pyarrow")
    assert refused("wordcount", missing, "--follow").endswith("No such file or directory")
    assert refused("wordcount", tmp_path, "--follow").endswith("Is a directory")


@pytest.mark.lengthy
def test_a_pipe_is_read_by_one_of_several_workers(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_text, args=(TEXT,), daemon=True)
    writer.start()
    answer = tmp_path / "answer.csv"
    answered("wordcount", tmp_path / "pipe", "--csv", answer, "--check", workers=3)
    writer.join(SECONDS)
    assert dict(table(answer)) == {word: str(number) for word, number in counted(TEXT).items()}


@pytest.mark.lengthy
def test_the_picture_has_axes(text: Path, tmp_path: Path) -> None:
    picture = drawn("wordcount", tmp_path / "words.svg", text, "--lines", "3")
    assert picture.count('<g id="axes_') == 3
