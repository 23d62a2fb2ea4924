"""Every format reads back the edges that were written, each once, for any number of workers."""

from __future__ import annotations

import bz2
import gzip
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, strategies as st

from differential.jobs.input import blocks, parse
from differential.jobs.input.faults import Faults
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from tests.unit.jobs.input.reading import read, rows

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20)
NAMES = st.text(
    st.characters(exclude_characters="\t\r\n ,;\x0b\x0c", exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1
).filter(lambda name: not name.startswith(("#", "%", "//", "\ufeff")) and not name.lstrip("+-").isdigit())
NAMES = NAMES.filter(
    lambda name: not (len(name) > 1 and name[0] == name[-1] == '"')
)  # which formats with commas refuse
WEIGHTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
PEERS = st.integers(1, 3)

Row = tuple[Any, ...]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut files into many blocks, and parse them with pyarrow at any size."""
    monkeypatch.setattr(blocks, "BLOCK", 50)
    monkeypatch.setattr(parse, "PIECE", 20)
    monkeypatch.setattr(parse, "SMALL", 0)


def text(found: Sequence[Row], separator: str = "\t") -> bytes:
    return "".join(separator.join(map(str, row)) + "\n" for row in found).encode()


def arrow(found: Sequence[Row]) -> Any:
    columns = [list(column) for column in zip(*found)]
    return pa.table({f"c{place}": column for place, column in enumerate(columns)})


def write_text(path: Path, found: Sequence[Row]) -> None:
    path.write_bytes(text(found))


def write_gzip(path: Path, found: Sequence[Row]) -> None:
    data = text(found, ",")
    half = len(data) // 2
    path.write_bytes(gzip.compress(data[:half]) + gzip.compress(data[half:]))


def write_zstd(path: Path, found: Sequence[Row]) -> None:
    path.write_bytes(pa.compress(text(found, " "), "zstd", asbytes=True))


def write_bzip2(path: Path, found: Sequence[Row]) -> None:
    path.write_bytes(bz2.compress(text(found, ";")))


def write_parquet(path: Path, found: Sequence[Row]) -> None:
    pa.parquet.write_table(arrow(found), path, row_group_size=5)


def write_ipc(path: Path, found: Sequence[Row]) -> None:
    table = arrow(found)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def write_ipc_stream(path: Path, found: Sequence[Row]) -> None:
    table = arrow(found)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def write_npy(path: Path, found: Sequence[Row]) -> None:
    with path.open("wb") as file:
        np.save(file, np.array(found, np.int64))


TEXTS = [write_text, write_gzip, write_zstd, write_bzip2]
TABLES = [write_parquet, write_ipc, write_ipc_stream]
Writer = Callable[[Path, Sequence[Row]], None]


def written(write: Writer, found: Sequence[Row], layout: InputLayout, peers: int) -> list[Row]:
    """Return what is read of a file after `write` has written it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph"
        write(path, found)
        return read(path, layout, peers)


@pytest.mark.parametrize("write", [*TEXTS, *TABLES, write_npy])
@given(found=st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1), peers=PEERS)
def test_integers(write: Writer, found: list[Row], peers: int) -> None:
    assert written(write, found, InputLayout(), peers) == sorted(found)


@pytest.mark.lengthy
@pytest.mark.parametrize("write", [*TEXTS, *TABLES, write_npy])
@given(found=st.lists(st.tuples(INTEGERS, INTEGERS, INTEGERS, WEIGHTS), min_size=1), peers=PEERS)
def test_weights_and_times(write: Writer, found: list[Row], peers: int) -> None:
    expected = sorted((source, target, weight, time) for time, source, target, weight in found)
    assert written(write, found, InputLayout(weight="4", time="1"), peers) == expected


@pytest.mark.lengthy
@pytest.mark.parametrize("write", [*TEXTS, *TABLES])
@given(found=st.lists(st.tuples(INTEGERS, INTEGERS, FLOATS), min_size=1), peers=PEERS)
def test_weights_that_are_fractions(write: Writer, found: list[Row], peers: int) -> None:
    assert written(write, found, InputLayout(weight="3:float"), peers) == sorted(found)


