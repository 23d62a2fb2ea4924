"""Rows of Parquet and Arrow files that have no place in the table: each is rejected, and no other row is."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from differential import Session
from differential.session.sources import json_lines, tables
from timely.errors import SessionError
from timely.lowlevel import typed

MOST = (1 << 63) - 1
"""Stands for a null where a column of whole numbers may have one."""
CENTS = typed([], "decimal(18, 2)")
PRICES = [Decimal("1.0000"), Decimal("1.2345"), Decimal("2.5000")]


def taken(source: Any, types: dict[str, Any]) -> tuple[list[Any], list[tuple[int, str, str]]]:
    """Return the rows, and (line, record, error) of the others, in their order."""
    with Session() as db:
        table = db.table("t", types)
        table.read_from(source, on_error=db.rejects())
        db.run()
        return table.records(), sorted(record[2:] for record in db["rejects"].records())


def test_a_decimal_with_more_places_costs_its_row_as_in_json(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": [0, 1, 2], "x": pa.array(PRICES)}), tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text("".join(f'{{"i": {i}, "x": "{x}"}}\n' for i, x in enumerate(PRICES)))
    for source in tables(tmp_path / "x.parquet"), json_lines(tmp_path / "x.jsonl"):
        rows, rejected = taken(source, {"i": int, "x": CENTS})
        assert rows == [(0, Decimal("1.00")), (2, Decimal("2.50"))]
        assert [line for line, *_ in rejected] == [2]
        assert "column 'x' (decimal(18, 2)) cannot be " in rejected[0][2]
        assert "1.2345" in rejected[0][2]


@pytest.mark.parametrize("mode", ["skip", "stop"])
def test_a_value_in_a_later_block_costs_its_row_or_stops_there(tmp_path: Path, mode: str) -> None:
    count, bad = 200_000, 150_000
    values = np.arange(count)
    values[bad] = MOST
    pq.write_table(pa.table({"i": np.arange(count), "x": values}), tmp_path / "c.parquet")
    with Session() as db:
        table = db.table("t", {"i": int, "x": int | None})
        feed = table.read_from(tables(tmp_path / "c.parquet"), on_error=mode)  # type: ignore[arg-type]
        if mode == "stop":
            with pytest.raises(SessionError, match=rf"c\.parquet, line 150001: column 'x' .* cannot be {MOST}"):
                db.run()
            assert (len(table), feed.rows) == (bad, bad)
        else:
            db.run()
            assert (len(table), feed.rows) == (count - 1, count - 1)
        assert feed.rejected == 1


def test_a_time_finer_than_the_unit_costs_its_row(tmp_path: Path) -> None:
    times = pa.array([1_000, 1_001, None, 2_000], pa.timestamp("us"))
    pq.write_table(pa.table({"i": range(4), "x": times}), tmp_path / "x.parquet")
    rows, rejected = taken(tables(tmp_path / "x.parquet"), {"i": int, "x": typed([], "timestamp[ms]")})
    assert [i for i, _ in rows] == [0, 2, 3]
    fine = dt.datetime(1970, 1, 1, 0, 0, 0, 1001)
    assert rejected == [(2, repr((1, fine)), f"column 'x' (timestamp[ms]) cannot be {fine!r}")]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_values_that_cannot_be_read_beside_nulls_or_at_all_cost_their_rows(tmp_path: Path, form: str) -> None:
    days = pa.Array.from_buffers(pa.date64(), 4, [None, pa.py_buffer(np.array([0, 0, 123, 86_400_000]))])
    table = pa.table({"i": [0, MOST, None, 3], "day": days})
    if form == "parquet":
        days = pa.array([0, 0, -5, 7], pa.int64()).view(pa.time64("us"))
        pq.write_table(table := pa.table({"i": [0, MOST, None, 3], "day": days}), tmp_path / "x.parquet")
    else:
        with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    source = tables(tmp_path / f"x.{form}")
    day = typed([], "time[us]") if form == "parquet" else dt.date
    rows, rejected = taken(source, {"i": int | None, "day": day})
    assert [i for i, _ in rows] == [0, 3]
    assert [line for line, *_ in rejected] == [2, 3]
    assert f"column 'i' (int64?) cannot be {MOST}" in rejected[0][2]
    assert "column 'day' (" in rejected[1][2]
    assert "a value cannot be read: " in rejected[1][2]
    assert taken(source, {"i": int | None})[0] == [(0,), (3,), (None,)]  # the other column is not looked at
    assert taken(source, {"i": int})[0] == [(0,), (3,), (MOST,)]


def test_a_column_of_another_type_is_one_error(tmp_path: Path) -> None:
    for name, values in {"a": ["1", "2"], "b": [1.5, 2.5], "c": pa.array([1, 2], pa.timestamp("us", "UTC"))}.items():
        pq.write_table(pa.table({"i": [1, 2], "x": values}), tmp_path / f"{name}.parquet")
        for of in CENTS, int, typed([], "timestamp[ms]"):
            rows, rejected = taken(tables(tmp_path / f"{name}.parquet"), {"i": int, "x": of})
            assert (rows, len(rejected)) == ([], 1)
            assert rejected[0][2].startswith("the file cannot be read: column 'x' holds ")


def test_the_last_row_alone_may_be_at_fault(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": [0], "x": pa.array(PRICES[1:2])}), tmp_path / "x.parquet")
    rows, rejected = taken(tables(tmp_path / "x.parquet"), {"i": int, "x": CENTS})
    assert (rows, [line for line, *_ in rejected]) == ([], [1])


def test_sessions_resume_at_the_row_at_which_an_earlier_one_stopped(tmp_path: Path) -> None:
    values = [0, MOST, None, 3, None, MOST, 6]
    pq.write_table(pa.table({"i": range(7), "x": pa.array(values)}), tmp_path / "x.parquet", row_group_size=3)
    for mode, expected in ("stop", [0]), ("stop", [0]), ("skip", [0, 2, 3, 4, 6]), ("stop", [0, 2, 3, 4, 6]):
        with Session(state=str(tmp_path / "db")) as db:
            table = db.table("t", {"i": int, "x": int | None})
            table.read_from(tables(tmp_path / "x.parquet"), on_error=mode)  # type: ignore[arg-type]
            if mode == "stop" and len(expected) == 1:
                with pytest.raises(SessionError, match="line 2: column 'x'"):
                    db.run()
            else:
                db.run()
            assert [i for i, _ in table.records()] == expected


@pytest.mark.parametrize("of", [str, str | None])
def test_a_text_that_is_not_utf_8_costs_its_row(tmp_path: Path, of: Any) -> None:
    buffers = [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")]
    pq.write_table(pa.table({"x": pa.Array.from_buffers(pa.string(), 2, buffers)}), tmp_path / "x.parquet")
    rows, ((line, _, error),) = taken(tables(tmp_path / "x.parquet"), {"x": of})
    assert (rows, line) == ([("a",)], 2)
    assert "a value cannot be read: 'utf-8' codec" in error
