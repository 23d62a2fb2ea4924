"""After each epoch an upsert input has the contents of a dictionary that receives the same upserts."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings, strategies as st

from benchmarks.simulated import SimulatedNetwork
from differential import Output, UpsertSession, new_upsert_input
from tests.oracle.grid import STEPS, contents
from tests.thorough import examples
from timely import Config, Worker

Value = tuple[int, str] | None


class Statement(NamedTuple):
    """A worker sets the value of some keys, or removes them."""

    worker: int
    keys: list[int]
    value: Value


class Case(NamedTuple):
    """The upserts of each epoch, how many epochs at a time, how many workers, and a seed."""

    epochs: list[list[Statement]]
    together: int
    workers: int
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    workers = draw(st.integers(1, 3))
    value = st.none() | st.tuples(st.integers(0, 2), st.sampled_from(("", "x", "é")))
    keys = st.lists(st.integers(0, 5), min_size=1, max_size=3)
    statement = st.builds(Statement, st.integers(0, workers - 1), keys, value)
    epochs = draw(st.lists(st.lists(statement, max_size=5), min_size=1, max_size=6))
    return Case(epochs, draw(st.integers(1, 6)), workers, draw(st.integers(0, 1 << 16)))


def run(case: Case) -> list[Any]:
    network = SimulatedNetwork(case.workers, case.seed)
    workers = [Worker(allocator, Config(workers=case.workers)) for allocator in network.allocators]
    parts: list[tuple[UpsertSession, Output, Output]] = []
    for worker in workers:
        with worker.dataflow() as scope:
            session, collection = new_upsert_input(scope)
            parts.append((session, collection.output(), collection.map(lambda key, *_: key).count().output()))
    random = Random(case.seed)

    def step_while(unfinished: Any) -> None:
        for _ in range(STEPS):
            if not unfinished():
                return
            if network.pending and random.random() < 0.6:
                network.deliver_one()
            else:
                random.choice(workers).step()
        raise AssertionError("\n".join(worker.explain() for worker in workers))

    for epoch, statements in enumerate(case.epochs):
        for worker, keys, value in statements:
            session = parts[worker][0]
            fields = (np.array(keys),) if len(keys) > 1 else (keys[0],)
            session.unset(*fields) if value is None else session.set(*fields, *value)
            if random.random() < 0.3:
                session.flush()
        for session, *_ in parts:
            session.advance_to(epoch + 1)
        if epoch % case.together == 0:
            step_while(lambda: parts[0][1].less_than(parts[0][0].epoch))
    for session, *_ in parts:
        session.close()
    step_while(lambda: any(worker.dataflows for worker in workers))
    assert all(count == 1 for _, count in parts[0][2].contents())
    return parts[0][1].changes()


@given(case=cases())
@settings(max_examples=examples(100), deadline=None)
def test_the_last_upsert_of_a_key_holds_after_every_epoch(case: Case) -> None:
    changes = run(case)
    held: dict[int, Value] = {}
    for epoch, statements in enumerate(case.epochs):
        for _, keys, value in sorted(statements, key=lambda statement: statement.worker):
            held.update(dict.fromkeys(keys, value))
        expected = {(key, *value): 1 for key, value in held.items() if value is not None}
        assert contents(changes, (epoch,)) == Counter(expected)
        changes_now = [record for record, time, _ in changes if time == (epoch,)]
        assert len(changes_now) == len(set(changes_now))
