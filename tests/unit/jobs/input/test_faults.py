"""Lines that cannot be read are found with their numbers, in any block, and treated as the policy asks."""

from __future__ import annotations

import gzip
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, strategies as st

from differential.jobs.input import blocks, parse
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from tests.unit.jobs.input.reading import PLAIN, rows, with_faults
from timely.errors import BuildError, DataError

GOOD = {b"1\t2": (1, 2), b" 3\t4 ": (3, 4), b"-5\t6\r": (-5, 6), b"7\t9223372036854775807": (7, 2**63 - 1)}
IGNORED = [b"", b"  ", b"# 1\t2", b"\t% \xff", b"//", b"#\r"]
BAD = {
    b"1": "has 1 column instead of 2",
    b"1\t2\t3": "has 3 columns instead of 2",
    b"1 2": "has 1 column instead of 2",
    b"x\t2": "the source is not a 64-bit integer",
    b"1\t2.0": "the target is not a 64-bit integer",
    b"1\t0x10": "the target is not a 64-bit integer",
    b"1\t1_0": "the target is not a 64-bit integer",
    b"1\t1e3": "the target is not a 64-bit integer",
    b"1\t\xd9\xa3": "the target is not a 64-bit integer",
    b"\xff\t2": "the source is not a 64-bit integer",
    b"1\t": "the target is empty",
    b"\t1": "the source is empty",
    b"1\t9223372036854775808": "the target does not fit into 64 bits",
    b"-9223372036854775809\t1": "the source does not fit into 64 bits",
    b"1\t2\r3\t4": "has a carriage return before its end",
    b"1\t2 # 3": "the target is not a 64-bit integer",
    b"1\t" + b"9" * 5000: "the target does not fit into 64 bits",
}
LINE = st.sampled_from([*GOOD, *GOOD, *IGNORED, *BAD])


@given(found=st.lists(LINE), peers=st.integers(1, 3), size=st.sampled_from([20, 200, 5000]), packed=st.booleans())
def test_every_line_is_a_row_or_a_fault_or_neither(found: list[bytes], peers: int, size: int, packed: bool) -> None:
    lines = [*[b"1\t2"] * 30, *found]  # the head decides that lines have two integers
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", size)
        patch.setattr(parse, "PIECE", size // 4)
        patch.setattr(parse, "SMALL", 0)
        path = Path(directory) / "graph"
        data = b"\n".join(lines)
        path.write_bytes(gzip.compress(data) if packed else data)
        read, reasons = with_faults(path, InputLayout(separator="tab", names=False, header=False), peers)
    assert read == sorted(GOOD[line] for line in lines if line in GOOD)
    assert reasons == {number: BAD[line] for number, line in enumerate(lines, 1) if line in BAD}


def test_a_line_without_an_end_that_is_larger_than_all_pieces(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_bytes(b"1\t2\n" * 40_000 + b"x" * 300_000 + b"\n3\t4\n")
    found, reasons = with_faults(path, peers=2)
    assert found[-1] == (3, 4)
    assert reasons == {40_001: "has 1 column instead of 2"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"a\t", "the target is empty"),
        (b"a\tb\tc", "has 3 columns instead of 2"),
        (b"a\tcaf\xe9", "the target is not UTF-8"),
        (b"a\tb\rc", "has a carriage return before its end"),
    ],
)
@pytest.mark.parametrize("count", [3, 2000])
def test_faults_among_names(tmp_path: Path, line: bytes, reason: str, count: int) -> None:
    path = tmp_path / "graph"
    path.write_bytes(b"\xc3\xa9t\xc3\xa9\tname with blanks\n" * count + line + b"\nx\ty\n")
    found, reasons = with_faults(path)
    assert found == sorted([("été", "name with blanks")] * count + [("x", "y")])
    assert reasons == {count + 1: reason}


@pytest.mark.parametrize("count", [3, 2000])
@pytest.mark.parametrize(
    ("weight", "line", "reason"),
    [
        ("3:integer", b"1 2 0.5", "the weight is not a 64-bit integer"),
        ("3:float", b"1 2 nan", "the weight is not a finite number"),
        ("3:float", b"1 2 inf", "the weight is not a finite number"),
        ("3:float", b"1 2 1e999", "the weight is not a finite number"),
        ("3", b"1 2", "has 2 columns instead of 3"),
    ],
)
def test_faults_among_weights(tmp_path: Path, count: int, weight: str, line: bytes, reason: str) -> None:
    path = tmp_path / "graph"
    path.write_bytes(b"1 2 3\n" * count + line + b"\n4 5 6\n")
    found, reasons = with_faults(path, InputLayout(weight=weight))
    assert found == [(1, 2, 3)] * count + [(4, 5, 6)]
    assert reasons == {count + 1: reason}