@pytest.mark.lengthy
@pytest.mark.parametrize("write", [*TEXTS, *TABLES])
@given(found=st.lists(st.tuples(NAMES, NAMES), min_size=1), peers=PEERS)
def test_names(write: Writer, found: list[Row], peers: int) -> None:
    assert written(
        write, found, InputLayout(names=True, header=False, separator=SEPARATORS.get(write)), peers
    ) == sorted(found)


SEPARATORS: dict[Any, str] = {write_text: "tab", write_gzip: "comma", write_zstd: "space", write_bzip2: "semicolon"}


@given(found=st.lists(st.tuples(NAMES, NAMES), min_size=1))
def test_codes_of_names_are_in_the_order_of_names(found: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph"
        write_text(path, found)
        graph = open_graph(str(path), InputLayout(names=True, header=False, separator="tab"), Faults())
        assert graph.names is not None
        assert list(graph.share(1, 2)) == []
        assert len(rows(graph)) == len(found)
        distinct = sorted({name for row in found for name in row})
        assert graph.names.text(range(len(graph.names))) == distinct
        assert [graph.names.number_of(name) for name in distinct] == list(range(len(distinct)))


PIECES = st.sampled_from(
    [
        "\n",
        "  \n",
        "# 1\t2\n",
        "\t% x\n",
        "//\n",
        " # \u00e9\n",
        "\t \n",
        "1 2\n",
        " 3\t 4\n",
        "5\t \t6 \n",
        "-7 +8\r\n",
        "007 9\n",
    ]
)
LINES: dict[str, Row] = {
    "1 2": (1, 2),
    "3\t 4": (3, 4),
    "5\t \t6": (5, 6),
    "-7 +8": (-7, 8),
    "007 9": (7, 9),
}


@given(pieces=st.lists(PIECES), ends=st.booleans(), peers=PEERS, mark=st.booleans())
def test_blanks_comments_and_line_ends(pieces: list[str], ends: bool, peers: int, mark: bool) -> None:
    whole = "1 2\n" + "".join(pieces)
    whole = whole if ends else whole.removesuffix("\n")
    expected = sorted(LINES[line.strip()] for line in whole.split("\n") if line.strip() in LINES)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph"
        path.write_bytes((b"\xef\xbb\xbf" if mark else b"") + whole.encode())
        assert read(path, peers=peers) == expected


@pytest.mark.lengthy
@pytest.mark.parametrize("field", ["pattern", "integer", "real"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@given(data=st.data(), peers=PEERS)
def test_matrices(field: str, symmetry: str, data: st.DataObject, peers: int) -> None:
    ends = st.tuples(st.integers(1, 9), st.integers(1, 9))
    found = data.draw(st.dictionaries(ends.map(lambda each: tuple(sorted(each, reverse=True))), st.integers(-5, 5)))
    lines = [f"{row} {column}" + ("" if field == "pattern" else f" {value}") for (row, column), value in found.items()]
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% made\n9 9 {len(found)}\n"
    expected = list(found.items())
    if symmetry == "symmetric":
        expected += [((column, row), value) for (row, column), value in found.items() if row != column]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph.mtx"
        path.write_text(head + "".join(line + "\n" for line in lines))
        assert read(path, peers=peers) == sorted(edge for edge, _ in expected)
        if field != "pattern":
            kind = float if field == "real" else int
            weighted = sorted((*edge, kind(value)) for edge, value in expected)
            assert read(path, InputLayout(weight="3"), peers) == weighted


@pytest.mark.parametrize("names", [["x", "a", "b", "w"], ["x", "a", "a", "w"], ["x.y", "a", "b", "w"]])
@pytest.mark.parametrize("write", TABLES)
def test_only_the_columns_of_an_edge_are_read(tmp_path: Path, write: Writer, names: list[str]) -> None:
    path = tmp_path / "graph"
    columns = [[1, 2], [3, 4], [5, 6], [0.5, 1.5]]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.unit.jobs.input.test_round_trips.arrow", lambda _: table)
        write(path, [])
    assert read(path, InputLayout(weight="w", time="1"), 2) == [(3, 5, 0.5, 1), (4, 6, 1.5, 2)]
