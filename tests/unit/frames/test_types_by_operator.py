"""Every type passes through every operator as Python's values would, or is refused with a remedy."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from differential import Collection, example, new_input
from differential.frames import fill_null, is_null, nullable, typed
from differential.graphs import weakly_connected_components
from timely import Config, Worker, execute, execute_directly
from timely.errors import TimelyError
from timely.lowlevel import hashable

NAN = np.nan
SAMPLES: dict[str, list[Any]] = {
    "int64": [-1, 5, (1 << 63) - 1],
    "int64?": [-1, 5, None],
    "uint64": [0, 5, (1 << 64) - 1],
    "uint64?": [0, 1 << 63, None],
    "float64": [-np.inf, 0.5, NAN],
    "float64?": [0.5, NAN, None],
    "float32?": [0.5, NAN, None],
    "bool?": [False, True, None],
    "text": ["", "a", "é"],
    "text?": ["", "é", None],
    "bytes?": [b"", b"\xff", None],
    "date": [dt.date(1, 1, 1), dt.date(2024, 2, 29), None],
    "timestamp[us]": [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 4), None],
    "timestamp[ms, America/New_York]": [
        dt.datetime(1969, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 11, 3, 6, tzinfo=dt.UTC),
        None,
    ],
    "duration[s]": [dt.timedelta(-1), dt.timedelta(1), None],
    "time[us]": [dt.time(0), dt.time(23, 59, 59, 999_999), None],
    "decimal(9, 2)": [Decimal("-1.50"), Decimal("0.01"), None],
    "decimal(38, 2)": [Decimal("-1.50"), Decimal(10**30), None],
    "value": [[1, None], [2], None],
}
"""Three values of each type, in their order."""


def rows(name: str) -> tuple[Any, ...]:
    """Return columns of (value, number): the least value, the middle one twice, and the greatest."""
    least, middle, greatest = SAMPLES[name]
    return typed([middle, greatest, least, middle], name), np.array([1, 2, 3, 4])


def collection(scope: Any, name: str) -> Collection:
    return Collection.of(scope, *rows(name))


def swapped(given: Collection) -> Collection:
    return given.map(lambda value, number: (number % 2, value))


Expected = Callable[[Any, Any, Any], dict[Any, int]]
OPERATORS: dict[str, tuple[Callable[[Collection], Collection], Expected]] = {
    "map": (
        lambda one: one.map(lambda value, number: (number, value, value)),
        lambda a, b, c: {(1, b, b): 1, (2, c, c): 1, (3, a, a): 1, (4, b, b): 1},
    ),
    "filter": (lambda one: one.filter(lambda value, number: number > 2), lambda a, b, c: {(a, 3): 1, (b, 4): 1}),
    "filter of nulls": (
        lambda one: one.filter(lambda value, number: ~is_null(value)),
        lambda a, b, c: {(a, 3): 1, (b, 1): 1, (b, 4): 1, **({} if c is None else {(c, 2): 1})},
    ),
    "flat_map": (
        lambda one: one.flat_map(lambda value, number: (np.repeat(np.arange(len(number)), 2), value.repeat(2))),
        lambda a, b, c: {(a,): 2, (b,): 4, (c,): 2},
    ),
    "explode": (
        lambda one: one.explode(lambda value, number: (value, number)),
        lambda a, b, c: {(a,): 3, (b,): 5, (c,): 2},
    ),
    "concat, negate": (
        lambda one: one.concat(one, one.negate()),
        lambda a, b, c: {(b, 1): 1, (c, 2): 1, (a, 3): 1, (b, 4): 1},
    ),
    "consolidate": (lambda one: one.consolidate(), lambda a, b, c: {(b, 1): 1, (c, 2): 1, (a, 3): 1, (b, 4): 1}),
    "threshold": (
        lambda one: one.map(lambda value, number: value).threshold(lambda counts: counts > 1),
        lambda a, b, c: {(b,): 1},
    ),
    "intersect": (
        lambda one: one.intersect(one.filter(lambda value, number: number < 3)),
        lambda a, b, c: {(b, 1): 1, (c, 2): 1},
    ),
    "join_map": (
        lambda one: one.join_map(one, lambda value, left, right: (left, value, right)),
        lambda a, b, c: {(1, b, 1): 1, (1, b, 4): 1, (4, b, 1): 1, (4, b, 4): 1, (2, c, 2): 1, (3, a, 3): 1},
    ),
    "antijoin": (
        lambda one: one.antijoin(one.filter(lambda value, number: number == 2).map(lambda value, number: value)),
        lambda a, b, c: {(b, 1): 1, (a, 3): 1, (b, 4): 1},
    ),
    "cogroup": (
        lambda one: one.cogroup(one, lambda groups: (np.arange(len(groups)), groups.keys[0])),
        lambda a, b, c: {(each, each): 1 for each in (a, b, c)},
    ),
    "reduce": (
        lambda one: one.reduce(lambda groups: (np.arange(len(groups)), groups.keys[0][::1])),
        lambda a, b, c: {(each, each): 1 for each in (a, b, c)},
    ),
    "min": (lambda one: swapped(one).min(), lambda a, b, c: {(0, b): 1, (1, a): 1}),
    "max": (lambda one: swapped(one).max(), lambda a, b, c: {(0, c): 1, (1, b): 1}),
    "min of two columns": (
        lambda one: one.map(lambda value, number: (0, value, -number)).min(),
        lambda a, b, c: {(0, a, -3): 1},
    ),
    "argmax": (
        lambda one: swapped(one).argmax(lambda group, value: value),
        lambda a, b, c: {(0, c): 1, (1, b): 1},
    ),
    "totals": (
        lambda one: one.totals(lambda value, number: 1, lambda value, number: number),
        lambda a, b, c: {(a, 1, 3): 1, (b, 2, 5): 1, (c, 1, 2): 1},
    ),
    "keys of two columns": (
        lambda one: one.map(lambda value, number: (value, value, number), keys=2).count(),
        lambda a, b, c: {(a, a, 1): 1, (b, b, 2): 1, (c, c, 1): 1},
    ),
    "iterate": (
        lambda one: one.iterate(lambda inner: inner.concat(one.enter(inner.scope)).distinct()),
        lambda a, b, c: {(b, 1): 1, (c, 2): 1, (a, 3): 1, (b, 4): 1},
    ),
    "concatenate, where, take": (
        lambda one: one.map(
            lambda value, number: np.where(number > 2, np.concatenate([value, value])[: len(number)], value[::-1][::-1])
        ),
        lambda a, b, c: {(a,): 1, (b,): 2, (c,): 1},
    ),
}


def canonical(record: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(hashable(value) for value in record)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_type_passes_through_an_operator(name: str, operator: str) -> None:
    apply, expected = OPERATORS[operator]
    wanted = {canonical(record): count for record, count in expected(*map(hashable, SAMPLES[name])).items()}
    assert dict(example(lambda scope: apply(collection(scope, name)))) == wanted


@pytest.mark.parametrize("name", SAMPLES)
def test_components_are_named_by_values_of_a_type(name: str) -> None:
    least, middle, greatest = SAMPLES[name]
    edges = typed([middle, greatest], name), typed([greatest, least], name)
    found = dict(example(lambda scope: weakly_connected_components(Collection.of(scope, *edges))))
    labels = {record[1] for record in found}
    assert {record[0] for record in found} == set(map(hashable, SAMPLES[name]))
    assert len(labels) == 1


SUMS: dict[str, Any] = {
    "int64": "does not fit into 64 bits",
    "int64?": r"needs one column .*, without nulls: fill_null\(column, 0\) of differential.frames, not int64\?",
    "uint64": "does not fit into 64 bits",
    "uint64?": r"fill_null\(column, 0\) of differential.frames, not uint64\?",
    "float64": {(0, NAN): 1, (1, -np.inf): 1},
    "float64?": r"fill_null\(column, 0\) of differential.frames, not float64\?",
    "float32?": r"fill_null\(column, 0\) of differential.frames, not float32\?",
    "bool?": r"fill_null\(column, 0\) of differential.frames, not bool\?",
    "text": "sum needs one column of numbers as the value, not text",
    "text?": "sum needs one column of numbers",
    "bytes?": "sum needs one column of numbers",
    "date": "sum needs one column of numbers as the value, not date",
    "timestamp[us]": "sum needs one column of numbers",
    "timestamp[ms, America/New_York]": "sum needs one column of numbers",
    "duration[s]": r"the values of 0 have no sum: one is null; filter\(.*is_null",
    "time[us]": "sum needs one column of numbers",
    "decimal(9, 2)": r"the values of 0 have no sum: one is null; filter\(.*is_null",
    "decimal(38, 2)": r"the values of 0 have no sum: one is null; filter\(.*is_null",
    "value": "sum needs one column of numbers as the value, not value",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sum_is_exact_or_refused(name: str) -> None:
    def program(scope: Any) -> Collection:
        values = swapped(collection(scope, name))
        extreme = name in ("int64", "uint64")
        return (values.concat(values) if extreme else values).sum()

    wanted = SUMS[name]
    if isinstance(wanted, dict):
        assert dict(example(program)) == wanted
        return
    with pytest.raises(TimelyError, match=wanted):
        example(program)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("decimal(38, 0)", [Decimal(10**38 - 1), Decimal(1)], "add up to does not fit into 38 digits"),
        ("uint64", [(1 << 64) - 1, 1], "add up to does not fit into 64 bits"),
        ("decimal(38, 0)", [Decimal(1), None], "have no sum: one is null"),
    ],
)
def test_the_time_of_a_sum_that_there_is_not_is_named_though_several_epochs_are_added_up_at_once(
    name: str, values: list[Any], message: str
) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, given = new_input(scope)
            output = given.sum().output()
        for epoch, (key, value) in enumerate([(1, 0), (7, values[0]), (1, 1), (7, values[1]), (1, 2)]):
            session.advance_to(epoch)
            session.insert([key], typed([value], name))
        session.close()
        worker.step_while(lambda: not output.done())

    with pytest.raises(TimelyError, match=rf"'sum' failed at time \(3,\).* the values of 7 {message}"):
        execute_directly(program)


def test_sums_of_decimals_durations_and_unsigned_integers_follow_changes_exactly() -> None:
    columns = {
        "decimal(9, 2)": [Decimal("0.10"), Decimal("0.20"), Decimal("9999999.99")],
        "decimal(38, 2)": [Decimal("0.10"), Decimal("0.20"), Decimal(10**33)],
        "duration[us]": [dt.timedelta(microseconds=1), dt.timedelta(-3), dt.timedelta(5)],
        "uint64": [1, 2, 1 << 63],
    }

    def program(worker: Worker) -> Any:
        with worker.dataflow() as scope:
            sessions, outputs = [], []
            for _ in columns:
                session, given = new_input(scope)
                sessions.append(session)
                outputs.append(given.sum().output())
        found = []
        for epoch in (1, 2, 3):
            for session, (name, values) in zip(sessions, columns.items()):
                if worker.index == 0 and epoch == 1:
                    session.insert([7, 7, 7], typed(values, name))
                if worker.index == 0 and epoch == 2:
                    session.remove(7, typed(values[:1], name))
                if worker.index == 0 and epoch == 3:
                    session.remove([7, 7], typed(values[1:], name))
                session.advance_to(epoch)
            worker.step_while(lambda epoch=epoch: any(output.less_than(epoch) for output in outputs))
            found.append([output.contents() for output in outputs])
        return found

    first, second, third = execute(program, Config(workers=2))[0]
    zero = {name: type(values[0])(0) for name, values in columns.items()}
    with localcontext(prec=60):
        assert first == [{(7, sum(values, zero[name])): 1} for name, values in columns.items()]
        assert second == [{(7, sum(values[1:], zero[name])): 1} for name, values in columns.items()]
    assert third == [{}] * 4


CONFLICTS = [
    ("int64?", np.array([1.0]), r"int64\? on the left, floats on the right", "typed"),
    ("bytes?", np.array([b"a"]), r"bytes\? on the left, bytes on the right", "typed"),
    ("date", typed([dt.datetime(2024, 1, 1)], "timestamp[us]"), "date", "typed"),
    ("timestamp[us]", typed([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], "timestamp[us, UTC]"), "timestamp", "typed"),
    ("decimal(9, 2)", typed([Decimal(1)], "decimal(9, 3)"), "decimal", "typed"),
    ("uint64", np.array([5]), "uint64", "typed"),
]


@pytest.mark.parametrize(("name", "other", "shown", "remedy"), CONFLICTS)
def test_a_join_of_keys_of_two_types_is_refused_with_a_remedy(name: str, other: Any, shown: str, remedy: str) -> None:
    def program(scope: Any) -> Collection:
        return collection(scope, name).join(Collection.of(scope, other, 1))

    with pytest.raises(TimelyError, match=f"of different kinds: .*({shown}).*{remedy}"):
        example(program)


def test_the_remedies_of_a_join_work() -> None:
    def program(scope: Any) -> Collection:
        plain = Collection.of(scope, np.array([5, 6]), np.array([7, 8]))
        return collection(scope, "int64?").join(plain.map(lambda key, value: (nullable(key), value)))

    assert dict(example(program)) == {(5, 1, 7): 1, (5, 4, 7): 1}

    def filled(scope: Any) -> Collection:
        return (
            collection(scope, "int64?")
            .map(lambda key, value: (fill_null(key, 0), value))
            .join(Collection.of(scope, np.array([0, 6]), np.array([7, 8])))
        )

    assert dict(example(filled)) == {(0, 2, 7): 1}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (typed([1], "int64?"), np.array([1]), r"field 0 is .* in one record and .* in another"),
        (typed([dt.date(2024, 1, 1)], "date"), dt.datetime(2024, 1, 1), "field 0 is"),
        (np.array([1.5]), typed([None], "float64?"), "field 0 is"),
        (np.timedelta64(5, "s"), np.timedelta64(5, "ns"), r"field 0 is .* \(duration\[s\] and duration\[ns\]\)"),
        (np.timedelta64(5, "s"), dt.timedelta(1), r"field 0 is .* \(duration\[s\] and duration\[us\]\)"),
    ],
)
def test_an_input_refuses_a_record_of_another_type(first: Any, second: Any, message: str) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, _ = new_input(scope)
        session.insert(first)
        with pytest.raises(TimelyError, match=message):
            session.insert(second)

    execute(program)


def test_scalars_of_python_are_records() -> None:
    moment = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)

    def program(worker: Worker) -> Any:
        with worker.dataflow() as scope:
            session, given = new_input(scope)
            swap, swapped = new_input(scope)
            output, other = (
                given.output(),
                swapped.map(lambda moment, number: (moment, dt.time(number[0] % 1))).output(),
            )
        session.insert("ann", moment, dt.date(2024, 1, 1), dt.timedelta(1), dt.time(1))
        session.insert(["bob"] * 2, moment, dt.date(2024, 1, 1), dt.timedelta(1), dt.time(1))
        swap.insert(moment, [1, 2])
        swap.close()
        session.close()
        worker.step_while(lambda: not (output.done() and other.done()))
        assert other.contents() == {(moment, dt.time(0)): 2}
        return output.contents()

    rest = (moment, dt.date(2024, 1, 1), dt.timedelta(1), dt.time(1))
    assert execute(program)[0] == {("ann", *rest): 1, ("bob", *rest): 2}
