"""Columns of every type mean to operators what lists of Python values mean to a plain program.

Rows are inserted in one epoch and some removed in the next. The oracle knows nothing of columns: it counts values in
dictionaries, and orders them by `values.order`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, new_input
from differential.frames import Frame, read, typed
from tests.property.frames.values import NESTED, VALUES, canonical, columns_of, order, same
from timely import Config, Worker, execute
from timely.data.opaque import decoded, encoded
from timely.lowlevel import Items

Answers = list[dict[tuple[Any, ...], int]]


def answers(name: str, rows: list[tuple[int, Any]], removed: list[tuple[int, Any]], workers: int) -> list[Answers]:
    """Return, after each of two epochs, the contents of the collections that `operators` makes of (group, value)."""

    def program(worker: Worker) -> list[Answers]:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            outputs = [made.output() for made in operators(collection)]
        found = []
        for epoch, (change, part) in enumerate(((session.insert, rows), (session.remove, removed)), 1):
            mine = part[worker.index :: worker.peers]
            if mine:
                change([group for group, _ in mine], typed([value for _, value in mine], name))
            session.advance_to(epoch)
            worker.step_while(lambda epoch=epoch: any(output.less_than(epoch) for output in outputs))
            found.append([output.contents() for output in outputs])
        session.close()
        return found

    return execute(program, Config(workers=workers))[0]


def operators(collection: Collection) -> list[Collection]:
    swapped = collection.map(lambda group, value: (value, group))
    return [
        collection,
        swapped.map(lambda value, group: value).count(),
        collection.distinct(),
        swapped.join(swapped),
        swapped.semijoin(swapped.filter(lambda value, group: group == 0).map(lambda value, group: value)),
        collection.min(),
        collection.max(),
        collection.top_k(2),
        collection.concat(collection.negate()),
        swapped.map(lambda value, group: (value, group)).min(),
    ]


def expected(rows: Counter[tuple[int, Any]]) -> Answers:
    """Return what `operators` make of records and how often each occurs."""
    values: Counter[Any] = Counter()
    for (_, value), count in rows.items():
        values[value] += count
    groups: dict[int, list[Any]] = {}
    for group, value in rows.elements():
        groups.setdefault(group, []).append(value)
    for group in groups:
        groups[group].sort(key=order_of)
    zeros = {value for group, value in rows if group == 0}
    joined: Counter[Any] = Counter()
    for (one, value), count in rows.items():
        for (other, again), more in rows.items():
            if (value,) == (again,):  # NaN is itself, though it equals nothing
                joined[value, one, other] += count * more
    top = Counter((group, value) for group, found in groups.items() for value in found[-2:])
    return [
        dict(rows),
        dict.fromkeys(values.items(), 1),
        dict.fromkeys(rows, 1),
        dict(joined),
        {(value, group): rows[group, value] * rows[0, value] for group, value in rows if value in zeros},
        {(group, found[0]): 1 for group, found in groups.items()},
        {(group, found[-1]): 1 for group, found in groups.items()},
        dict(top),
        {},
        {(value, min(group for group, again in rows if (again,) == (value,))): 1 for value in values},
    ]


def order_of(value: Any) -> Any:
    """Return the order of a value in its hashable form."""
    return order(decoded(value.key) if isinstance(value, Items) else value)


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_operators_mean_what_they_do_to_python_values(name: str, data: st.DataObject) -> None:
    values = data.draw(columns_of(name, 1))
    rows = [(data.draw(st.integers(0, 2)), value) for value in values]
    removed = rows[: data.draw(st.integers(0, len(rows)))]
    counts = Counter((group, canonical(value)) for group, value in rows)
    found = answers(name, rows, removed, data.draw(st.sampled_from([1, 2])))
    assert found[0] == expected(counts)
    assert found[1] == expected(counts - Counter((group, canonical(value)) for group, value in removed))


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_frame_passes_through_a_collection(name: str, data: st.DataObject) -> None:
    frame = Frame(("id", "value"), ([*range(5)], typed(data.draw(columns_of(name, 5))[:5], name)))

    def program(worker: Worker) -> Frame:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            trace = collection.filter(lambda id, value: id >= 0).map(lambda id, value: (id, value)).arrange_by_key()
            reader = trace.trace()
        session.insert(*frame.columns)
        session.close()
        worker.step_while(lambda: bool(reader.upper))
        return Frame.of_contents(frame.names, reader.contents(0))

    found = execute(program)[0]
    assert found == frame
    assert found.types == {"id": "int64", "value": name}


@pytest.mark.parametrize("name", [name for name in VALUES if name != "value"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_frame_passes_through_arrow(name: str, data: st.DataObject) -> None:
    values = data.draw(columns_of(name, 1))
    frame = Frame(("a",), (typed(values, name),))
    found = read(frame.to_arrow(), types={"a": name})
    assert found == frame
    assert list(map(canonical, found["a"].tolist())) == list(map(canonical, values))


@settings(max_examples=150, deadline=None)
@given(one=NESTED, other=NESTED)
def test_bytes_of_lists_and_structs_are_equal_and_less_as_these_are(one: Any, other: Any) -> None:
    for first, second in ((one, other), (one, one), (one, decoded(encoded(one)))):
        assert (encoded(first) == encoded(second)) == same(first, second)
        assert (encoded(first) < encoded(second)) == (order(first) < order(second))
    assert same(decoded(encoded(one)), one)


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3), min_size=1))
def test_lists_pass_through_arrow(values: list[list[int | None] | None]) -> None:
    table = pa.table({"a": pa.array(values, pa.list_(pa.int64()))})
    frame = read(table)
    assert frame.to_dict() == {"a": values}
    assert frame.to_arrow()["a"].to_pylist() == values
