"""Changes are grouped by epoch, in order, and each row is a change or a fault."""

from __future__ import annotations

import gzip
import itertools
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, strategies as st

from differential.jobs.input import blocks, parse
from differential.jobs.input.changes import EpochChange, OpenedChanges
from differential.jobs.input.faults import Faults, Policy
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from differential.jobs.input.names import Names
from differential.jobs.input.open_changes import open_changes
from tests.unit.jobs.input.reading import PLAIN
from timely.errors import DataError

DEBIAN = Path(__file__).resolve().parents[4] / "examples" / "data"


def plain(change: EpochChange | None, names: Names | None = None) -> tuple[Any, ...]:
    """Return a change as epoch, line and rows."""
    assert change is not None
    source, target, weight = change.source.tolist(), change.target.tolist(), change.weight
    if names is not None:
        source, target = names.text(source), names.text(target)
    weights = [] if weight is None else [weight.tolist()]
    return change.epoch, change.line, list(zip(change.diff.tolist(), source, target, *weights))


def read(changes: OpenedChanges, names: Names | None = None) -> list[tuple[Any, ...]]:
    return [plain(each, names) for each in changes.epochs()]


def of(path: Path, layout: InputLayout = PLAIN, names: Names | None = None, **more: Any) -> list[tuple[Any, ...]]:
    return read(open_changes(str(path), names, layout, Faults(), **more), names)


NODES = st.sampled_from(["a", "b", "c d", "é", "100", "0x1f", "zz"])
ROW = st.tuples(st.integers(-3, 9), st.sampled_from("+-"), NODES, NODES)


@given(
    found=st.lists(ROW),
    has_epochs=st.booleans(),
    size=st.sampled_from([20, 100, 10_000]),
    small=st.sampled_from([0, 1000]),
    comments=st.booleans(),
)
def test_rows_of_an_epoch_are_a_change(
    found: list[tuple[int, str, str, str]], has_epochs: bool, size: int, small: int, comments: bool
) -> None:
    if has_epochs:
        found.sort(key=lambda row: row[0])
    lines = ["\t".join(map(str, row if has_epochs else row[1:])) for row in found]
    if comments:
        lines = [part for line in lines for part in ("# +\ta\tb", line, "")]
    numbers = [number for number, line in enumerate(lines, 1) if line and not line.startswith("#")]
    expected = []
    if has_epochs:
        for epoch, group in itertools.groupby(zip(numbers, found), key=lambda each: each[1][0]):
            rows = list(group)
            expected.append((epoch, rows[0][0], [(int(row[1] + "1"), *row[2:]) for _, row in rows]))
    else:
        for ordinal, (number, row) in enumerate(zip(numbers, found), 1):
            expected.append((ordinal, number, [(int(row[1] + "1"), *row[2:])]))
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", size)
        patch.setattr(parse, "SMALL", small)
        path = Path(directory) / "changes"
        path.write_text("\n".join(lines))
        names = Names()
        names.begin(pa.array(["b", "a", "z"]))
        assert of(path, InputLayout(separator="tab"), names) == expected
        firsts = list(dict.fromkeys(name for row in found for name in row[2:]))
        assert names.text(range(3, len(names))) == [name for name in firsts if name not in ("a", "b", "z")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+ 1 2\n- 3 4\n", [(1, 1, [(1, 1, 2)]), (2, 2, [(-1, 3, 4)])]),
        ("5\t+\t1\t2\n5\t-\t3\t4\n7\t+\t1\t1\n", [(5, 1, [(1, 1, 2), (-1, 3, 4)]), (7, 3, [(1, 1, 1)])]),
        ("# c\n\n+,1,2\n", [(1, 3, [(1, 1, 2)])]),
        ("-  1\t 2\r\n", [(1, 1, [(-1, 1, 2)])]),
        ("step,sign,source,target\n3,+,1,2\n", [(3, 2, [(1, 1, 2)])]),
        ("+ 1 2 7\n", [(1, 1, [(1, 1, 2)])]),
        ("", []),
        ("# nothing\n", []),
    ],
)
def test_forms(tmp_path: Path, text: str, expected: list[Any]) -> None:
    path = tmp_path / "changes"
    path.write_bytes(text.encode())
    assert of(path) == expected
    path.write_bytes(gzip.compress(text.encode()))
    assert of(path) == expected


