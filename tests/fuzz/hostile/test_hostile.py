"""Cases of the fuzzer of functions and columns; `python -m tests.fuzz.hostile` runs as many as wanted."""

from __future__ import annotations

import pytest

from tests.fuzz.hostile.cases import Case, Fault
from tests.fuzz.hostile.functions import HOSTILE
from tests.fuzz.hostile.targets import TARGETS


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.lengthy) for first in range(250, 1000, 250))]
)
def test_answers_are_right_or_the_line_is_named_whatever_functions_and_columns_do(first: int) -> None:
    for number in range(first, first + 250):
        Case.drawn(number).run()


def test_a_wrong_answer_is_a_fault() -> None:
    case = next(case for number in range(1000) if (case := Case.drawn(number)).hostility.name == "plain")
    case.target = case.target._replace(meaning=lambda records: type(records)({("another", "record"): 1}))
    with pytest.raises(Fault, match="the operator has"):
        case.run()


def test_an_unexpected_error_is_a_fault() -> None:
    raises = next(each for each in HOSTILE if each.name == "raises Expected")
    plain = next(each for each in HOSTILE if each.name == "plain")
    case = Case.drawn(0)
    case.target = next(each for each in TARGETS if each.name == "map")
    case.hostility = plain._replace(disguise=raises.disguise)
    with pytest.raises(Fault, match="refused"):
        case.run()
