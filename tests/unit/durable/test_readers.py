"""Other programs open the files of a durable collection as they are, in the way that `docs/durable.md` shows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pytest

from differential import Updates
from differential.durable import LocalStore, Shard, compaction
from differential.durable.manifest import Keep
from differential.durable.writer import Writer

Contents = dict[tuple[Any, ...], int]


@pytest.fixture
def shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shard:
    """Return a collection with parts of several appends, some merged, and remains of a crash."""
    monkeypatch.setattr(compaction, "RUN", 5)
    shard = Shard("edges", LocalStore(str(tmp_path / "edges")))
    writer = Writer.claim(shard, "input")
    writer.names, writer.keep = ("source", "target", "name"), Keep(2)
    for epoch in range(7):
        names = np.array([f"ü{epoch % 2}", "x"], np.dtypes.StringDType())
        columns = np.array([epoch % 3, 7]), np.array([0.5, 7.0]), names
        writer.append(epoch + 1, [Updates.at((epoch,), columns, np.array([1, (-1) ** epoch]))])
        writer.compact()
    shard.store.put_new("00000000-00000001-abc.parquet", b"remains")
    assert 1 < len(shard.paths()) < 7
    return shard


def test_the_layout_of_the_manifest_is_enough_to_find_the_files(shard: Shard, tmp_path: Path) -> None:
    """As docs/durable.md documents it: nothing of this library is needed."""
    manifest = json.loads((tmp_path / "edges" / "manifest.json").read_text())
    assert (manifest["format"], manifest["shard"]["role"]) == (2, "input")
    parts = manifest["shard"]["parts"]
    paths = [str(tmp_path / "edges" / "parts" / part["name"]) for part in parts]
    assert paths == shard.paths()
    assert [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths] == [part["sha256"] for part in parts]
    as_of = manifest["shard"]["upper"] - 1
    query = f"SELECT source, target, name, sum(diff) FROM read_parquet({paths}) WHERE time <= {as_of} GROUP BY ALL"
    found = {tuple(record): int(count) for *record, count in duckdb.sql(query).fetchall() if count}
    assert found == shard.read()
    assert [name for name, _ in manifest["shard"]["fields"]] == ["source", "target", "name"]


@pytest.mark.parametrize("as_of", [4, 5, 6])
def test_duckdb_reads_the_contents_as_of_a_time(shard: Shard, as_of: int) -> None:
    found = duckdb.sql(
        f"""
        SELECT source, target, name, sum(diff)::BIGINT AS count
        FROM read_parquet({shard.paths()})
        WHERE time <= {as_of}
        GROUP BY ALL HAVING sum(diff) <> 0
        """
    ).fetchall()
    assert {tuple(record): count for *record, count in found} == shard.read(as_of)


@pytest.mark.parametrize("as_of", [4, 5, 6])
def test_polars_reads_the_contents_as_of_a_time(shard: Shard, as_of: int) -> None:
    updates = polars.scan_parquet(shard.paths()).filter(polars.col("time") <= as_of)
    total = updates.group_by("source", "target", "name").agg(polars.col("diff").sum()).filter(polars.col("diff") != 0)
    assert {tuple(record): count for *record, count in total.collect().rows()} == shard.read(as_of)


@pytest.mark.parametrize("as_of", [4, 5, 6])
def test_pandas_reads_the_contents_as_of_a_time(shard: Shard, as_of: int) -> None:
    updates = pandas.read_parquet(shard.paths()).query(f"time <= {as_of}")
    total = updates.groupby(["source", "target", "name"])["diff"].sum()
    assert total[total != 0].to_dict() == shard.read(as_of)


def test_all_have_the_schema_of_the_collection(shard: Shard) -> None:
    columns = ["source", "target", "name", "time", "diff"]
    assert polars.read_parquet(shard.paths()).columns == columns
    assert list(pandas.read_parquet(shard.paths()).columns) == columns
    described = duckdb.sql(f"DESCRIBE FROM read_parquet({shard.paths()})").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [
        ("source", "BIGINT"),
        ("target", "DOUBLE"),
        ("name", "VARCHAR"),
        ("time", "BIGINT"),
        ("diff", "BIGINT"),
    ]


def test_a_table_is_what_polars_and_pandas_make_of_it(shard: Shard) -> None:
    table = shard.table()
    assert polars.from_arrow(table).shape == (len(shard.read()), 4)
    assert table.to_pandas()["diff"].sum() == sum(shard.read().values())


@pytest.mark.parametrize("rows", [1, 2, 33, 129, 1025, 140_000])
@pytest.mark.parametrize("is_constant", [False, True])
def test_integers_of_all_sizes_are_read_by_all(tmp_path: Path, rows: int, is_constant: bool) -> None:
    """Differences of 64 bits overflow, and blocks of them are padded; constants are kept otherwise."""
    random = np.random.default_rng(rows)
    ends = np.array([-(1 << 63), (1 << 63) - 1, 0, -1, 1 << 62])
    columns = random.choice(ends, rows), random.integers(-(1 << 63), 1 << 63, rows), np.arange(rows)
    times = np.array([[4]] if is_constant else [[4], [5]])
    index = np.zeros(0, np.int64) if is_constant else np.arange(rows) % 2
    diffs = np.full(rows, -3) if is_constant else random.choice([1, -1, (1 << 63) - 1], rows)
    shard = Shard("numbers", LocalStore(str(tmp_path / "numbers")))
    writer = Writer.claim(shard, "input")
    writer.append(7, [Updates(columns, times, index, diffs)])
    each_time = times[:, 0][index] if len(index) else np.full(rows, 4)
    expected = np.stack([*columns, each_time, diffs])
    (path,) = shard.paths()
    found = {
        "DuckDB": list(duckdb.sql(f"FROM read_parquet('{path}')").fetchnumpy().values()),
        "Polars": polars.read_parquet(path).to_numpy().T,
        "pandas": pandas.read_parquet(path).to_numpy().T,
        "differential": [column.to_numpy() for column in shard.updates().columns],
    }
    for reader, values in found.items():
        in_order = np.stack(values)[:, np.argsort(values[2])]  # small files are sorted by their first column
        assert (in_order == expected).all(), reader
