"""Random programs over pairs of texts, whose functions look at columns, pass them on, mix and slice them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import differential.data.interning as interning
from differential import Collection, Groups, new_input
from tests.thorough import examples
from timely import Config, Worker, execute

Pair = tuple[str, str]
Pairs = Counter[Pair]

TEXTS = st.sampled_from(["", "a", "b", "ab", "ba", "é", "name 1", "name 10", "name 2", "x" * 15, "x" * 16, "x" * 140])


class Operator(NamedTuple):
    """What an operator does to a collection of pairs, and to a multiset of them."""

    of_collection: Callable[[Collection], Collection]
    of_pairs: Callable[[Pairs], Pairs]


def mapped(function: Callable[[str, str], Pair]) -> Callable[[Pairs], Pairs]:
    def of_pairs(pairs: Pairs) -> Pairs:
        result: Pairs = Counter()
        for pair, count in pairs.items():
            result[function(*pair)] += count
        return result

    return of_pairs


def kept(predicate: Callable[[str, str], bool]) -> Callable[[Pairs], Pairs]:
    return lambda pairs: Counter({pair: count for pair, count in pairs.items() if predicate(*pair)})


def by_key(function: Callable[[list[str]], list[str]]) -> Callable[[Pairs], Pairs]:
    """Return the multiset of what a function makes of the values of each key, in order."""

    def of_pairs(pairs: Pairs) -> Pairs:
        groups: dict[str, list[str]] = {}
        for (key, value), count in sorted(pairs.items()):
            groups.setdefault(key, []).extend([value] * count)
        return Counter((key, value) for key, values in groups.items() for value in function(values))

    return of_pairs


def joined(pairs: Pairs) -> Pairs:
    result: Pairs = Counter()
    for (key, value), count in pairs.items():
        for (other, another), times in pairs.items():
            if key == other:
                result[value, another] += count * times
    return result


def unequal(key: Any, value: Any) -> Any:
    rows = np.flatnonzero(key != value)
    return rows, value[rows], key[rows]


def halves(key: Any, value: Any) -> Any:
    middle = len(key) // 2
    return np.concatenate((key[:middle], key[middle:])), np.concatenate((value[:middle], value[middle:]))


def first_of_each(groups: Groups) -> Any:
    """Return the key of each group as its value, twice."""
    return np.repeat(np.arange(len(groups)), 2), np.repeat(groups.keys[0], 2)


OPERATORS = {
    "pass on": Operator(lambda c: c.map(lambda k, v: (k, v)), Counter),
    "swap": Operator(lambda c: c.map(lambda k, v: (v, k)), mapped(lambda k, v: (v, k))),
    "key twice": Operator(lambda c: c.map(lambda k, v: (k, k)), mapped(lambda k, v: (k, k))),
    "constant": Operator(lambda c: c.map(lambda k, v: (k, "same")), mapped(lambda k, v: (k, "same"))),
    "look": Operator(lambda c: c.map(lambda k, v: (k, np.strings.upper(v))), mapped(lambda k, v: (k, v.upper()))),
    "mix with an array": Operator(
        lambda c: c.map(lambda k, v: (np.where(k == "a", "b!", k), v)),
        mapped(lambda k, v: ("b!" if k == "a" else k, v)),
    ),
    "mix": Operator(
        lambda c: c.map(lambda k, v: (np.where(k < v, k, v), v)), mapped(lambda k, v: (k if k < v else v, v))
    ),
    "halves": Operator(lambda c: c.map(halves), Counter),
    "less": Operator(lambda c: c.filter(lambda k, v: k < v), kept(lambda k, v: k < v)),
    "not a": Operator(lambda c: c.filter(lambda k, v: k != "a"), kept(lambda k, v: k != "a")),
    "slice": Operator(
        lambda c: c.flat_map(unequal), lambda pairs: mapped(lambda k, v: (v, k))(kept(lambda k, v: k != v)(pairs))
    ),
    "join": Operator(lambda c: c.join_map(c, lambda k, v, w: (v, w)), joined),
    "least": Operator(lambda c: c.min(), by_key(lambda values: values[:1])),
    "greatest": Operator(lambda c: c.max(), by_key(lambda values: values[-1:])),
    "two greatest": Operator(lambda c: c.top_k(2), by_key(lambda values: values[-2:])),
    "shortest": Operator(
        lambda c: c.argmin(lambda k, v: np.strings.str_len(v)), by_key(lambda values: [min(values, key=len)])
    ),
    "distinct": Operator(lambda c: c.distinct(), lambda pairs: Counter(dict.fromkeys(pairs, 1))),
    "twice": Operator(lambda c: c.concat(c), lambda pairs: pairs + pairs),
    "keys": Operator(lambda c: c.reduce(first_of_each), lambda pairs: Counter({(k, k): 2 for k, _ in pairs})),
    "count": Operator(
        lambda c: c.count().map(lambda k, count: (k, count.astype(np.dtypes.StringDType()))),
        by_key(lambda values: [str(len(values))]),
    ),
    "of itself": Operator(
        lambda c: c.semijoin(c.map(lambda k, v: v).distinct()),
        lambda pairs: kept(lambda k, v: k in {value for _, value in pairs})(pairs),
    ),
}
MOST_PAIRS = 2000
"""Programs that make more pairs than this, as several joins do, are cut short."""

Epoch = tuple[list[Pair], list[int]]


def expected(names: list[str], pairs: Pairs) -> tuple[list[str], Pairs]:
    """Return the operators up to where there are too many pairs, and what they make of a multiset."""
    for place, name in enumerate(names):
        if pairs.total() > MOST_PAIRS:
            return names[:place], pairs
        pairs = OPERATORS[name].of_pairs(pairs)
    return names, pairs


def run(names: list[str], epochs: list[Epoch], config: Config) -> list[Pairs]:
    """Return the contents of the result after each epoch, in which pairs are inserted, some of them removed later."""

    def program(worker: Worker) -> list[Pairs]:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            for name in names:
                collection = OPERATORS[name].of_collection(collection)
            output = collection.output()
        found = []
        for epoch, (inserted, removed) in enumerate(epochs):
            if inserted and worker.index == 0:
                session.insert(*map(list, zip(*inserted)))
            if worker.index == 0:
                for place in removed:
                    session.remove(*epochs[epoch - 1][0][place])
            session.advance_to(epoch + 1)
            worker.step_while(lambda reached=epoch + 1: output.less_than(reached))  # type: ignore[misc]
            found.append(Counter(output.contents()))
        session.close()
        worker.step_while(lambda: not output.done())
        return found

    return execute(program, config)[0]


@st.composite
def histories(draw: st.DrawFn) -> list[Epoch]:
    epochs: list[Epoch] = []
    for _ in range(draw(st.integers(1, 4))):
        before = epochs[-1][0] if epochs else []
        removed = draw(st.lists(st.integers(0, len(before) - 1), unique=True)) if before else []
        epochs.append((draw(st.lists(st.tuples(TEXTS, TEXTS), max_size=6)), removed))
    return epochs


@pytest.mark.parametrize("config", [Config(), Config(workers=3), Config(spill_above=0)], ids=["1", "3", "in files"])
@pytest.mark.parametrize("step", [3, 1 << 12])
@pytest.mark.timeout(600)
@settings(deadline=None, max_examples=examples(150))
@given(names=st.lists(st.sampled_from(list(OPERATORS)), min_size=1, max_size=5), epochs=histories())
def test_a_program_over_text_means_what_it_does_to_multisets(
    names: list[str], epochs: list[Epoch], step: int, config: Config
) -> None:
    pairs, answers = Counter[Pair](), []
    for epoch, (inserted, removed) in enumerate(epochs):
        gone = Counter(epochs[epoch - 1][0][place] for place in removed)
        pairs = pairs + Counter(inserted) - gone
        names, _ = expected(names, pairs)
        answers.append(pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interning, "LEAST_STEP", step)
        patch.setattr(interning, "_LEAST_WATCHED", 4)
        patch.setattr(interning.Interner, "_is_due", lambda _: True)
        assert run(names, epochs, config) == [expected(names, answer)[1] for answer in answers]
