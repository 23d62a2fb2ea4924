"""The head of a text shows separator, header and types; what is not a graph is refused with one clear line."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from differential.jobs.input import blocks
from differential.jobs.input.faults import Faults
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from tests.unit.jobs.input.reading import PLAIN, read, rows, with_faults
from timely.errors import DataError


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\t2\n3\t4\n", [(1, 2), (3, 4)]),
        ("1,2\n3, 4\n", [(1, 2), (3, 4)]),
        ("1;2\n3;4\n", [(1, 2), (3, 4)]),
        ("1 2\n3   4\n", [(1, 2), (3, 4)]),
        (" 1\t2\n 3 4\n", [(1, 2), (3, 4)]),
        ("1 2\t0.5\n3 4\t0.5\n", [(1, 2), (3, 4)]),
        ("from to\n1 2\n", [(1, 2)]),
        ("from to\n\n# 1\n3 4\n1 2\n", [(1, 2), (3, 4)]),
        ("# FromNodeId\tToNodeId\n1\t2\n", [(1, 2)]),
        ("Source,Target\na,b\n", [("a", "b")]),
        ("src dst\na b\nc d\n", [("a", "b"), ("c", "d")]),
        ("x,y,cost\na,b,1.5\nc,d,2\n", [("a", "b"), ("c", "d")]),
        ("x,y,NA\na,b,1.5\nc,d,2\n", [("a", "b"), ("c", "d"), ("x", "y")]),
        ("to from\na b\n", [("a", "b"), ("to", "from")]),
        ("from to\n", []),
        ('"from","to"\n1,2\n', [(1, 2)]),
        ("a b\tc\nd\te f\n", [("a b", "c"), ("d", "e f")]),
        ("a,b c\nd,e\n", [("a", "b c"), ("d", "e")]),
        ("a b\nc d\n", [("a", "b"), ("c", "d")]),
        ("7zip libc6\n0ad 0ad-data\n", [("0ad", "0ad-data"), ("7zip", "libc6")]),
        ('"a"\t"b\n', [('"a"', '"b')]),
        ("1 2", [(1, 2)]),
        ("1 2\r\n3 4\r\n", [(1, 2), (3, 4)]),
    ],
)
def test_forms(tmp_path: Path, text: str, expected: list[Any]) -> None:
    path = tmp_path / "graph"
    path.write_bytes(text.encode())
    assert read(path) == expected


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("text", "layout", "expected"),
    [
        ("a b\nc d\n", InputLayout(header=True), [("c", "d")]),
        ("a b\n1 2\n", InputLayout(header=False, names=True), [("1", "2"), ("a", "b")]),
        ("1 2\n3 4\n", InputLayout(names=True), [("1", "2"), ("3", "4")]),
        ("1 2\n3 4\n", InputLayout(header=True), [(3, 4)]),
        ("source,target\n", InputLayout(header=True), []),
        ("source,target,cost\n1,2,3\n", InputLayout(weight="cost"), [(1, 2, 3)]),
        ("x,y,cost\na,b,3\n", InputLayout(weight="cost"), [("a", "b", 3)]),
        ("9 1 2\n8 3 4\n", InputLayout(time="1"), [(1, 2, 9), (3, 4, 8)]),
        ("1 2 3\n3 4 0.5\n", InputLayout(weight="3"), [(1, 2, 3.0), (3, 4, 0.5)]),
        ("1|2\n3|4\n", InputLayout(separator="|"), [(1, 2), (3, 4)]),
        ("a b c\nd e f\n", InputLayout(separator="space"), [("a", "b"), ("d", "e")]),
    ],
)
def test_layouts(tmp_path: Path, text: str, layout: InputLayout, expected: list[Any]) -> None:
    path = tmp_path / "graph"
    path.write_text(text)
    assert read(path, layout) == expected


@pytest.mark.lengthy
def test_a_list_of_edges_as_collections_of_networks_have_them(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt.gz"
    path.write_bytes(gzip.compress(b"# undirected, 4 nodes, 3 edges\n0\t1\n1\t2\n1\t3\n"))
    assert read(path, peers=2) == [(0, 1), (1, 2), (1, 3)]


def refusal(path: Path | str, layout: InputLayout = PLAIN, peers: int = 1) -> str:
    with pytest.raises(DataError) as raised:
        rows(open_graph(str(path), layout, Faults()), peers)
    text = str(raised.value)
    assert "\n" not in text
    assert str(path) in text
    return text.replace(str(path), "FILE")


@pytest.mark.lengthy
def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == "cannot read FILE: No such file or directory"
    assert refusal(tmp_path) == "FILE is a directory, not a file"


@pytest.mark.lengthy
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text("1 2\n")
    path.chmod(0)
    assert refusal(path) == "cannot read FILE: Permission denied"


@pytest.mark.lengthy
def test_lines_in_the_head_that_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text("from to\n1\n2 3\n4 5\n")
    assert with_faults(path) == ([(2, 3), (4, 5)], {2: "has 1 column instead of 2"})
    path.write_text("x 1\n2 3\n4 5\n")
    assert with_faults(path) == ([(2, 3), (4, 5)], {1: "the source is not a 64-bit integer"})


@pytest.mark.lengthy
@pytest.mark.parametrize("separator", [None, "tab"])
@pytest.mark.parametrize(
    ("text", "layout", "expected", "bad"),
    [
        ("1\t2\n3\n", PLAIN, [(1, 2)], {2}),
        ("3\n1\t2\n", PLAIN, [(1, 2)], {1}),
        ("1\t2\n3\n4\n", PLAIN, [(1, 2)], {2, 3}),
        ("a\tb\nc\n", PLAIN, [("a", "b")], {2}),
        ("1\t2\t5\n3\t4\n", InputLayout(weight="3"), [(1, 2, 5)], {2}),
        ("1\t2\t5\n3\t4\n5\t6\n", InputLayout(time="3"), [(1, 2, 5)], {2, 3}),
    ],
)
def test_lines_with_too_few_columns_are_faults_beside_a_single_edge(
    tmp_path: Path, text: str, layout: InputLayout, expected: list[Any], bad: set[int], separator: str | None
) -> None:
    path = tmp_path / "graph"
    path.write_text(text)
    found, reasons = with_faults(path, layout._replace(separator=separator))
    assert found == expected
    assert set(reasons) == bad
    assert f"FILE, line {min(bad)}: has " in refusal(path, layout._replace(separator=separator))


@pytest.mark.lengthy
def test_a_separator_that_is_given_is_named_where_there_are_too_few_columns(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text("1 2\n3 4\n")
    expected = "FILE: an edge needs two columns, but there is only one column with the separator 'tab'"
    assert refusal(path, InputLayout(separator="tab")) == expected


@pytest.mark.lengthy
@pytest.mark.parametrize("peers", [1, 3])
def test_all_bytes_of_a_compressed_file_are_reported(
    tmp_path: Path, peers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1000)
    path = tmp_path / "graph"
    path.write_bytes(whole("gz") + gzip.compress(b""))
    assert len(read(path, peers=peers)) == 30_000


@pytest.mark.lengthy
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_does_not_end(tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1 << 16)
    monkeypatch.setattr(blocks, "MOST_LINE", 1 << 20)
    path = tmp_path / "graph"
    data = b"1 2\n" * 20_000 + bytes(3 << 20)
    path.write_bytes(gzip.compress(data) if packed else data)
    assert refusal(path).startswith("FILE has a line of more than 1 MiB")
    path.write_bytes(b"1 " * (1 << 24))
    assert refusal(path).startswith("FILE has no line end within")


def archived() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("graph"))
    return buffer.getvalue()


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("graph"), "1 2\n")
    return buffer.getvalue()


@pytest.mark.lengthy
@pytest.mark.parametrize("suffix", ["gz", "parquet", "arrow", "txt"])
def test_files_that_are_gone_when_they_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "graph"
    path.write_bytes(b"1 2\n" if suffix == "txt" else whole(suffix))
    graph = open_graph(str(path), PLAIN, Faults())
    path.unlink()
    with pytest.raises(DataError, match=f"^cannot read {path}: .*"):
        rows(graph)


@pytest.mark.lengthy
def test_a_text_that_becomes_shorter_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text("1 2\n" * 10)
    graph = open_graph(str(path), PLAIN, Faults())
    path.write_text("1 2\n" * 5)
    with pytest.raises(DataError, match="became shorter while it was read: 20 of 40 bytes"):
        rows(graph)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "FILE is empty; an empty graph has a header"),
        (gzip.compress(b"", mtime=0), "FILE is empty; an empty graph has a header"),
        (b"# nothing\n", "FILE has comments but no edges"),
        (b"1\n2\n", "FILE: an edge needs two columns, but there is only one column; `--separator` states what"),
        (
            b'{"source": "a", "target": "b"}\n',
            "FILE, line 1: is JSON, and edges are lines of two fields or more: convert",
        ),
        (b'[{"source": "a", "target": "b"},\n{}]', "FILE, line 1: is JSON, and edges are lines of two fields or more"),
        (b'ann,bob\n"bob","cem"\n', "FILE, line 2: has a field in quotes: '\"bob\"'. Remove the quotes"),
        (b'"a";"b"\n"ann";"bob"\n', "FILE, line 1: has a field in quotes: '\"a\"'. Remove the quotes"),
        (zipped(), "FILE is a zip archive; unpack it"),
        (archived(), "FILE is an archive of files (tar); unpack it"),
        (gzip.compress(archived(), mtime=0), "FILE is an archive of files (tar); unpack it"),
        (lzma.compress(b"1 2\n"), "FILE is compressed with xz; unpack it"),
        (gzip.compress(gzip.compress(b"1 2\n", mtime=0), mtime=0), "FILE is compressed twice"),
        ("1 2\n".encode("utf-16"), "FILE is text in UTF-16"),
        ("1 2\n".encode("utf-32"), "FILE is text in UTF-32"),
        (b"\x00\x01\x02", "FILE is neither text nor in one of the formats"),
    ],
)
def test_contents_that_are_no_graph(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "graph"
    path.write_bytes(data)
    assert refusal(path).startswith(expected)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (InputLayout(weight="4"), "FILE: the weight is to be in column 4, but there are 3 columns"),
        (InputLayout(weight="cost"), "FILE: no column is named 'cost'; the columns are 'a', 'b', 'c'"),
        (InputLayout(time="2", weight="3"), "FILE: an edge needs two columns besides the weight and the time"),
        (InputLayout(time="2", weight="2"), "FILE: column 2 cannot be both the weight and the time"),
    ],
)
def test_columns_that_are_not_there(tmp_path: Path, layout: InputLayout, expected: str) -> None:
    path = tmp_path / "graph"
    path.write_text("a b c\n1 2 3\n")
    assert refusal(path, layout._replace(header=True)).startswith(expected)


@pytest.mark.lengthy
def test_a_name_of_a_column_needs_a_header(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text("1 2 3\n")
    assert refusal(path, InputLayout(weight="cost")).startswith("FILE: no header names a column 'cost'")
    with pytest.raises(DataError, match="separator 'dash' is neither"):
        open_graph(str(path), InputLayout(separator="dash"), Faults())


def whole(suffix: str) -> bytes:
    """Return a file with 30,000 edges in some format."""
    edges = np.random.default_rng(0).integers(0, 10**9, (30_000, 2))
    table = pa.table({"a": edges[:, 0], "b": edges[:, 1]})
    text = "".join(f"{a} {b}\n" for a, b in edges.tolist()).encode()
    buffer: Any = io.BytesIO()
    if suffix == "gz":
        return gzip.compress(text)
    if suffix == "zst":
        return pa.compress(text, "zstd", asbytes=True)  # type: ignore[no-any-return]
    if suffix == "npy":
        np.save(buffer, edges)
    elif suffix == "parquet":
        pa.parquet.write_table(table, buffer)
    else:
        opened = pa.ipc.new_file if suffix == "arrow" else pa.ipc.new_stream
        with opened(buffer, table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
    return buffer.getvalue()  # type: ignore[no-any-return]


@pytest.mark.lengthy
@pytest.mark.parametrize("peers", [1, 2])
@pytest.mark.parametrize("suffix", ["gz", "zst", "npy", "parquet", "arrow", "arrows"])
@pytest.mark.parametrize("share", [0.4, 0.9, 0.9999])
def test_files_that_end_early_are_damaged(tmp_path: Path, suffix: str, share: float, peers: int) -> None:
    path = tmp_path / f"graph.{suffix}"
    data = whole(suffix)
    path.write_bytes(data)
    assert len(read(path, peers=peers)) == 30_000
    path.write_bytes(data[: int(len(data) * share)])
    assert "damaged" in refusal(path, peers=peers)


@pytest.mark.lengthy
def test_damage_inside_of_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "graph.gz"
    data = bytearray(whole("gz"))
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    assert refusal(path).startswith("FILE is a damaged gzip file: ")


@pytest.mark.lengthy
def test_damage_inside_of_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "graph.parquet"
    data = whole("parquet")
    path.write_bytes(data[:4] + bytes(3000) + data[3004:])
    assert refusal(path).startswith("FILE is a damaged Parquet file: ")


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((2, 5), np.int64), "FILE has the shape (2, 5), but edges have the shape (edges, 2 to 4)"),
        (np.zeros(4, np.int64), "FILE has the shape (4,), but edges have the shape (edges, 2 to 4)"),
        (np.array([["a", "b"]]), "FILE holds <U1, but nodes are integers in an array"),
        (np.array([[None, 1]]), "FILE is damaged, or holds Python objects"),
    ],
)
def test_arrays_of_something_else(tmp_path: Path, array: Any, expected: str) -> None:
    path = tmp_path / "graph.npy"
    np.save(path, array)
    assert refusal(path).startswith(expected)


@pytest.mark.lengthy
def test_tables_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "graph.parquet"
    pa.parquet.write_table(pa.table({"a": ["x"], "b": [True]}), path)
    assert refusal(path) == "FILE: column 'b' holds bool where there should be a name"
    pa.parquet.write_table(pa.table({"a": ["x"], "b": [1]}), path)
    assert read(path) == [("x", "1")]
    assert refusal(path, InputLayout(names=False)).endswith("a 64-bit integer; `--names` reads nodes as names")
    pa.parquet.write_table(pa.table({"a": [1], "b": [2], "c": ["long"]}), path)
    assert (
        refusal(path, InputLayout(weight="3")) == "FILE: column 'c' holds string where there should be a finite number"
    )
    pa.parquet.write_table(pa.table({"a": ["x"]}), path)
    assert refusal(path) == "FILE: an edge needs two columns, but there is only one column"


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["matrix array real general", "2 2", "1"], "FILE: a graph is a `matrix coordinate`"),
        (["matrix coordinate complex general", "1 1 0"], "FILE: the matrix is 'complex' and 'general'"),
        (["matrix coordinate real hermitian", "1 1 0"], "FILE: the matrix is 'real' and 'hermitian'"),
        (["matrix coordinate real general", "%", "1 1"], "FILE does not state rows, columns and entries in line 3"),
        (["matrix coordinate real general"], "FILE does not state rows, columns and entries"),
        (["matrix coordinate real general", "2 2 2", "1 1 5"], "FILE has 1 entries, but line 2 states 2"),
    ],
)
@pytest.mark.parametrize("peers", [1, 2])
def test_matrices_that_are_no_graph(tmp_path: Path, lines: list[str], expected: str, peers: int) -> None:
    path = tmp_path / "graph.mtx"
    path.write_text("%%MatrixMarket " + "".join(line + "\n" for line in lines))
    assert refusal(path, peers=peers).startswith(expected)


@pytest.mark.lengthy
def test_weights_of_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "graph.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n")
    assert refusal(path, InputLayout(weight="3")) == "FILE has no weights: it is a pattern matrix"


@pytest.mark.lengthy
def test_a_short_line_among_two_is_a_fault_and_not_the_form(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_bytes(b"1 2\n3\n4 5\n")
    with pytest.raises(DataError, match="line 2: has 1 column instead of 2: '3'"):
        rows(open_graph(str(path), InputLayout(), Faults("stop")))
