"""Text that grows by pieces, and readers that begin again anywhere, give the records of a plain reader, once each."""

from __future__ import annotations

import csv as plain
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from differential.session.sources import Reader, Target, csv, json_lines, parts

FIELDS = st.text(st.sampled_from('ab,"\n\r é'), max_size=5)
RECORDS = st.lists(st.tuples(st.integers(-9, 99) | st.just("bad"), FIELDS), max_size=12)


def written(form: str, records: list[tuple[Any, str]]) -> bytes:
    if form == "json":
        return "".join(json.dumps({"id": key, "note": note}) + "\n" for key, note in records).encode()
    sink = io.StringIO(newline="")
    plain.writer(sink).writerows([("id", "note"), *records])
    return sink.getvalue().encode()


def taken(reader: Reader, stops: bool, rows: list[tuple[Any, ...]], rejected: list[str]) -> Any:
    """Take what has arrived; return the position, None if nothing has."""
    position = None
    while (batch := reader.poll()) is not None:
        for _, columns in batch.changes:
            rows += zip(*(column.tolist() for column in columns))
        rejected += [each.record for each in batch.rejected]
        position = batch.position
        if batch.rejected and stops:
            break
    return position


@pytest.mark.parametrize("form", ["csv", "json"])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_each_record_is_delivered_once(form: str, data: st.DataObject) -> None:
    records = data.draw(RECORDS)
    text = written(form, records)
    target = Target("t", ("id", "note"), ("int64", "text"), 1, False, data.draw(st.booleans(), "stops"))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4), "cuts"))
    rows: list[tuple[Any, ...]] = []
    rejected: list[str] = []
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "BLOCK", data.draw(st.sampled_from([16, 40, 1 << 20]), "block"))
        path = Path(directory) / "t"
        path.touch()
        source = (csv if form == "csv" else json_lines)(path, follow=True)
        position: Any = None
        reader = source.open(target, None)
        for start, end in zip([0, *cuts], [*cuts, len(text)]):
            with path.open("ab") as file:
                file.write(text[start:end])
            position = taken(reader, target.stops, rows, rejected) or position
            if data.draw(st.booleans(), "restarts"):
                reader.close()
                reader = source.open(target, position)
        if not target.stops:
            taken(reader, target.stops, rows, rejected)
        reader.close()
    good = [record for record in records if record[0] != "bad"]
    bad = [record for record in records if record[0] == "bad"]
    if target.stops and bad:
        good = records[: records.index(bad[0])]
        assert rejected
        assert set(rejected) <= {rejected[0]}  # a reader that begins again stops there again
    else:
        assert len(rejected) == len(bad)
    assert rows == good