def test_a_fraction_after_a_head_without_any(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text("1 2 3\n" * 20_000 + "4 5 0.5\n")
    with pytest.raises(DataError, match=r"line 20001: the weight is not a 64-bit integer.*`--weight 3:float` reads"):
        rows(open_graph(str(path), InputLayout(weight="3"), Faults()))
    assert len(with_faults(path, InputLayout(weight="3:float"))[0]) == 20_001


@pytest.mark.parametrize("peers", [1, 2])
def test_entries_outside_of_a_matrix(tmp_path: Path, peers: int) -> None:
    path = tmp_path / "graph.mtx"
    entries = ["1 1", "4 1", "1 5", "0 1", "3 4"] * 200
    path.write_text("\n".join(["%%MatrixMarket matrix coordinate pattern general", "3 4 1000", *entries]))
    found, reasons = with_faults(path, peers=peers)
    assert found == [(1, 1)] * 200 + [(3, 4)] * 200
    assert len(reasons) == 600
    assert [reasons[line] for line in (4, 5, 6)] == [
        "the source 4 is not from 1 to 3",
        "the target 5 is not from 1 to 4",
        "the source 0 is not from 1 to 3",
    ]


def test_rows_of_a_table_without_nodes(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    table = pa.table({"a": [1.0, None, 2.5, 1e30, 3.0], "b": pa.array([1, 2, 3, 4, 2**63], pa.uint64())})
    pa.parquet.write_table(table, path)
    found, reasons = with_faults(path)
    assert found == [(1, 1)]
    assert reasons == {
        2: "the source is missing",
        3: "the source is not a 64-bit integer",
        4: "the source is not a 64-bit integer",
        5: "the target is not a 64-bit integer",
    }


def test_rows_of_a_table_without_names(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    pa.parquet.write_table(pa.table({"a": ["x", None, ""], "b": ["y", "z", "w"], "w": [1.0, 2.0, 3.0]}), path)
    found, reasons = with_faults(path, InputLayout(weight="w"))
    assert found == [("x", "y", 1.0)]
    assert reasons == {2: "the source is missing", 3: "the source is not a name"}


def test_rows_of_an_array_that_are_no_edges(tmp_path: Path) -> None:
    path = tmp_path / "graph.npy"
    np.save(path, np.array([[1, 2], [1.5, 2], [np.nan, 1], [3, 1e300], [3, 4]]))
    found, reasons = with_faults(path, peers=2)
    assert found == [(1, 2), (3, 4)]
    assert reasons == {
        2: "the source is not a 64-bit integer",
        3: "the source is not a 64-bit integer",
        4: "the target is not a 64-bit integer",
    }


def test_weights_of_an_array_are_of_its_type_or_the_stated_one(tmp_path: Path) -> None:
    path = tmp_path / "graph.npy"
    for dtype in (np.float16, np.float32, ">f8", ">i4", np.uint64):
        np.save(path, np.array([[1, 2, 3], [4, 5, 6]], dtype))
        kind = float if np.dtype(dtype).kind == "f" else int
        assert with_faults(path, InputLayout(weight="3")) == ([(1, 2, 3), (4, 5, 6)], {})
        assert {type(weight) for _, _, weight in with_faults(path, InputLayout(weight="3"))[0]} == {kind}
        assert {type(row[2]) for row in with_faults(path, InputLayout(weight="3:float"))[0]} == {float}
    np.save(path, np.array([[1, 2, 3], [1 << 63, 5, 6]], np.uint64))
    assert with_faults(path) == ([(1, 2)], {2: "the source is not a 64-bit integer"})
    np.save(path, np.array([[1, 2, np.inf], [1, 2, 0.5]]))
    assert with_faults(path, InputLayout(weight="3")) == ([(1, 2, 0.5)], {1: "the weight is not a finite number"})


@pytest.mark.lengthy
def test_workers_that_are_threads_read_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_text("".join(f"{line} {line + 1}\n" if line % 1000 else "x y\n" for line in range(1, 300_001)))
    faults = Faults("report")
    graph = open_graph(str(path), PLAIN, faults)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda index: [edges.source for edges in graph.share(index, 4)], range(4)))
    lines = np.sort(np.concatenate([source for share in found for source in share]))
    assert lines.tolist() == [line for line in range(1, 300_001) if line % 1000]
    assert sorted(fault.line for fault in faults.take()) == list(range(1000, 300_001, 1000))


def test_the_first_fault_stops_the_run_and_names_line_text_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "graph.tsv"
    path.write_text("# edges\n1\t2\n3\t4\n5\tx\n")
    with pytest.raises(DataError) as raised:
        rows(open_graph(str(path), PLAIN, Faults()))
    assert str(raised.value) == (
        f"{path}, line 4: the target is not a 64-bit integer: '5\\tx'. `--names` reads nodes as names. "
        "`--on-error skip` leaves out such lines"
    )


def test_skipped_faults_are_counted_and_reported_ones_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "graph.tsv"
    path.write_text("1\t2\n3\t4\n5\n")
    skipped, reported = Faults("skip"), Faults("report")
    for faults in (skipped, reported):
        assert rows(open_graph(str(path), PLAIN, faults)) == [(1, 2), (3, 4)]
        assert faults.count == 1
    assert skipped.take() == []
    remedy = "`--separator` states what is between columns"
    assert reported.take() == [Fault(str(path), 3, "5", "has 1 column instead of 2", remedy)]
    assert reported.take() == []


def test_long_lines_are_cut_in_errors() -> None:
    assert len(str(Fault("file", 1, "x" * 10_000, "is long"))) < 200


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(BuildError, match="one of stop, skip, report, not 'drop'"):
        Faults("drop")  # type: ignore[arg-type]
