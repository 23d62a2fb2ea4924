"""Files of tables and of JSON lines with the same rows give the same rows and rejects, wherever a reader begins."""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from differential.session.sources import Reader, Source, Target, json_lines, tables as tables_of

MOST = (1 << 63) - 1
ROWS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, None, MOST]),
        st.sampled_from([Decimal("1.0000"), Decimal("1.2345"), Decimal("99.5000"), None]),
        st.sampled_from(["a", "", None, "\U0010ffffx"]),
    ),
    min_size=1,
    max_size=24,
)
NAMES = ("i", "x", "note")


def written(directory: str, rows: list[Any], group: int) -> tuple[Source, Source]:
    """Return sources of a Parquet file in groups of rows, and of JSON lines."""
    columns = zip(NAMES, map(list, zip(*rows)), (pa.int64(), pa.decimal128(8, 4), pa.string()))
    table = pa.table({name: pa.array(values, of) for name, values, of in columns})
    pq.write_table(table, Path(directory) / "t.parquet", row_group_size=group)
    lines = [json.dumps(dict(zip(NAMES, row)), default=str) + "\n" for row in rows]
    (Path(directory) / "t.jsonl").write_text("".join(lines))
    return tables_of(Path(directory) / "t.parquet"), json_lines(Path(directory) / "t.jsonl")


def taken(source: Source, target: Target, data: st.DataObject) -> tuple[list[Any], list[int]]:
    """Return the rows and the lines that are not rows, with readers that end anywhere; up to the first if it stops."""
    rows: list[Any] = []
    rejected: list[int] = []
    reader: Reader = source.open(target, None)
    while (batch := reader.poll()) is not None:
        for _, columns in batch.changes:
            rows += zip(*(column.tolist() for column in columns))
        rejected += [each.line for each in batch.rejected]
        if batch.rejected and target.stops:
            break
        if data.draw(st.booleans(), "restarts"):
            reader.close()
            reader = source.open(target, batch.position)
    reader.close()
    return rows, rejected


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_rows_of_a_table_are_those_of_json_lines(data: st.DataObject) -> None:
    rows = data.draw(ROWS, "rows")
    types = (data.draw(st.sampled_from(["int64", "int64?"])), "decimal(6, 2)", "text?")
    target = Target("t", NAMES, types, 1, False, data.draw(st.booleans(), "stops"))
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            import_module("differential.session.sources.tables"), "ROWS", data.draw(st.integers(1, 24), "block")
        )
        table, lines = written(directory, rows, data.draw(st.integers(1, 24), "group"))
        assert taken(table, target, data) == taken(lines, target, data)
