"""What earlier versions wrote is read as it was written: `tests/data/durable-format-N`, written by `golden.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from differential import Updates
from differential.durable import Directory, Shard, rows
from differential.durable.writer import Writer
from tests.unit.durable.golden import TEXT, TYPED, write
from timely.lowlevel import typed

DATA = Path(__file__).parents[2] / "data"
FORMATS = sorted(path.name for path in DATA.glob("durable-format-*"))
WORDS = {
    ("to", b"to\0\xff", 0.0, True, 0): 1,
    ("be", b"be\0\xff", 0.5, True, -1): 1,
    ("or", b"or\0\xff", 1.0, True, -2): 1,
    ("be", b"be\0\xff", 1.5, True, -3): 1,
}


@pytest.fixture(params=[*FORMATS, "now"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Directory:
    if request.param == "now":
        write(str(tmp_path / "now"))
    else:
        shutil.copytree(DATA / request.param, tmp_path / "now")
    return Directory(str(tmp_path / "now"))


def test_there_is_a_golden_directory_for_the_present_format() -> None:
    assert FORMATS == ["durable-format-1", "durable-format-2"]


def test_records_times_and_offsets_are_as_they_were_written(place: Directory) -> None:
    assert place.names() in (["counts", "words"], ["counts", "state", "typed", "words"])
    words, counts = (Shard(name, place.store(name)) for name in ("words", "counts"))
    assert words.read() == WORDS
    assert words.read(0) == dict(list(WORDS.items())[:1])
    manifest = words.manifest()
    assert (manifest.since, manifest.upper, manifest.offsets) == (0, 4, {"book": 3, "place": "page 7"})
    kinds = ("string", "binary", "double", "bool", "int64")
    assert manifest.fields == tuple(zip(("word", "bytes", "weight", "is_short", "number"), kinds))
    assert (counts.manifest().since, counts.read(1), counts.read()) == (1, {("be", 2): 1}, {("be", 3): 1})


def test_a_writer_goes_on(place: Directory) -> None:
    shard = Shard("counts", place.store("counts"))
    writer = Writer.claim(shard, "output")
    columns = np.array(["be", "be"], TEXT), np.array([3, 4])
    writer.append(4, [Updates.at((3,), columns, np.array([-1, 1]))])
    assert shard.read() == {("be", 4): 1}


def test_typed_columns_notes_and_snapshots_are_as_they_were_written(place: Directory) -> None:
    if "typed" not in place.names():
        assert Shard("words", place.store("words")).store.get_manifest()[:11] == b'{"format":1'  # type: ignore[index]
        return
    columns = [typed(values, kind).tolist() for kind, values in TYPED.items()]
    shard = Shard("typed", place.store("typed"))
    assert shard.read() == {(*record, None): 1 for record in zip(*columns)}
    kinds = dict.fromkeys([*TYPED, "decimal(9, 2)"])
    assert dict.fromkeys(kind for _, kind in shard.manifest().fields) == kinds
    assert shard.manifest().about == {"keys": 2}
    state = Shard("state", place.store("state"))
    (part,) = state.manifest().states
    assert (state.manifest().role, part.upper, state.part(part)) == ("snapshot", 6, b"state")


def test_digests_are_those_of_this_version_or_differ(place: Directory, request: pytest.FixtureRequest) -> None:
    """Those of earlier versions did not depend on the order of two columns. If they differ, records are compared."""
    is_now = request.node.name.endswith("[now]")
    for name in place.names():
        shard = Shard(name, place.store(name))
        shard.verify()
        if shard.manifest().role == "output":
            assert (rows.digest(shard.updates()) == shard.manifest().digest) == is_now
