"""Delta queries: large answers in small pieces, refused programs, several workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import differential.data.interning as interning
from differential import Collection, Variable, example, new_input
from differential.data.interning import interner_of
from differential.delta import AltNeu, CollectionIndex, Prefixes, extend, half_join
from differential.graphs import motif, triangles
from timely import Scope, Worker, execute_directly
from timely.errors import BuildError, OperatorError


@pytest.mark.parametrize("outer", [1, 2])
def test_changes_of_several_epochs_in_one_message_do_not_hold_back_the_rounds_of_earlier_epochs(outer: int) -> None:
    def program(worker: Worker) -> object:
        with worker.dataflow(outer=outer) as scope:
            session, start = new_input(scope)
            with scope.iterative() as loop:
                value = Variable(loop, start)
                arranged = value.collection.arrange_by_key()
                onward = Prefixes.of(value.collection).half_join(arranged, lambda k, a, b: (a, b), AltNeu.ALT).results()
                result = onward.concat(value.collection).distinct()
                value.set(result)
                output = result.leave().output()
        for key, epoch in ((1, 1), (0, 0), (2, 2)):
            session.update_at(key, 5, time=(epoch, 2 - epoch)[:outer])
        session.close()
        for _ in range(500):
            worker.step()
        assert output.done(), worker.explain()
        return output.contents()

    assert execute_directly(program) == {(key, 5): 1 for key in range(3)}


@pytest.mark.parametrize(
    ("degree", "piece"),
    [(800, 1 << 12), pytest.param(13_000, 1 << 19, marks=[pytest.mark.slow, pytest.mark.timeout(300)])],
)
def test_a_node_of_large_degree_arrives_in_one_step_and_leaves_again(
    degree: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_join, "PIECE", piece)
    sizes: list[int] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            hub = edges.filter(lambda source, target: source == 0)
            spokes = edges.map(lambda source, target: (target, source)).filter(lambda target, source: target == 0)
            # Paths through the middle of the star: those whose second edge came last, and those whose first did.
            second = Prefixes.of(hub).half_join(spokes.arrange_by_key(), lambda b, c, a: (a, b, c), AltNeu.NEU)
            first = Prefixes.of(spokes).half_join(hub.arrange_by_key(), lambda b, a, c: (a, b, c), AltNeu.ALT)
            paths = first.concat(second).results()
            counted = paths.stream.inspect_batch(lambda _, batch: sizes.append(int(batch.each_diff().sum())))
            probe, found = counted.probe(), triangles(edges).output()
        ends, middle = np.arange(1, degree + 1), np.zeros(degree, np.int64)
        for epoch, diff in enumerate((1, -1)):
            session.update(np.append(ends, middle), np.append(middle, ends), diff=np.full(2 * degree, diff))
            session.update(np.array([1]), np.array([2]), diff=diff)
            session.advance_to(epoch + 1)
            before = len(sizes)
            while probe.less_than(session.time) or found.less_than(session.time):
                worker.step()
            assert max(map(abs, sizes[before:])) <= 2 * piece
            assert sum(sizes) == (degree**2 if diff > 0 else 0)
            corners = {(0, 1, 2): 1, (1, 0, 2): 1, (1, 2, 0): 1} if diff > 0 else {}
            assert found.contents() == corners
        session.close()
        worker.step_while(lambda: not found.done())

    execute_directly(program)
    assert len(sizes) >= 2 * degree**2 // (2 * piece)


def test_changes_at_one_time_meet_exactly_once() -> None:
    def program(scope: object) -> Collection:
        left = Collection.of(scope, np.array([1]), np.array([2]))  # type: ignore[arg-type]
        right = Collection.of(scope, np.array([1]), np.array([3]))  # type: ignore[arg-type]
        mine = Prefixes.of(left).half_join(right.arrange_by_key(), lambda key, a, b: (key, a, b), AltNeu.ALT)
        theirs = Prefixes.of(right).half_join(left.arrange_by_key(), lambda key, b, a: (key, a, b), AltNeu.NEU)
        return mine.concat(theirs).results()

    assert example(program) == [((1, 2, 3), 1)]


def test_text_can_be_looked_up() -> None:
    edges = np.array(["ä", "b", "ä"]), np.array(["b", "c", "c"])
    assert example(lambda scope: triangles(Collection.of(scope, *edges))) == [(("ä", "b", "c"), 1)]


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ([], "must be connected"),
        ([(0, 1), (2, 3)], "must be connected"),
        ([(0, 2)], "must be connected"),
        ([(0, 0)], "has a loop"),
        ([(0, 1), (1, 1)], "has a loop"),
    ],
)
def test_an_invalid_pattern_is_refused_at_its_line(pattern: list[tuple[int, int]], problem: str) -> None:
    with pytest.raises(BuildError, match=rf"^motif \(at {__file__}:\d+\): the pattern .* {problem}"):
        example(lambda scope: motif(Collection.of(scope, 1, 2), pattern))


@pytest.mark.parametrize("pattern", [[0, 1], [(0, 1, 2)], [("a", "b")], [(0, True)], ["ab"], None, 3, "ab"])
def test_a_pattern_that_is_no_list_of_pairs_is_refused(pattern: Any) -> None:
    with pytest.raises(BuildError, match=rf"^motif \(at {__file__}:\d+\): `pattern` must be a list of edges between"):
        example(lambda scope: motif(Collection.of(scope, 1, 2), pattern))


@pytest.mark.parametrize("operator", ["half_join", "count"])
def test_a_number_of_key_columns_of_prefixes_is_a_whole_number(operator: str) -> None:
    def program(scope: Scope) -> Collection:
        edges = Collection.of(scope, 1, 2)
        return getattr(Prefixes.of(edges), operator)(edges.arrange_by_key(), lambda *x: x, keys=1.0).results()  # type: ignore[no-any-return]

    with pytest.raises(BuildError, match=r"a key is of at least one column, so `keys` cannot be 1\.0"):
        example(program)


def test_an_extension_by_nothing_is_refused() -> None:
    with pytest.raises(BuildError, match="needs a relation"):
        example(lambda scope: extend(Prefixes.of(Collection.of(scope, 1)), []).results())


def test_keys_of_different_lengths_are_refused() -> None:
    with pytest.raises(BuildError, match="key is the first column"):
        example(
            lambda scope: (
                Prefixes.of(Collection.of(scope, 1, 2))
                .half_join(Collection.of(scope, 1, 2, 3, keys=2).arrange_by_key(), lambda *columns: columns)
                .results()
            )
        )


def test_the_keys_that_were_looked_up_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning, "LEAST_ITEMS", 16)
    kept = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            towns = Collection.of(scope, "ann", "Rome").arrange_by_key()
            session, asked = new_input(scope)
            probe = Prefixes.of(asked).half_join(towns, lambda *columns: columns).results().probe()
        for epoch in range(50):
            session.insert(np.array([f"{epoch} {number}" for number in range(20)]), 0)
            session.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(session.epoch))
            kept.append(len(interner_of(worker)))

    execute_directly(program)
    assert max(kept[25:]) == max(kept[:25]) < 200


def test_values_of_different_kinds_cannot_be_the_same() -> None:
    def program(scope: Scope) -> Collection:
        whole, parts = CollectionIndex(Collection.of(scope, 1, 2)), CollectionIndex(Collection.of(scope, 1, 2.5))
        nodes = Prefixes.of(Collection.of(scope, 1))
        return extend(nodes, [whole.extension(0), parts.extension(0)]).results()

    with pytest.raises(OperatorError, match=r"operator 'extend' failed.*some relations have integers as their values"):
        example(program)
