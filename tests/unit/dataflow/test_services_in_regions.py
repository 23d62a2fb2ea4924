"""What a worker offers besides answers is the same for operators in a region: accounts, spilling, interrupts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from differential import Collection, new_input
from differential.graphs import bfs, strongly_connected_components, weakly_connected_components
from differential.trace.storage import is_mapped
from timely import Config, Worker, execute
from timely.errors import DataflowFailed
from timely.observe.accounts import Account

Definition = Callable[[Collection], Collection]
both_ways = pytest.mark.parametrize("general", [False, True], ids=["regions", "general"])

DEFINITIONS: dict[str, Definition] = {
    "bfs": lambda edges: bfs(edges, Collection.of(edges.scope, 0)),
    "components": weakly_connected_components,
    "strong components": strongly_connected_components,
    "degrees": lambda edges: edges.map(lambda a, b: a).count().map(lambda a, n: n).count(),
}
"""Definitions whose operators run in regions: none is foreign, and nothing is probed inside of a loop."""


def changing_edges(epochs: int) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Return the changes of each epoch: the first inserts a graph, others replace some of its edges."""
    dice = np.random.default_rng(5)
    present = dice.integers(0, 40, (120, 2))
    yield present[:, 0], present[:, 1], np.ones(120, np.int64)
    for _ in range(epochs - 1):
        new, some = dice.integers(0, 40, (6, 2)), dice.choice(120, 6, replace=False)
        rows = np.concatenate([present[some], new])
        yield rows[:, 0], rows[:, 1], np.repeat([-1, 1], 6)
        present[some] = new


def run(definition: Definition, config: Config, look: Callable[[Worker, Any], Any], epochs: int = 6) -> tuple[Any, Any]:
    """Return all changes of an answer, and what `look` returns once the last change is answered.

    `look` is called before the dataflow is built, too, then with None; later it receives what it returned.
    """

    def program(worker: Worker) -> tuple[Any, Any]:
        opened = look(worker, None)
        with worker.dataflow("answer") as scope:
            session, edges = new_input(scope, name="edges")
            output = definition(edges).output()
        assert bool(scope.dataflow.regions) != (config.general or config.plain)
        for epoch, (source, target, diffs) in enumerate(changing_edges(epochs)):
            session.update(source, target, diff=diffs)
            session.advance_to(epoch + 1)
            worker.step_while(lambda least=epoch + 1: output.less_than(least))  # type: ignore[misc]
        found = look(worker, opened)
        session.close()
        worker.step_while(lambda: not output.done())
        return sorted(output.changes()), found

    return execute(program, config)[0]


def accounted(worker: Worker, account: Account | None) -> Any:
    if account is None:
        return Account(worker)
    operators = account.operators()
    account.close()
    return operators


@pytest.mark.parametrize("name", list(DEFINITIONS))
def test_operators_in_regions_have_the_accounts_that_they_have_otherwise(name: str) -> None:
    (answer, region), (expected, general) = (
        run(DEFINITIONS[name], Config(general=general), accounted) for general in (False, True)
    )
    assert answer == expected

    def sums(accounts: Any) -> list[tuple[Any, ...]]:
        return sorted(
            (each.path, each.name, each.origin, each.operator, each.records_in, each.records_out, each.rows_kept)
            for each in accounts
        )

    assert sums(region) == sums(general)
    busy = [each for each in region if each.records_in and not each.is_in_line]
    assert len(busy) > 2
    assert all(each.activations and each.nanoseconds for each in busy)


