"""Tests of `passed`."""

from __future__ import annotations

from typing import Any

import pytest

from differential import Collection, example, new_input
from differential.frames import typed
from timely import Scope, Worker, execute_directly
from timely.errors import BuildError, OperatorError

Change = tuple[tuple[Any, ...], int, int]


def passed(moments: list[Change], marks: list[Change], sources: int) -> list[Any]:
    """Return the changes of what is passed, given changes (record, epoch, diff) of the moments and the watermarks."""

    def program(worker: Worker) -> list[Any]:
        with worker.dataflow() as scope:
            (first, ends), (second, watermarks) = new_input(scope), new_input(scope)
            output = ends.passed(watermarks, sources).output()
        for session, changes in (first, moments), (second, marks):
            for record, epoch, diff in sorted(changes, key=lambda change: change[1]):
                session.advance_to(epoch)
                session.update(*record, diff=diff)
            session.close()
        worker.step_while(lambda: not output.done())
        return [*output.changes()]

    return execute_directly(program)


def test_a_time_is_passed_in_the_epoch_in_which_the_last_source_reaches_it() -> None:
    marks = [(("a", 9), 0, 1), (("b", 2), 1, 1), (("b", 2), 2, -1), (("b", 7), 2, 1)]
    assert passed([((5,), 0, 1), ((8,), 0, 1), ((1,), 0, 2)], marks, 2) == [((1,), (1,), 2), ((5,), (2,), 1)]


@pytest.mark.parametrize(
    ("moments", "marks", "sources", "words"),
    [
        ([((5, 6), 0, 1)], [(("a", 9), 0, 1)], 1, "the times are one column, and records of 2 columns"),
        (
            [((5,), 0, 1)],
            [(("a", 9, 9), 0, 1)],
            1,
            r"a watermark is a record \(source, watermark\), not .*'a', 9, 9",
        ),
        ([((5,), 0, 1)], [((9,), 0, 1)], 1, r"a watermark is a record \(source, watermark\), not \(9,\)"),
        ([((5,), 0, 1)], [(("a", 9), 0, 1), (("b", 9), 0, 1)], 1, "'a' and 'b' have watermarks, .* sources=1"),
        (
            [((5,), 0, 1)],
            [(("a", 9), 0, 1), (("a", 9), 1, -1), (("a", 7), 1, 1)],
            1,
            "watermark of 'a' goes back, from 9 to 7",
        ),
        (
            [((5,), 0, 1)],
            [(("a", 9), 0, 1), (("a", 9), 1, -1), (("a", 7), 2, 1)],
            2,
            "watermark of 'a' goes back, from 9 to 7",
        ),
        ([((5,), 0, 1)], [(("a", 0.5), 0, 1)], 1, "watermarks and times are of different types"),
    ],
)
def test_other_records_are_refused(moments: list[Change], marks: list[Change], sources: int, words: str) -> None:
    with pytest.raises(OperatorError, match=rf"operator 'passed' failed at time \(\d,\) .* DataError: .*{words}"):
        passed(moments, marks, sources)


def test_a_watermark_that_is_null_is_refused_with_its_source() -> None:
    def program(scope: Scope) -> Collection:
        return Collection.of(scope, [1, 5]).passed(Collection.of(scope, "a", typed([None], "int64?")), 1)

    with pytest.raises(OperatorError, match=r"'passed' failed at time \(0,\) .* the watermark of 'a' is null"):
        example(program)


@pytest.mark.parametrize("sources", [0, -1, "x", None, 1.0, True])
def test_a_number_of_sources_that_is_none_is_refused(sources: Any) -> None:
    with pytest.raises(BuildError, match=rf"passed \(at {__file__}:\d+\): `sources` must be a whole number"):
        passed([], [], sources)


def test_watermarks_that_are_no_collection_are_refused() -> None:
    def program(scope: Scope) -> None:
        for bad in 3, None, Collection.of(scope, "a", 3).arrange_by_key():
            with pytest.raises(BuildError, match=rf"passed \(at {__file__}:\d+\): `watermarks` must be a collection"):
                Collection.of(scope, 3).passed(bad, 1)  # type: ignore[arg-type]

    def build(worker: Worker) -> None:
        with worker.dataflow() as scope:
            program(scope)

    execute_directly(build)


def test_a_source_whose_watermark_comes_and_goes_in_one_epoch_does_not_count() -> None:
    marks = [(("b", 3), 0, 1), (("b", 3), 0, -1), (("a", 9), 0, 1)]
    assert passed([((5,), 0, 1)], marks, 1) == [((5,), (0,), 1)]
