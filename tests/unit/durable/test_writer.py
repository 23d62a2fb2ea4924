"""One writer at a time appends, in order; the past is given up as far as asked, and no further."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import numpy as np
import pytest

from differential import Updates
from differential.durable import compaction, writer as module
from differential.durable.local import LocalStore
from differential.durable.manifest import Keep, Part
from differential.durable.shard import Shard
from differential.durable.writer import Writer
from tests.simulation.stores import Seeded, SimulatedStore
from tests.unit.durable.test_stores import Failing
from timely.errors import ConfigError, DataError, FencedError, StateError, StoreError


def of(time: int, *records: int) -> Updates:
    return Updates.at((time,), (np.array(records),))


@pytest.fixture
def shard(tmp_path: Path) -> Shard:
    return Shard("numbers", LocalStore(str(tmp_path)))


def test_a_writer_that_was_replaced_is_refused_and_leaves_nothing(shard: Shard) -> None:
    first = Writer.claim(shard, "output")
    first.append(1, [of(0, 7)])
    second = Writer.claim(shard, "output")
    with pytest.raises(FencedError, match=r"'numbers' in .* was claimed by process \d+ on .*one program at a time"):
        first.append(2, [of(1, 8)])
    second.append(2, [of(1, 9)])
    assert shard.read() == {(7,): 1, (9,): 1}
    assert len(Writer.claim(shard, "output").remove_garbage()) == 1


def test_a_collection_keeps_its_role(shard: Shard) -> None:
    Writer.claim(shard, "output")
    with pytest.raises(StateError, match="is an output of the program that wrote it, not an input"):
        Writer.claim(shard, "input")


def test_appends_follow_each_other(shard: Shard) -> None:
    writer = Writer.claim(shard, "input")
    writer.append(2, [of(1, 7)])
    with pytest.raises(StateError, match="final before 2, so nothing can be appended up to 2"):
        writer.append(2, [])
    for early, late in ((1, 3), (3, 3)):
        with pytest.raises(StateError, match=rf"updates at {early} to {early} do not belong to \[2, {late}\)"):
            writer.append(late, [of(early, 7)])
    writer.append(5, [], {"file": 3})
    assert (shard.manifest().upper, len(shard.manifest().parts), shard.manifest().offsets) == (5, 1, {"file": 3})
    writer.append(6, [], {"other": "b"})
    writer.append(7, [], {"file": 4})
    assert shard.manifest().offsets == {"file": 4, "other": "b"}


def test_records_of_other_kinds_are_refused(shard: Shard) -> None:
    writer = Writer.claim(shard, "input")
    writer.names = ("number",)
    writer.append(1, [of(0, 7)])
    has = re.escape(f"{shard} has records of (number int64), so records of ")
    with pytest.raises(DataError, match=has + r"\(float64\) cannot be added.*: convert .*, choose .* another name, or"):
        writer.append(2, [Updates.at((1,), (np.array([0.5]),))])
    with pytest.raises(DataError, match=has + r"\(int64, text\) cannot"):
        writer.append(2, [Updates.at((1,), (np.array([1]), np.array(["a"], np.dtypes.StringDType())))])
    assert shard.manifest().upper == 1


def test_names_are_as_many_as_columns(shard: Shard) -> None:
    writer = Writer.claim(shard, "input")
    writer.names = ("a", "b")
    with pytest.raises(DataError, match=rf"^{re.escape(str(shard))}: records have 1 field\(s\), but 2 are named: a, b"):
        writer.append(1, [of(0, 7)])


def test_a_full_disk_ends_the_writer_and_the_next_one_goes_on(tmp_path: Path) -> None:
    disk = Failing("", errno.ENOSPC)
    shard = Shard("numbers", LocalStore(str(tmp_path), disk))
    writer = Writer.claim(shard, "input", pause=lambda _: None)
    writer.append(1, [of(0, 7)])
    disk.operation = "write"
    with pytest.raises(StoreError, match="No space left on device"):
        writer.append(2, [of(1, 8)])
    assert shard.read() == {(7,): 1}
    with pytest.raises(StoreError, match="No space left on device"):
        Writer.claim(shard, "input", pause=lambda _: None)
    disk.operation = ""
    Writer.claim(shard, "input").append(2, [of(1, 9)])
    assert shard.read() == {(7,): 1, (9,): 1}


def test_a_disk_that_has_room_again_at_once_is_no_error(tmp_path: Path) -> None:
    disk = Failing("", errno.ENOSPC)
    shard = Shard("numbers", LocalStore(str(tmp_path), disk))
    writer = Writer.claim(shard, "input", pause=lambda _: setattr(disk, "operation", ""))
    for operation in ("write", "rename", "sync"):
        disk.operation = operation
        writer.append(writer.manifest.upper + 1, [of(writer.manifest.upper, 7)])
    assert shard.read() == {(7,): 3}


def test_a_part_that_cannot_be_written_is_no_part(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest could still be: it is small, or on another disk."""
    writer = Writer.claim(shard, "input", pause=lambda _: None)

    def fail(*_: object) -> None:
        raise StoreError("full")

    with monkeypatch.context() as patch:
        patch.setattr(shard.store, "put_new", fail)
        with pytest.raises(StoreError, match="full"):
            writer.append(1, [of(0, 7)])
    assert (shard.manifest().upper, shard.manifest().parts) == (0, ())
    writer.append(1, [of(0, 7)])
    assert shard.read() == {(7,): 1}