def mapped_files(directory: Path) -> int:
    """Return how many parts of the memory of this process are in files of a directory."""
    return sum(str(directory) in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the system does not list what is mapped")
@both_ways
@pytest.mark.parametrize("name", list(DEFINITIONS))
def test_batches_of_operators_in_regions_are_in_files_and_mean_the_same(
    name: str, general: bool, tmp_path: Path
) -> None:
    def mapped(worker: Worker, opened: Any) -> int:
        return mapped_files(tmp_path)

    in_memory, none = run(DEFINITIONS[name], Config(general=general), mapped)
    config = Config(general=general, spill_above=200, spill_dir=str(tmp_path))
    in_files, files = run(DEFINITIONS[name], config, mapped)
    assert in_files == in_memory
    assert none == 0 < files
    assert os.listdir(tmp_path) == []


@both_ways
def test_the_trace_of_an_arrangement_in_a_region_is_in_files(general: bool, tmp_path: Path) -> None:
    def program(worker: Worker) -> tuple[bool, list[bool], dict[Any, int]]:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            trace = numbers.distinct().arrange_by_key().trace()
            output = numbers.map(lambda a, b: b % 7).count().output()
        session.insert(np.arange(1000), np.arange(1000))
        session.advance_to(1)
        session.remove(np.arange(0, 1000, 2), np.arange(0, 1000, 2))
        session.advance_to(2)
        worker.step_while(lambda: output.less_than(2))
        mapped = [is_mapped(batch.keys) for batch in trace.batches()]
        contents = trace.contents(1).records()
        session.close()
        worker.step_while(lambda: not output.done())
        return bool(scope.dataflow.regions), mapped, contents

    config = Config(general=general, spill_above=1000, spill_dir=str(tmp_path))
    has_regions, mapped, contents = execute(program, config)[0]
    assert has_regions != (general or config.plain)
    assert mapped == [True] * len(mapped) != []
    assert contents == {(number, number): 1 for number in range(1, 1000, 2)}


def in_a_reduction(edges: Collection, called: Callable[[], None]) -> Collection:
    def least(groups: Any) -> Any:
        called()
        return np.arange(len(groups)), np.minimum.reduceat(groups.values[0], groups.offsets[:-1])

    return edges.iterate(lambda inner: inner.map(lambda a, b: (b, a)).concat(edges).reduce(least), limit=9)


def in_a_join(edges: Collection, called: Callable[[], None]) -> Collection:
    def joined(key: Any, a: Any, b: Any) -> Any:
        called()
        return a, b

    return edges.iterate(lambda inner: inner.join_map(edges, joined).concat(edges).distinct())


def in_line(edges: Collection, called: Callable[[], None]) -> Collection:
    def swapped(a: Any, b: Any) -> Any:
        called()
        return b, a

    return edges.distinct().iterate(lambda inner: inner.map(swapped).concat(edges).distinct())


def without_a_loop(edges: Collection, called: Callable[[], None]) -> Collection:
    def first(a: Any, b: Any) -> Any:
        called()
        return a

    return edges.distinct().map(first).count()


PLACES = [in_a_reduction, in_a_join, in_line, without_a_loop]


def pressed() -> None:
    """Do what Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


def exits() -> None:
    raise SystemExit(143)


def returns_with_an_interrupt() -> None:
    """Raise what Python raises for a compiled function that returns while an interrupt is pending."""
    raise SystemError("a function returned a result with an exception set") from KeyboardInterrupt()


STOPS: dict[str, tuple[Callable[[], None], type[BaseException]]] = {
    "Ctrl-C": (pressed, KeyboardInterrupt),
    "exit": (exits, SystemExit),
    "in compiled code": (returns_with_an_interrupt, KeyboardInterrupt),
}


def interrupted(worker: Worker, place: Callable[..., Collection], stop: Callable[[], None]) -> list[str]:
    """Interrupt a function of an operator at its second call of epoch 1; return what the program sees of it."""
    calls = due = 0

    def called() -> None:
        nonlocal calls
        calls += 1
        if calls == due:
            stop()

    with worker.dataflow("interrupted") as scope:
        session, edges = new_input(scope, name="edges")
        output = place(edges, called).output()
    assert bool(scope.dataflow.regions) != (worker.config.general or worker.config.plain)
    for source, target, diffs in changing_edges(1):
        session.update(source, target, diff=diffs)
    session.advance_to(1)
    worker.step_while(lambda: output.less_than(1))
    seen = [str(output.contents())]
    session.insert(np.array([1, 50]), np.array([50, 51]))
    due = calls + (1 if place is without_a_loop else 2)
    try:
        session.advance_to(2)
        worker.step_while(lambda: output.less_than(2))
    except BaseException as error:
        seen.append(repr(error))
    with pytest.raises(DataflowFailed) as lost:
        worker.step_while(lambda: output.less_than(2))
    seen += [str(lost.value), str(output.contents())]
    worker.drop_dataflow(scope.dataflow)
    return seen


@pytest.mark.parametrize("name", list(STOPS))
@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_in_a_region_ends_a_step_as_elsewhere_and_the_worker_goes_on(
    place: Callable[..., Collection], name: str
) -> None:
    stop, kind = STOPS[name]

    def program(worker: Worker) -> tuple[list[str], dict[Any, int]]:
        seen = interrupted(worker, place, stop)
        with worker.dataflow("again") as scope:
            session, edges = new_input(scope, name="edges")
            output = DEFINITIONS["components"](edges).output()
        for source, target, diffs in changing_edges(1):
            session.update(source, target, diff=diffs)
        session.close()
        worker.step_while(lambda: not output.done())
        return seen, output.contents()

    (seen, again), general = (execute(program, Config(general=each))[0] for each in (False, True))
    assert (seen, again) == general
    before, raised, lost, after = seen
    assert raised.startswith(kind.__name__)
    assert "has lost what it was computing when " in lost
    assert before == after
    assert again


@both_ways
@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_in_a_region_that_nobody_catches_ends_the_run(
    place: Callable[..., Collection], general: bool
) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, edges = new_input(scope)
            output = place(edges, pressed).output()
        session.insert(np.array([1, 2]), np.array([2, 3]))
        session.close()
        worker.step_while(lambda: not output.done())

    with pytest.raises(KeyboardInterrupt):
        execute(program, Config(general=general))
