"""-0.0 and 0.0 are one value, however it enters: an operator directly behind an input sees no difference either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from differential import Collection, example, new_input, new_upsert_input
from timely import Worker, execute_directly

ZEROS = st.lists(st.sampled_from([0.0, -0.0]), min_size=1, max_size=4)
FORMS: dict[str, Any] = {
    "list": list,
    "float64": np.array,
    "float32": lambda zeros: np.array(zeros, np.float32),
    "float16": lambda zeros: np.array(zeros, np.float16),
    "big-endian": lambda zeros: np.array(zeros, ">f8"),
    "every second": lambda zeros: np.repeat(zeros, 2)[::2],
}


def image(one: Collection) -> Collection:
    """Return a collection that distinguishes -0.0 from 0.0 if a function can."""
    return one.map(lambda *columns: (*columns[:-1], np.signbit(columns[-1])))


@pytest.mark.parametrize("form", FORMS)
@given(inserted=ZEROS, removed=ZEROS, later=st.booleans(), column=st.booleans())
def test_an_empty_collection_has_an_empty_image(
    form: str, inserted: list[float], removed: list[float], later: bool, column: bool
) -> None:
    def program(worker: Worker) -> tuple[Any, Any]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            contents, seen = numbers.output(signed=True), image(numbers).output(signed=True)
        for zeros, diff in ((inserted, 1), (removed, -1)):
            for fields in [FORMS[form](zeros)] if column else FORMS[form](zeros):
                if later:
                    session.update_at(fields, time=3, diff=diff)
                else:
                    session.update(fields, diff=diff)
        session.close()
        worker.step_while(lambda: not seen.done() or not contents.done())
        return contents.contents(), seen.contents()

    number = len(inserted) - len(removed)
    expected = ({(0.0,): number}, {(False,): number}) if number else ({}, {})
    assert execute_directly(program) == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_constant_and_a_value_that_is_set_have_one_zero(form: str) -> None:
    zeros = FORMS[form]([-0.0])

    def program(worker: Worker) -> list[Any]:
        with worker.dataflow() as scope:
            session, numbers = new_upsert_input(scope)
            seen = image(numbers).output()
        session.set(np.array([7]), zeros)
        session.set(8, zeros[0])
        session.close()
        worker.step_while(lambda: not seen.done())
        return seen.changes()

    assert execute_directly(program) == [((7, False), (0,), 1), ((8, False), (0,), 1)]
    assert example(lambda scope: image(Collection.of(scope, zeros))) == [((False,), 1)]
    assert example(lambda scope: image(Collection.of(scope, zeros[0]))) == [((False,), 1)]
