"""The agenda of a worker: dataflows in which something is due have their turn, in order, and none is forgotten."""

from __future__ import annotations

from hypothesis import given, strategies as st

from timely.progress.due import Agenda, Due

COUNT = 4
SETS = st.lists(st.integers(0, COUNT - 1), max_size=3)
STEPS = st.lists(st.tuples(SETS, st.dictionaries(st.integers(0, COUNT - 1), SETS)), max_size=6)


@given(st.lists(st.tuples(SETS, st.dictionaries(st.integers(0, COUNT - 1), SETS)), max_size=6))
def test_a_dataflow_has_a_turn_in_each_step_before_which_something_is_due(
    steps: list[tuple[list[int], object]],
) -> None:
    agenda = Agenda()
    dues = [Due(agenda, number) for number in range(COUNT)]
    for number in range(COUNT):
        agenda.add(number)
    wanted = set(range(COUNT))

    def make_due(number: int) -> None:
        wanted.add(number)
        if not dues[number].is_set:
            dues[number].set()

    for before, during in steps:
        for number in before:
            make_due(number)
        turns = []
        agenda.begin()
        while (number := agenda.next()) >= 0:
            turns.append(number)
            wanted.discard(number)
            for other in during.get(number, ()):
                make_due(other)
            dues[number].end_turn(number in wanted)
        assert turns == sorted(set(turns)), "each once, in order"
        assert set(before) <= set(turns), "in this step"
        assert wanted <= set(agenda.numbers()), "what became due after its turn is visited in the next step"
        assert [due.is_set for due in dues] == [number in wanted for number in range(COUNT)]


def test_a_turn_that_an_error_ends_is_repeated() -> None:
    agenda = Agenda()
    first, second = Due(agenda, 0), Due(agenda, 1)
    agenda.add(0)
    agenda.add(1)
    agenda.begin()
    assert agenda.next() == 0  # and an error ends the step
    first.end_turn(False)
    assert agenda.next() == 1
    first.set()
    agenda.begin()
    assert agenda.next() == 0
    first.end_turn(False)
    assert agenda.next() == 1
    second.end_turn(False)
    assert (agenda.next(), agenda.numbers()) == (-1, [])
