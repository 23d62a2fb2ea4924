"""The table of strings: live strings keep their numbers, and those of freed strings are reused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import differential.data.codes as codes_module
import differential.data.interning as interning_module
from differential import Collection, Updates, new_input, replay_into
from differential.capture import CapturedUpdates, Statement
from differential.data.codes import Encoder
from differential.data.interning import Codes, Interner, interner_of
from timely import Antichain, Worker, execute
from timely.capture import EventQueue


@pytest.fixture
def interner(monkeypatch: pytest.MonkeyPatch) -> Interner:
    monkeypatch.setattr(interning_module, "LEAST_ITEMS", 4)
    return Interner()


def collect(interner: Interner) -> None:
    """Complete a collection if one is due."""
    interner.collect()
    while interner._collection is not None:
        interner.collect()


def text(*items: str) -> tuple[np.ndarray, ...]:  # type: ignore[type-arg]
    return (np.array(items, np.dtypes.StringDType()),)


def test_items_of_a_watched_column_keep_their_numbers_and_all_others_are_reused(interner: Interner) -> None:
    encoder = Encoder(interner, "key")
    kept = encoder.encode(text("a", "b"))
    encoder.encode(text("c", "d"))
    interner.watch(encoder, kept)
    collect(interner)
    assert len(interner) == 1 + 2
    assert encoder.decode(kept, 2)[0].tolist() == ["a", "b"]
    assert sorted(encoder.encode(text("e", "f")).tolist()) == [3, 4]
    assert interner.capacity == 1 + 4


def test_a_freed_column_keeps_no_numbers(interner: Interner) -> None:
    encoder = Encoder(interner, "key")
    column = encoder.encode(text("a", "b", "c", "d"))
    interner.watch(encoder, column)
    del column
    collect(interner)
    assert len(interner) == 1


@pytest.mark.parametrize("most_packed", [2, 6])
def test_a_tuple_or_a_word_keeps_the_text_in_it(
    interner: Interner, most_packed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes_module, "MOST_PACKED", most_packed)
    encoder = Encoder(interner, "key")
    columns = (*text("a", "b"), np.array([1, 2]), *text("x", "y"))
    kept = encoder.encode(columns)
    encoder.encode((*text("c", "d"), np.array([1, 2]), *text("x", "z")))
    interner.watch(encoder, kept)
    collect(interner)
    assert [column.tolist() for column in encoder.decode(kept, 2)] == [["a", "b"], [1, 2], ["x", "y"]]
    assert len(interner) == 1 + (6 if most_packed == 2 else 4)


def test_text_in_a_tuple_is_kept_beside_an_equal_tuple_of_numbers(interner: Interner) -> None:
    float_and_number, float_and_text = Encoder(interner, "key"), Encoder(interner, "value")
    columns = np.array([0.5, 1.5]), text("a", "b")[0]
    texts = float_and_text.encode(columns)
    numbers = float_and_number.encode((columns[0], interner.encode_strings(text("a", "b")[0])))
    interner.watch(float_and_text, texts)
    interner.watch(float_and_number, numbers)
    collect(interner)
    assert float_and_text.decode(texts, 2)[1].tolist() == ["a", "b"]


def test_items_encoded_during_a_collection_are_kept(interner: Interner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning_module, "LEAST_STEP", 1)
    monkeypatch.setattr(interning_module, "SWEPT_PER_ITEM", 0)
    encoder = Encoder(interner, "key")
    encoder.encode(text("a", "b", "c", "d"))
    interner.collect()
    again = encoder.encode(text("d", "e"))
    collect(interner)
    assert encoder.decode(again, 2)[0].tolist() == ["d", "e"]
    assert len(interner) == 1 + 2


def test_text_is_kept_in_a_tuple_that_is_encoded_again_during_a_collection(
    interner: Interner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interning_module, "LEAST_STEP", 1)
    monkeypatch.setattr(interning_module, "SWEPT_PER_ITEM", 0)
    encoder = Encoder(interner, "value")
    kept = encoder.encode((np.array([0.5, 1.5]), *text("a", "b")))
    interner.watch(encoder, kept)
    interner.collect()  # takes its snapshot, and marks a part of it
    again = encoder.encode(encoder.decode(kept, 2))  # without a lookup of the strings
    collect(interner)
    Encoder(interner, "key").encode(text("c", "d"))
    assert again.tolist() == kept.tolist()
    assert [column.tolist() for column in encoder.decode(kept, 2)] == [[0.5, 1.5], ["a", "b"]]


@pytest.mark.parametrize("most_packed", [2, 6])
def test_a_lookup_finds_items_and_assigns_no_numbers(
    interner: Interner, most_packed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes_module, "MOST_PACKED", most_packed)
    encoder = Encoder(interner, "key")
    columns = (*text("a", "b", "c"), np.array([1, 2, 1 << 50]), *text("x", "y", "z"))
    codes = encoder.encode(columns)
    kept = len(interner)
    assert encoder.find(columns).tolist() == codes.tolist()
    others = (*text("a", "d", "a"), np.array([2, 2, 1 << 50]), *text("x", "y", "none"))
    assert not np.isin(encoder.find(others), codes).any()
    assert len(interner) == kept


def test_items_that_an_operator_holds_are_kept_until_it_releases_them(interner: Interner) -> None:
    def held_codes() -> Iterator[tuple[Encoder, Codes]]:
        yield encoder, codes

    encoder = Encoder(interner, "key")
    codes = encoder.encode(text("a"))
    interner.hold(held_codes)
    encoder.encode(text("b", "c", "d"))
    collect(interner)
    assert len(interner) == 1 + 1
    interner.release(held_codes)
    encoder.encode(text("e", "f", "g", "h"))
    collect(interner)
    assert len(interner) == 1


def test_the_table_stays_small_when_strings_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning_module, "LEAST_ITEMS", 256)
    per_epoch, epochs = 100, 200

    def program(worker: Worker) -> tuple[int, dict[object, int]]:
        with worker.dataflow() as scope:
            words, collection = new_input(scope)
            longest = collection.map(lambda word: (word, word)).join(collection.count()).max()
            output = longest.map(lambda *columns: 0).count().output()
        most = 0
        for epoch in range(epochs):
            names = np.array([f"{epoch} {number}" for number in range(per_epoch)])
            words.insert(names)
            words.advance_to(2 * epoch + 1)
            words.remove(names[1:] if epoch % 20 == 0 else names)
            words.advance_to(2 * epoch + 2)
            worker.step_while(lambda reached=2 * epoch + 2: output.less_than(reached))
            most = max(most, interner_of(worker).capacity)
        contents = output.contents()
        words.close()
        worker.step_while(lambda: not output.done())
        return most, contents

    for most, contents in execute(program):
        assert most < 12 * per_epoch
        assert contents == {(0, epochs // 20): 1}


@pytest.mark.parametrize("kind", [str, bytes])
@pytest.mark.parametrize("beside", [0, 20_000])
def test_the_table_stays_small_when_few_long_strings_come_and_go(
    monkeypatch: pytest.MonkeyPatch, kind: type, beside: int
) -> None:
    """However many rows there are `beside` them, each of which a collection must mark."""
    monkeypatch.setattr(interning_module, "LEAST_WORDS", 1 << 10)
    words_each, epochs = 100, 200

    def program(worker: Worker) -> tuple[int, list[tuple[int, object]]]:
        with worker.dataflow() as scope:
            documents, collection = new_input(scope)
            output = collection.arrange_by_key().as_collection().output()
        short = np.array(["short"] * beside, np.dtypes.StringDType())
        documents.insert(np.arange(1, beside + 1), short if kind is str else np.array([b"short"] * beside, np.object_))
        most, before = 0, None
        for epoch in range(epochs):
            document = f"{epoch:08}" * words_each
            field = document if kind is str else document.encode()
            documents.insert(0, field)
            if before is not None:
                documents.remove(0, before)
            before = field
            documents.advance_to(epoch + 1)
            worker.step_while(lambda reached=epoch + 1: output.less_than(reached))
            most = max(most, interner_of(worker).strings.size)
        rows = [record for record in output.contents() if record[0] == 0]
        documents.close()
        worker.step_while(lambda: not output.done())
        return most, rows

    for most, rows in execute(program):
        assert most < 40 * words_each + beside // 2
        last = f"{epochs - 1:08}" * words_each
        assert rows == [(0, last if kind is str else last.encode())]


def test_the_table_stays_small_when_a_capture_is_only_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning_module, "LEAST_ITEMS", 64)
    per_epoch, epochs = 50, 40
    queue = EventQueue()

    def program(worker: Worker) -> tuple[int, int]:
        with worker.dataflow() as scope:
            rows: list[int] = []
            probe = replay_into(scope, [queue]).inspect_batch(lambda updates: rows.append(len(updates))).probe()
        for epoch in range(epochs):
            (names,) = text(*(f"{epoch} {number}" for number in range(per_epoch)))
            upper = Antichain([(epoch + 1,)] if epoch < epochs - 1 else [])
            queue.push(CapturedUpdates(Updates.at((epoch,), (names, names))))
            queue.push(CapturedUpdates(Updates.at((epoch,), (names, names))))
            queue.push(Statement(Antichain([(epoch,)]), upper, (((epoch,), per_epoch),)))
            worker.step_while(lambda reached=epoch + 1: probe.less_than(reached))
        queue.close()
        worker.step_while(lambda: not probe.done())
        return sum(rows), interner_of(worker).capacity

    ((rows, capacity),) = execute(program)
    assert rows == epochs * per_epoch
    assert capacity < 20 * per_epoch


def test_asking_a_cursor_for_an_unknown_key_keeps_nothing() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            one = Collection.of(scope, text("ann", "bob")[0]).arrange_by_key().trace()
            two = Collection.of(scope, text("ann", "bob")[0], np.array([0.5, 1.5]), keys=2).arrange_by_key().trace()
        worker.step_while(lambda: one.upper or two.upper)
        names, pairs, kept = one.cursor(0), two.cursor(0), len(interner_of(worker))
        for number in range(10):
            assert not len(names[f"nobody {number}"].place)
            assert not len(pairs[["ann", "nobody", "bob"], [float(number), 0.5, 7.5 + number]].place)
        assert names[["bob", "nobody", "ann"]].place.tolist() == [0, 2]
        assert pairs[["bob", "nobody", "ann"], [1.5, 0.5, 0.5]].place.tolist() == [0, 2]
        assert len(interner_of(worker)) == kept

    execute(program)


def test_text_that_waits_for_its_time_keeps_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning_module, "LEAST_ITEMS", 16)

    def program(worker: Worker) -> list[object]:
        with worker.dataflow() as scope:
            words, collection = new_input(scope)
            output = collection.distinct().output()
        words.update_at("later", time=50)
        for epoch in range(50):
            word = f"word {epoch}"
            words.insert(word)
            words.update_at(word, time=epoch + 1, diff=-1)
            words.advance_to(epoch + 1)
            worker.step_while(lambda reached=epoch + 1: output.less_than(reached))
        output.changes()
        words.close()
        worker.step_while(lambda: not output.done())
        assert interner_of(worker).capacity < 50
        return [change for change in output.changes() if change[2] > 0]

    assert execute(program) == [[(("later",), (50,), 1)]]