class Mute(SimulatedStore):
    """A store that makes some changes of the manifest, and does not answer."""

    def __init__(self, unanswered: int) -> None:
        super().__init__(Seeded(1))
        self.unanswered = unanswered

    def compare_and_set(self, expected: bytes | None, manifest: bytes) -> bool:
        is_done = super().compare_and_set(expected, manifest)
        if self.unanswered:
            self.unanswered -= 1
            raise StoreError("no answer")
        return is_done


@pytest.mark.parametrize("unanswered", [1, 2, 4])
def test_a_change_whose_answer_was_lost_happens_once_and_is_no_change_of_another(unanswered: int) -> None:
    shard = Shard("numbers", store := Mute(0))
    writer = Writer.claim(shard, "input", pause=lambda _: None)
    store.unanswered = unanswered
    writer.append(1, [of(0, 7)])
    writer.append(2, [of(1, 8)])
    assert (shard.read(), len(store.committed), writer.manifest) == ({(7,): 1, (8,): 1}, 3, shard.manifest())


def test_a_change_that_is_never_answered_ends_the_writer() -> None:
    pauses: list[float] = []
    shard = Shard("numbers", store := Mute(0))
    writer = Writer.claim(shard, "input", pause=pauses.append)
    store.unanswered = 1000
    with pytest.raises(StoreError, match="no answer"):
        writer.append(1, [of(0, 7)])
    assert pauses == sorted(set(pauses)), "each pause is longer than the one before"
    assert 3 <= len(pauses) < 20
    store.unanswered = 0
    Writer.claim(shard, "input").append(2, [of(1, 8)])
    assert shard.read() == {(7,): 1, (8,): 1}, "it had happened, as the next writer finds"


@pytest.mark.parametrize(("keep", "since"), [(None, 0), (0, 9), (3, 6), (100, 0)])
def test_epochs_are_kept_as_asked(shard: Shard, keep: int | None, since: int) -> None:
    writer = Writer.claim(shard, "output")
    writer.keep = Keep(keep)
    for epoch in range(10):
        writer.append(epoch + 1, [of(epoch, epoch)])
    assert writer.manifest.since == since
    for as_of in range(since, 10):
        assert shard.read(as_of) == {(number,): 1 for number in range(as_of + 1)}
    for as_of in [*range(since)[-1:], 10]:
        with pytest.raises(StateError, match=f"cannot be read as of {as_of}, .* as of {since} up to 9"):
            shard.read(as_of)


def test_what_others_need_is_kept(shard: Shard) -> None:
    writer = Writer.claim(shard, "input")
    writer.keep = Keep(0)
    writer.append(5, [of(0, 1)], limit=-1)
    assert writer.manifest.since == 0
    writer.append(9, [of(5, 1)], limit=3)
    assert writer.manifest.since == 3
    writer.append(10, [of(9, 1)], limit=2)
    assert writer.manifest.since == 3, "what was given up is not there again"


def test_ages_are_kept_by_the_clock_and_a_clock_that_jumps_changes_no_answer(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e9]
    monkeypatch.setattr(module.clock, "time", lambda: now[0])
    writer = Writer.claim(shard, "output")
    writer.keep = Keep("1h")
    sinces = []
    for epoch, seconds in enumerate([0, 60, 3500, 100, 86400, -200_000, 10, 10, 500_000, 10]):
        now[0] += seconds
        writer.append(epoch + 1, [of(epoch, epoch)])
        sinces.append(writer.manifest.since)
        assert shard.read() == {(number,): 1 for number in range(epoch + 1)}
    assert sinces[:5] == [0, 0, 0, 1, 3]
    assert sinces == sorted(sinces)
    assert len(writer.manifest.marks) <= 66