def test_layouts_of_graphs_with_other_separators_and_headers(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("+ 1 2\n- 1 2\n")
    assert of(path, InputLayout(separator="comma", header=True)) == [(1, 1, [(1, 1, 2)]), (2, 2, [(-1, 1, 2)])]
    path.write_text("* 1 2\n- 1 2\n")
    with pytest.raises(DataError, match=r"line 1: the sign is not \+ or -"):
        of(path, InputLayout(header=True))


def test_weights(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("+ 1 2 7\n- 1 2 8\n")
    assert of(path, InputLayout(weight="3")) == [(1, 1, [(1, 1, 2, 7)]), (2, 2, [(-1, 1, 2, 8)])]
    (change, _) = open_changes(str(path), None, InputLayout(weight="3"), Faults(), weight="float").epochs()
    assert change is not None
    assert change.weight is not None
    assert change.weight.dtype.kind == "f"
    path.write_text("epoch sign a b cost x\n1 + 1 2 9 8\n")
    assert of(path, InputLayout(weight="x")) == [(1, 2, [(1, 1, 2, 8)])]
    path.write_text("+ 1 2\n")
    with pytest.raises(DataError, match=r"has no weights, but the edges do: a change is a line \[EPOCH\]"):
        of(path, InputLayout(weight="3"))


@pytest.mark.lengthy
def test_the_upgrade_of_a_distribution(tmp_path: Path) -> None:
    faults = Faults()
    graph = open_graph(str(DEBIAN / "debian-bookworm.tsv.gz"), PLAIN, faults)
    assert graph.names is not None
    edges = {
        (source, target)
        for batch in graph.share(0, 1)
        for source, target in zip(graph.names.text(batch.source), graph.names.text(batch.target))
    }
    with gzip.open(DEBIAN / "debian-bookworm.tsv.gz", "rt") as file:
        assert edges == {tuple(line.rstrip("\n").split("\t")) for line in file}
    assert len(graph.names) == 59_454
    steps = list(open_changes(str(DEBIAN / "debian-to-trixie.tsv.gz"), graph.names, PLAIN, faults).epochs())
    assert [each.epoch for each in steps if each is not None] == list(range(1, 19_522))
    assert len(graph.names) == 72_957
    found = [
        (str(epoch), "+" if diff > 0 else "-", source, target)
        for epoch, _, rows in (plain(each, graph.names) for each in steps)
        for diff, source, target in rows
    ]
    with gzip.open(DEBIAN / "debian-to-trixie.tsv.gz", "rt") as file:
        assert found == [tuple(line.rstrip("\n").split("\t")) for line in file]


BAD = {
    "1 + 2": "has 3 columns instead of 4",
    "1 * 2 3": "the sign is not + or -",
    "1 + x 3": "the source is not a 64-bit integer",
    "x + 1 3": "the epoch is not a 64-bit integer",
    "0 + 1 3": "the epoch 0 is less than one before it",
}


@pytest.mark.parametrize("small", [0, 10_000])
@pytest.mark.parametrize("count", [2, 3000])
def test_faults_have_line_numbers(tmp_path: Path, count: int, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "SMALL", small)
    path = tmp_path / "changes"
    path.write_text("1 + 2 3\n# comment\n" * count + "\n".join(BAD) + "\n2 - 2 3\n")
    faults = Faults("report")
    found = read(open_changes(str(path), None, PLAIN, faults))
    assert found == [(1, 1, [(1, 2, 3)] * count), (2, 2 * count + 6, [(-1, 2, 3)])]
    assert {fault.line: (fault.text, fault.reason) for fault in faults.take()} == {
        2 * count + place: bad for place, bad in enumerate(BAD.items(), 1)
    }


def test_epochs_that_decrease_stop_the_run(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("5 + 1 2\n4 + 1 2\n")
    with pytest.raises(
        DataError, match=r"line 2: the epoch 4 is less than one before it: '4 \+ 1 2'. Sort the changes"
    ):
        of(path)


def test_a_text_that_has_no_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    path.write_text("# edges\n1 2\n3 4\n")
    with pytest.raises(DataError, match=r"line 2: a change is a line \[EPOCH\] \+\|- SOURCE TARGET \[WEIGHT\].*'1 2'"):
        of(path)


@pytest.mark.parametrize("policy", ["skip", "report"])
@pytest.mark.parametrize("good", ["", "+ 5 6\n"])
def test_lines_before_any_change_are_faults(
    tmp_path: Path, good: str, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("BLOCK", "LEAST_HEAD", "MOST_HEAD"):
        monkeypatch.setattr(blocks, each, 16)
    path = tmp_path / "changes"
    path.write_text("1 * 3 4\n2 * 3 4\n3 * 3 4\n4 * 3 4\n" + good)
    faults = Faults(policy)
    found = read(open_changes(str(path), None, PLAIN, faults))
    assert found == ([(1, 5, [(1, 5, 6)])] if good else [])
    assert faults.count == 4
    kept = [(fault.line, fault.text) for fault in faults.take()]
    assert kept == ([] if policy == "skip" else [(each, f"{each} * 3 4") for each in (1, 2, 3, 4)])


@pytest.mark.parametrize("good", [0, 1])
def test_changes_without_a_weight_are_faults(tmp_path: Path, good: int) -> None:
    path = tmp_path / "changes"
    path.write_text("+ 1 2\n+ 2 3\n" + "+ 3 4 7\n" * good)
    faults = Faults("report")
    assert read(open_changes(str(path), None, InputLayout(weight="3"), faults)) == [(1, 3, [(1, 3, 4, 7)])] * good
    assert [fault.line for fault in faults.take()] == [1, 2]
    with pytest.raises(DataError, match="has no weights" if not good else "line 1: has 3 columns instead of 4"):
        of(path, InputLayout(weight="3"))


@pytest.mark.parametrize("data", [b"\0\1\n", "+ 1 2\n".encode("utf-16")])
def test_a_file_that_is_no_text_is_refused_even_if_faults_are_skipped(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "changes"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"is neither text nor|is text in UTF-16"):
        open_changes(str(path), None, PLAIN, Faults("skip"))


@pytest.mark.parametrize("format", ["parquet", "ipc", "stream"])
def test_changes_in_tables(tmp_path: Path, format: str) -> None:
    path = tmp_path / "changes"
    tables = [
        pa.table({"step": [1, 1, 4], "sign": ["+", "-", "+"], "a": ["x", "y", "x"], "b": ["y", "x", "x"]}),
        pa.table({"a": ["x", "y", "x"], "b": ["y", "x", "x"], "diff": [1, -1, 1], "epoch": [1, 1, 4]}),
        pa.table(
            {"a": ["x", "y", "x"], "at": [1, 1, 4], "b": ["y", "x", "x"], "diff": pa.array([1, -1, 1], pa.int8())}
        ),
    ]
    for table, time in zip(tables, (None, None, "at")):
        write(path, table, format)
        names = Names()
        expected = [(1, 1, [(1, "x", "y"), (-1, "y", "x")]), (4, 3, [(1, "x", "x")])]
        assert of(path, InputLayout(time=time), names) == expected
        assert names.text([0, 1]) == ["x", "y"]


def write(path: Path, table: Any, format: str) -> None:
    if format == "parquet":
        pa.parquet.write_table(table, path)
        return
    opened = pa.ipc.new_file if format == "ipc" else pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as file, opened(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def test_faults_in_tables(tmp_path: Path) -> None:
    path = tmp_path / "changes"
    columns = {
        "sign": ["+", "*", None, "+"],
        "epoch": [2, 2, 2, 1],
        "a": [1, 2, 3, 4],
        "b": [1, 2, 3, 4],
        "w": [1, 2, 3, 4],
    }
    write(path, pa.table(columns), "parquet")
    faults = Faults("report")
    found = read(open_changes(str(path), None, InputLayout(weight="w"), faults))
    assert found == [(2, 1, [(1, 1, 1, 1)])]
    assert {fault.line: fault.reason for fault in faults.take()} == {
        2: "the sign is not + or -, or 1 or -1",
        3: "the sign is missing",
        4: "the epoch 1 is less than one before it",
    }


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"a": [1], "b": [2]}, "no column is named 'sign' or 'diff' or 'op' or 'change'"),
        ({"a": [1], "sign": ["+"]}, "a change needs a source and a target"),
        ({"a": ["x"], "b": ["y"], "sign": ["+"]}, "column 'a' holds string where there should be a 64-bit integer"),
    ],
)
def test_tables_that_have_no_changes(tmp_path: Path, columns: dict[str, Any], reason: str) -> None:
    path = tmp_path / "changes"
    write(path, pa.table(columns), "parquet")
    with pytest.raises(DataError, match=reason):
        of(path)
