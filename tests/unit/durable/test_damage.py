"""Files that are torn, truncated or damaged are refused, never read as something else."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from differential import Updates
from differential.durable import compaction
from differential.durable.local import LocalStore
from differential.durable.manifest import Manifest, Owner, Part
from differential.durable.shard import Shard
from differential.durable.writer import Writer
from timely.errors import FencedError, StateError


@pytest.fixture
def shard(tmp_path: Path) -> Shard:
    shard = Shard("words", LocalStore(str(tmp_path)))
    writer = Writer.claim(shard, "output")
    for epoch in range(3):
        writer.append(epoch + 1, [Updates.at((epoch,), (np.array([epoch, 7]),))], {"book": epoch})
    return shard


def manifest() -> Manifest:
    part = Part("a", 0, 3, 5, 100, "00", 17)
    return Manifest("input", 1, 4, 2, 9, Owner("t", "h", 1, 2.5), (("word", "string"),), (part,), {"f": 3}, ((4, 1.5),))


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert Manifest.from_bytes(manifest().to_bytes(), "here") == manifest()
    assert (manifest().rows, manifest().size, manifest().digest) == (5, 100, 17)


def test_each_damaged_bit_of_a_manifest_is_refused() -> None:
    data = manifest().to_bytes()
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(StateError, match=r"here is damaged|here has format"):
                Manifest.from_bytes(bytes(damaged), "here")


def test_each_truncated_manifest_is_refused() -> None:
    data = manifest().to_bytes()
    for length in range(len(data)):
        with pytest.raises(StateError, match="here is damaged"):
            Manifest.from_bytes(data[:length], "here")


def test_a_manifest_of_another_format_is_refused_by_its_number() -> None:
    data = manifest().to_bytes().replace(b'"format":2', b'"format":3')
    with pytest.raises(StateError, match="has format 3 and this version reads formats up to 2"):
        Manifest.from_bytes(data, "here")


@pytest.mark.parametrize(
    "parts",
    [
        [Part("a", 0, 2, 1, 1, "", 0), Part("b", 1, 3, 1, 1, "", 0)],
        [Part("a", 2, 2, 1, 1, "", 0)],
        [Part("a", 0, 9, 1, 1, "", 0)],
    ],
)
def test_parts_that_do_not_tile_time_are_no_manifest(parts: list[Part]) -> None:
    with pytest.raises(AssertionError):
        Manifest("input", 0, 4, 1, 1, Owner("", "", 0, 0.0), parts=tuple(parts)).validate()


def test_damaged_and_truncated_parts_are_refused(shard: Shard, tmp_path: Path) -> None:
    random = Random(1)
    whole = shard.read()
    for name in shard.paths():
        path = Path(name)
        data = path.read_bytes()
        for _ in range(20):
            damaged = bytearray(data)
            damaged[random.randrange(len(data))] ^= 1 << random.randrange(8)
            for wrong in (bytes(damaged), data[: random.randrange(len(data))], data + b"\0"):
                path.write_bytes(wrong)
                for read in (shard.read, shard.updates, shard.verify):
                    with pytest.raises(StateError, match=f"{path.name} is damaged"):
                        read()
        path.write_bytes(data)
    shard.verify()
    assert shard.read() == whole == {(0,): 1, (1,): 1, (2,): 1, (7,): 3}


def test_a_damaged_part_is_not_merged(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would come out with a checksum that is right."""
    monkeypatch.setattr(compaction, "RUN", 3)
    path = Path(shard.paths()[1])
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)
    writer = Writer.claim(shard, "output")
    before = shard.manifest()
    with pytest.raises(StateError, match=f"{path.name} is damaged"):
        writer.compact()
    assert (shard.manifest(), len(shard.store.names())) == (before, 3)


def test_a_missing_part_is_named(shard: Shard) -> None:
    path = Path(shard.paths()[1])
    path.unlink()
    for read in (shard.read, shard.verify):
        with pytest.raises(StateError, match=f"{path.name} is missing"):
            read()


def test_a_part_that_is_missing_is_not_blamed_on_another_writer(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "RUN", 3)
    path = Path(shard.paths()[1])
    path.unlink()
    writer = Writer.claim(shard, "output")
    for change in (writer.compact, lambda: writer.add_fields({"number": ("int64", 0)})):
        with pytest.raises(StateError, match=f"{path.name} is missing: restore the directory from a copy"):
            change()
    Writer.claim(shard, "output")
    with pytest.raises(FencedError, match="was claimed by process"):
        writer.compact()


def test_remains_of_crashed_writes_are_no_part_of_the_collection(shard: Shard, tmp_path: Path) -> None:
    whole = shard.updates()
    (tmp_path / "manifest.json.tmp").write_bytes(b"{")
    remains = ["00000001-00000009-abc.parquet", "00000001-00000009-abc.parquet.tmp"]
    for name in (*remains, ".hidden"):
        (tmp_path / "parts" / name).write_bytes(b"PAR1")
    (tmp_path / "parts" / ".ipynb_checkpoints").mkdir()
    assert shard.updates() == whole
    writer = Writer.claim(shard, "output")
    (tmp_path / "parts" / "00000002-00000001-abc.parquet").write_bytes(b"of this writer")
    (tmp_path / "parts" / "00000003-00000001-abc.parquet").write_bytes(b"of a later writer")
    assert writer.remove_garbage() == remains
    assert len(shard.store.names()) == 7
    writer.append(4, [Updates.at((3,), (np.array([7]),))])
    assert shard.read()[7,] == 4


def test_a_collection_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no durable collection in LocalStore"):
        Shard("words", LocalStore(str(tmp_path / "nowhere"))).read()
