"""Tests of `identifiers`."""

from __future__ import annotations

from differential import Collection
from tests.oracle.grid import Update, contents, on_workers, run

WORDS: list[Update] = [((word,), (epoch,), 1) for epoch, word in enumerate(("a", "b", "a", "c", "d"))]


def small(one: Collection) -> Collection:
    """Hashes so bad that most records share one with others."""
    return one.identifiers(hash=lambda columns: (columns[0] == "d").astype(int))


@on_workers
def test_each_distinct_record_has_a_number_of_its_own(workers: int) -> None:
    for program in (Collection.identifiers, small):
        changes = run(program, WORDS, workers=workers)
        for epoch, known in enumerate(("a", "ab", "ab", "abc", "abcd")):
            held = contents(changes, (epoch,))
            assert sorted(word for word, _ in held) == list(known)
            assert len({number for _, number in held}) == len(known)
            assert set(held.values()) == {1}
            assert all(number >= 0 for _, number in held)


def test_numbers_depend_only_on_the_present_records() -> None:
    at_once = [(record, (4,), diff) for record, _, diff in reversed(WORDS)]
    for program in (Collection.identifiers, small):
        answers = [
            contents(run(program, updates, workers=workers), (4,)) for updates in (WORDS, at_once) for workers in (1, 3)
        ]
        assert all(answer == answers[0] for answer in answers)