def test_marks_stay_few(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    marks: tuple[tuple[int, float], ...] = ()
    keep = Keep("1h")
    for second in range(20_000):
        marks = keep.marked(marks, second, float(second))
    assert len(marks) <= 67
    assert 3600 <= 19_999 - marks[0][1] <= 3600 + 2 * 3600 / 64


def test_after_a_clock_goes_back_times_are_marked_by_it() -> None:
    """Otherwise the past would be kept until the clock is where it was."""
    keep = Keep("1h")
    marks = keep.marked(keep.marked((), 1, 1e9), 2, 1e9 - 86_400)
    assert marks == ((1, 1e9), (2, 1e9 - 86_400))
    assert keep.marked(marks, 3, 1e9 - 86_390) == marks, "so soon after the last one there is no other"


def test_what_nobody_relied_on_is_retracted_append_by_append(shard: Shard) -> None:
    writer = Writer.claim(shard, "output")
    for epoch in range(4):
        writer.append(epoch + 1, [of(epoch, epoch)], limit=1)
    writer.retract(5)
    assert writer.manifest.upper == 4
    writer.retract(3)
    assert (writer.manifest.upper, shard.read()) == (3, {(0,): 1, (1,): 1, (2,): 1})
    writer.append(4, [of(3, 9)])
    assert shard.read() == {(0,): 1, (1,): 1, (2,): 1, (9,): 1}


def test_a_part_that_was_merged_of_earlier_and_later_times_keeps_the_earlier_ones(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a session whose tables were copied later than its commits has the rows of these commits."""
    monkeypatch.setattr(compaction, "RUN", 4)
    writer = Writer.claim(shard, "input")
    for epoch in range(4):
        writer.append(epoch + 1, [of(epoch, epoch)])
    assert writer.compact()
    writer.append(5, [of(4, 4)])
    Writer.claim(shard, "input").retract(3)
    shard.verify()
    assert (shard.manifest().upper, shard.read(1), shard.read()) == (3, {(0,): 1, (1,): 1}, {(0,): 1, (1,): 1, (2,): 1})
    writer = Writer.claim(shard, "input")
    writer.retract(1)
    writer.append(6, [of(5, 9)])
    writer.retract(5)
    assert (shard.manifest().upper, shard.read()) == (5, {(0,): 1})


def test_a_collection_that_is_begun_again_has_nothing_of_the_former_one(shard: Shard) -> None:
    writer = Writer.claim(shard, "output", about={"created": 0})
    writer.keep = Keep("1h")
    writer.append(3, [of(1, 7)], {"file": 3})
    writer.begin_again(2, {"created": 2}, "input")
    found = shard.manifest()
    assert (found.role, found.since, found.upper, found.about) == ("input", 2, 2, {"created": 2})
    assert (found.fields, found.parts, found.marks, found.offsets) == ((), (), (), {})


def test_what_was_added_up_cannot_be_retracted(shard: Shard) -> None:
    writer = Writer.claim(shard, "output")
    writer.keep = Keep(0)
    for epoch in range(3):
        writer.append(epoch + 1, [of(epoch, epoch)])
    with pytest.raises(StateError, match="cannot be read as of 1, so what came later cannot be given up"):
        writer.retract(2)
    assert (writer.manifest.upper, len(shard.manifest().parts)) == (3, 3)


@pytest.mark.parametrize("keep", [-1, "1", "an hour", "1 week", ""])
def test_what_is_no_retention_is_refused(keep: int | str) -> None:
    with pytest.raises(ConfigError):
        Keep(keep)


def test_compaction_changes_no_answer_and_leaves_few_parts(shard: Shard) -> None:
    writer = Writer.claim(shard, "output")
    writer.keep = Keep(5)
    steps = 0
    for epoch in range(100):
        writer.append(
            epoch + 1,
            [of(epoch, epoch % 3), Updates.at((epoch,), (np.array([9]),), np.array([1, -1][epoch % 2 :][:1]))],
        )
        while writer.compact():
            steps += 1
    assert steps > 10
    assert len(writer.manifest.parts) < 2 * compaction.RUN
    assert sorted(part.name for part in writer.manifest.parts) == shard.store.names()
    for as_of in range(94, 100):
        expected = {(number,): len(range(number, as_of + 1, 3)) for number in range(3)}
        assert shard.read(as_of) == expected | ({(9,): 1} if as_of % 2 == 0 else {})


def test_merges_in_the_midst_leave_the_parts_around_them(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts before and after large ones."""
    monkeypatch.setattr(compaction, "RUN", 3)
    monkeypatch.setattr(compaction, "_FIRST_BITS", 1)
    writer = Writer.claim(shard, "output")
    expected: dict[tuple[int], int] = {}
    found: set[tuple[bool, bool]] = set()
    sizes = [1, 1, 40, 40, 1, 1, 40, 1, 1, 1, 40, 40, 1, 1, 1, 40, 1, 1, 1, 40]
    for epoch, size in enumerate(sizes):
        writer.append(epoch + 1, [of(epoch, *range(epoch, epoch + size))])
        expected |= {(number,): expected.get((number,), 0) + 1 for number in range(epoch, epoch + size)}
        if epoch % 7 == 6 or epoch == len(sizes) - 1:
            while (chosen := compaction.choose(writer.manifest.parts)) is not None:
                found.add((chosen[0] > 0, chosen[1] < len(writer.manifest.parts)))
                assert writer.compact()
                assert (shard.read(), shard.store.names()) == (
                    expected,
                    sorted(part.name for part in shard.manifest().parts),
                )
                shard.verify()
    assert found >= {(True, True)}, found


def test_a_merge_has_a_bound() -> None:
    def of_rows(*rows: int) -> list[Part]:
        return [Part(str(at), at, at + 1, each, 0, "", 0) for at, each in enumerate(rows)]

    most = compaction.MOST_ROWS
    assert compaction.choose(of_rows(*[most // 4] * 8)) is None
    assert compaction.choose(of_rows(*[most // 16] * 20)) == (4, 20)


def test_what_a_merge_has_advanced_is_read_at_its_new_time(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval of its part ends before."""
    monkeypatch.setattr(compaction, "RUN", 3)
    monkeypatch.setattr(compaction, "_FIRST_BITS", 1)
    writer = Writer.claim(shard, "output")
    writer.keep = Keep(0)
    for epoch, size in enumerate((1, 1, 1, 40)):
        writer.append(epoch + 1, [of(epoch, *range(size))])
    assert writer.compact()
    assert [(part.lower, part.upper) for part in writer.manifest.parts] == [(0, 3), (3, 4)]
    assert (writer.manifest.since, shard.updates(lower=3).to_pylist()[0]) == (3, {"column_0": 0, "time": 3, "diff": 4})


def test_a_record_that_occurs_too_often_is_refused(shard: Shard) -> None:
    writer = Writer.claim(shard, "output")
    with pytest.raises(DataError, match=f"a record occurs {1 << 63} times, which does not fit into 64 bits"):
        writer.append(1, [Updates.at((0,), (np.array([7, 7]),), np.array([1 << 62, 1 << 62]))])
    assert shard.manifest().upper == 0


def test_a_snapshot_is_there_until_the_next_one_is(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer.claim(shard, "snapshot", pause=lambda _: None)
    states = [Part(name, upper - 1, upper, 0, 1, "", 0) for name, upper in (("first", 2), ("second", 4))]
    for state in states:
        shard.store.put_new(state.name, b"1")
    writer.keep_states(2, states[:1])
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "compare_and_set", lambda *_: (_ for _ in ()).throw(StoreError("crashed")))
        with pytest.raises(StoreError, match="crashed"):
            writer.keep_states(4, states[1:])
    assert shard.store.names() == ["first", "second"]
    writer.keep_states(4, states[1:])
    assert (shard.store.names(), shard.manifest().upper) == (["second"], 4)


def test_a_state_that_cannot_be_removed_is_left_to_the_next_claim(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer.claim(shard, "snapshot")
    names = [f"00000001-{upper:012d}-0000-abc.npz" for upper in (2, 4)]
    for name, upper in zip(names, (2, 4)):
        shard.store.put_new(name, b"1")
        with monkeypatch.context() as patch:
            patch.setattr(LocalStore, "delete", lambda *_: (_ for _ in ()).throw(StoreError("no answer")))
            writer.keep_states(upper, [Part(name, upper - 1, upper, 0, 1, "", 0)])
    assert (shard.store.names(), shard.manifest().upper) == (names, 4)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "delete", lambda *_: (_ for _ in ()).throw(StoreError("no answer")))
        assert Writer.claim(shard, "snapshot").remove_garbage() == []
    assert Writer.claim(shard, "snapshot").remove_garbage() == names[:1]
    assert shard.store.names() == names[1:]


def test_a_compaction_that_a_crash_interrupts_is_garbage(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "RUN", 2)
    writer = Writer.claim(shard, "output")
    for epoch in range(2):
        writer.append(epoch + 1, [of(epoch, 7)])
    monkeypatch.setattr(LocalStore, "compare_and_set", lambda *_: (_ for _ in ()).throw(StoreError("crashed")))
    monkeypatch.setattr(writer, "_pause", lambda _: None)
    with pytest.raises(StoreError, match="crashed"):
        writer.compact()
    monkeypatch.undo()
    assert (shard.read(), len(shard.store.names())) == ({(7,): 2}, 3)
    assert len(Writer.claim(shard, "output").remove_garbage()) == 1
    assert shard.read() == {(7,): 2}
