"""Functions of the program receive read-only columns, and their results cannot be changed afterwards."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import timely
import timely.graphlinq as graphlinq
from differential import CoGroups, Collection, Groups, example, new_input
from differential.delta import Prefixes
from timely import Columns, Exchange, Pipeline, Stream, execute_directly
from timely.data.user_functions import call, consult, freeze
from timely.errors import DataError, OperatorError
from timely.graphlinq import Aggregator, Graph, VertexProgram

Function = Callable[..., Any]
NUMBERS = np.array([1, 1, 2]), np.array([10, 20, 5])


def spoil(*columns: Any) -> Any:
    """Write to the first column that is an array."""
    column = next(each for each in columns if isinstance(each, np.ndarray))
    column[:] = 101  # here
    return columns


def of_groups(groups: Groups) -> Any:
    return spoil(*groups.values)


def counts_of_groups(groups: Groups) -> Any:
    return spoil(groups.counts)


def keys_of_groups(groups: Groups) -> Any:
    return spoil(*groups.keys)


def of_both_groups(groups: CoGroups) -> Any:
    return spoil(*groups[0].values)


COLLECTIONS: dict[str, Callable[[Collection], Any]] = {
    "map": lambda one: one.map(spoil),
    "flat_map": lambda one: one.flat_map(spoil),
    "filter": lambda one: one.filter(spoil),
    "explode": lambda one: one.explode(spoil),
    "inspect_batch": lambda one: one.inspect_batch(lambda updates: spoil(*updates.columns)),
    "inspect_batch diffs": lambda one: one.inspect_batch(lambda updates: spoil(updates.times[0])),
    "threshold": lambda one: one.threshold(spoil),
    "join_map": lambda one: one.join_map(one, spoil),
    "reduce": lambda one: one.reduce(of_groups),
    "reduce counts": lambda one: one.reduce(counts_of_groups),
    "reduce keys": lambda one: one.reduce(keys_of_groups),
    "cogroup": lambda one: one.cogroup(one, of_both_groups),
    "argmin": lambda one: one.argmin(spoil),
    "argmax": lambda one: one.argmax(spoil),
    "totals": lambda one: one.totals(spoil),
    "window": lambda one: one.window(2, at=spoil),
    "window late": lambda one: one.window(2, at=lambda key, value: -5, late=lambda late: spoil(*late.columns)),
    "enter_at": lambda one: _in_a_loop(one, spoil),
    "identifiers": lambda one: one.identifiers(hash=lambda columns: spoil(*columns)),
    "of an index": lambda one: one.arrange_by_key().as_collection().map(spoil),
    "of a count": lambda one: one.count().map(spoil),
    "of distinct records": lambda one: one.distinct().map(spoil),
    "Prefixes.map": lambda one: Prefixes.of(one).map(spoil).results(),
    "Prefixes.filter": lambda one: Prefixes.of(one).filter(spoil).results(),
    "Prefixes.half_join": lambda one: Prefixes.of(one).half_join(one.arrange_by_key(), spoil).results(),
    "Prefixes.count": lambda one: Prefixes.of(one).count(one.arrange_by_key(), spoil).results(),
}
OF_NO_COLUMNS = {"inspect", "delay", "iterate", "reduce_each"}
"""Methods whose functions receive Python values, times or collections."""
OF_NO_ERRORS = {"attempt"}
"""Methods for which an error is data."""


def _in_a_loop(one: Collection, rounds: Function) -> Collection:
    with one.scope.iterative() as inner:
        return one.enter_at(inner, rounds).leave()


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_function_that_writes_to_columns_of_a_collection_raises_in_its_line(name: str) -> None:
    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            COLLECTIONS[name](Collection.of(scope, *NUMBERS))

    with pytest.raises(OperatorError, match=rf"test_user_functions.py:{_line_of_spoil()}.*read-only"):
        execute_directly(program)


def test_an_attempt_to_write_to_columns_makes_rejects_that_name_its_line() -> None:
    found = example(lambda scope: Collection.of(scope, *NUMBERS).attempt(spoil).rejects)
    assert [record for (record, _, _), _ in found] == ["(1, 10)", "(1, 20)", "(2, 5)"]
    for (_, error, line), _ in found:
        assert "read-only" in error
        assert line.endswith(f"test_user_functions.py:{_line_of_spoil()}")


STREAMS: dict[str, Callable[[Stream], Any]] = {
    "map_batch": lambda one: one.map_batch(spoil),
    "map": lambda one: one.map(spoil),
    "flat_map": lambda one: one.flat_map(spoil),
    "filter": lambda one: one.filter(spoil),
    "inspect_batch": lambda one: one.inspect_batch(lambda time, batch: spoil(*batch.columns)),  # type: ignore[union-attr]
    "partition": lambda one: one.partition(2, spoil),
    "branch": lambda one: one.branch(spoil),
    "ok_err": lambda one: one.ok_err(spoil),
    "accumulate": lambda one: one.accumulate(0, spoil),
    "aggregate": lambda one: one.aggregate(spoil),
    "combine": lambda one: one.combine(spoil),
    "combine_everywhere": lambda one: one.combine_everywhere(spoil),
    "state_machine": lambda one: one.state_machine(spoil),
    "delay": lambda one: one.delay(spoil),
    "unary": lambda one: one.unary(Pipeline(), _first_batch),
    "unary_frontier": lambda one: one.unary_frontier(Pipeline(), _on_first_batch),
    "unary_notify": lambda one: one.unary_notify(Pipeline(), _first_batch),
    "binary": lambda one: one.binary(one, Pipeline(), Pipeline(), _first_batch),
    "binary_frontier": lambda one: one.binary_frontier(one, Pipeline(), Pipeline(), _on_first_batch),
    "binary_notify": lambda one: one.binary_notify(one, Pipeline(), Pipeline(), _first_batch),
    "sink": lambda one: one.sink(Pipeline(), lambda input: _first_batch(input, None)),
    "graphlinq.node_join": lambda one: graphlinq.node_join(one, one, spoil),
    "graphlinq.state_machine": lambda one: graphlinq.state_machine(one, lambda node: 0 * node, spoil),
    "graphlinq.state_machine init": lambda one: graphlinq.state_machine(
        one, spoil, lambda state, value: (state, value)
    ),
    "graphlinq.binary_state_machine": lambda one: graphlinq.binary_state_machine(
        one, one, lambda node: 0 * node, spoil, spoil
    ),
    "graphlinq.transmit": lambda one: graphlinq.transmit(Graph(one), one, along=spoil),
    "graphlinq.graph_join": lambda one: graphlinq.graph_join(Graph(one), one, spoil),
    "graphlinq.graph_reduce": lambda one: graphlinq.graph_reduce(Graph(one), one, np.add, along=spoil),
    "graphlinq.pregel init": lambda one: _pregel(one, init=spoil),
    "graphlinq.pregel message": lambda one: _pregel(one, message=spoil),
    "graphlinq.pregel update": lambda one: _pregel(one, update=spoil),
    "graphlinq.pregel sends": lambda one: _pregel(one, sends=spoil),
    "graphlinq.pregel along": lambda one: _pregel(one, along=spoil),
    "graphlinq.pregel aggregators": lambda one: _pregel(
        one, aggregators={"sum": Aggregator(np.add, spoil)}, supersteps=3
    ),
}
STREAMS_OF_NO_COLUMNS = {"inspect", "inspect_time", "branch_when", "reclock", "exchange"}
"""Methods whose functions receive Python values or times, and one that calls them only with several workers."""


def _on_first_batch(capability: Any) -> Callable[..., None]:
    capability.drop()
    return _first_batch


def _first_batch(input: Any, *_: Any) -> None:
    for _capability, batch in input:
        spoil(*batch.columns)


def _pregel(one: Stream, **functions: Any) -> Stream:
    program: dict[str, Any] = {
        "init": lambda node: node.copy(),
        "message": lambda label: label,
        "update": lambda superstep, label, least: np.minimum(label, least),
    }
    return graphlinq.pregel(Graph(one), VertexProgram(combine=np.minimum, **{**program, **functions}))


@pytest.mark.parametrize("name", STREAMS)
def test_a_function_that_writes_to_columns_of_a_stream_raises_in_its_line(name: str) -> None:
    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            STREAMS[name](scope.to_stream((np.array([1, 2, 3]), np.array([2, 3, 4]))))

    with pytest.raises(OperatorError, match=rf"test_user_functions.py:{_line_of_spoil()}.*read-only"):
        execute_directly(program)


def test_a_route_that_writes_to_columns_raises() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Exchange(spoil).split(Columns((np.arange(3),)), 2)


def _line_of_spoil() -> int:
    lines, start = inspect.getsourcelines(spoil)
    return start + next(number for number, line in enumerate(lines) if "# here" in line)


def _with_functions(cls: type) -> Iterator[str]:
    """Yield the names of the public methods that take a function."""
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        annotations = [str(parameter.annotation) for parameter in inspect.signature(method).parameters.values()]
        if not name.startswith("_") and any(kind in each for each in annotations for kind in FUNCTIONS):
            yield name


FUNCTIONS = ("Callable", "Transition", "Reduction", "Logic", "Rule")


@pytest.mark.parametrize(
    ("cls", "tried"),
    [
        (Collection, {*COLLECTIONS, *OF_NO_COLUMNS, *OF_NO_ERRORS}),
        (Stream, {*STREAMS, *STREAMS_OF_NO_COLUMNS}),
        (Prefixes, {name.removeprefix("Prefixes.") for name in COLLECTIONS}),
    ],
)
def test_every_operator_that_takes_a_function_is_tried(cls: type, tried: set[str]) -> None:
    untried = set(_with_functions(cls)) - tried
    assert not untried, f"give each of {untried} a function that writes to its columns, in {__file__}"


def test_a_function_cannot_change_its_result_by_writing_to_it_later() -> None:
    buffer = np.arange(3)
    for result in (call(lambda: buffer, ()), call(lambda: (buffer,), ())[0], call(lambda: ((buffer,), 1), ())[0][0]):
        assert not np.shares_memory(result, buffer)
        assert result.tolist() == buffer.tolist()


def test_a_view_of_a_buffer_that_a_function_keeps_is_copied() -> None:
    buffer = np.arange(6)
    views = [lambda: buffer[:3], lambda: buffer[::2], lambda: _read_only(buffer[1:]), lambda: buffer.reshape(2, 3)[0]]
    for view in views:
        assert not np.shares_memory(call(view, ()), buffer)


def test_a_tuple_that_a_function_keeps_is_copied() -> None:
    kept = np.arange(3), np.arange(2)
    assert not any(map(np.shares_memory, call(lambda: kept, ()), kept))


def test_fresh_results_and_lent_columns_are_not_copied() -> None:
    numbers, addresses = np.arange(4), []

    def fresh(column: Any) -> Any:
        result = column + 1
        addresses.append(result.ctypes.data)
        return column, result, column[1:]

    one, other, part = call(fresh, (numbers,))
    assert one is numbers
    assert other.ctypes.data == addresses[0]
    assert other.flags.writeable
    assert np.shares_memory(part, numbers)
    assert not part.flags.writeable


def test_a_subclass_of_arrays_is_copied() -> None:
    masked = np.ma.MaskedArray(np.arange(3))
    assert not np.shares_memory(call(lambda: masked, ()), masked.data)


@given(st.lists(st.sampled_from(["lent", "part", "fresh", "kept", "view"]), min_size=1, max_size=4), st.booleans())
def test_the_program_cannot_write_to_the_columns_it_returned(kinds: list[str], nested: bool) -> None:
    own, kept = np.arange(4), np.arange(4)
    made = {
        "lent": lambda column: column,
        "part": lambda column: column[::2],
        "fresh": lambda column: column.copy(),
        "kept": lambda column: kept,
        "view": lambda column: kept[1:],
    }

    def function(column: Any) -> Any:
        result = tuple([made[kind](column) for kind in kinds])
        return (result, 1) if nested else result

    result = call(function, (own,))
    before = [each.tolist() for each in (result[0] if nested else result)]
    kept[:] = -1
    assert [each.tolist() for each in (result[0] if nested else result)] == before


def test_an_error_names_the_columns_that_a_function_received() -> None:
    with pytest.raises(TypeError) as caught:
        consult(lambda one: one, (np.arange(3), np.arange(3.0)))
    assert caught.value.__notes__ == [
        "it received int64[3], float64[3]; most functions are given each column of the records as an argument"
    ]
    with pytest.raises(TypeError) as caught:
        call(int, (np.arange(3),))
    assert "functions receive whole columns, which are read-only; timely.rowwise" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="ambiguous") as wrong:
        call(lambda one: one > 1 and one < 3, (np.arange(3),))
    assert "(conditions are joined by `&` and `|`, and `np.where` chooses between values)" in wrong.value.__notes__[0]


def _read_only(column: Any) -> Any:
    column.setflags(write=False)
    return column


def test_arrays_that_are_sent_or_inserted_stay_the_programs_own() -> None:
    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            session, numbers = new_input(scope)
            contents = numbers.output()
            sent, stream = timely.new_input(scope)
            unordered, other = timely.new_unordered_input(scope)
            streamed, constant = np.arange(3), np.arange(3)
            seen: list[Any] = []
            for each in (stream, other, scope.to_stream(streamed), scope.to_stream((streamed, constant))):
                each.inspect(seen.append)
            collected = Collection.of(scope, constant).output()
        given = np.arange(3)
        session.insert(given)
        sent.send(given)
        unordered.send(unordered.capability, given)
        for each in (given, streamed, constant):
            assert each.flags.writeable
            each[:] = 99
        for handle in (session, sent, unordered):
            handle.close()
        worker.step_while(lambda: not (contents.done() and collected.done()))
        assert set(contents.contents()) == set(collected.contents()) == {(0,), (1,), (2,)}
        assert sorted(map(str, seen)) == sorted(map(str, [0, 1, 2] * 3 + [(0, 0), (1, 1), (2, 2)]))

    execute_directly(program)


def test_arrays_of_a_batch_that_is_sent_become_read_only() -> None:
    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            sent, stream = timely.new_input(scope)
            seen: list[Any] = []
            stream.inspect(seen.append)
        own, base = np.arange(2), np.arange(4)
        sent.send_batch(Columns((own,)))
        sent.send_batch(Columns((base[:2],)))
        with pytest.raises(ValueError, match="read-only"):
            own[:] = 99
        base[:] = 99
        sent.close()
        while worker.step():
            pass
        assert seen == [0, 1, 0, 1]

    execute_directly(program)


def test_a_view_is_taken_over_if_nothing_else_refers_to_its_array() -> None:
    view = np.arange(4).view(np.uint64)[1:]
    (frozen,) = freeze((view,))
    assert frozen is view
    assert frozen.base is not None
    assert not frozen.base.flags.writeable
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        view.setflags(write=True)


HELD: dict[str, Callable[[Any], Any]] = {
    "the array": lambda base: base,
    "another view": lambda base: base[1:],
    "a buffer": lambda base: base.data,
    "a list": lambda base: [base],
    "an iterator": lambda base: base.flat,
}
"""What a program may keep of an array, to write to it later."""


@pytest.mark.parametrize("kind", HELD)
def test_a_view_of_an_array_that_a_program_holds_is_copied(kind: str) -> None:
    base = np.arange(4)
    view, held = base[:], HELD[kind](base)
    del base
    (frozen,) = freeze((view,))
    assert not np.shares_memory(frozen, view)
    assert held is not None
    assert view.flags.writeable


def test_views_of_one_array_are_copied_but_not_if_it_is_read_only() -> None:
    pairs = np.arange(6)
    views = pairs[0::2], pairs[1::2]
    del pairs
    assert not any(map(np.shares_memory, freeze(views), views))
    table = np.arange(6)
    table.setflags(write=False)
    views = table[0::2], table[1::2]
    assert all(map(np.shares_memory, freeze(views), views))


@pytest.mark.parametrize("operator", [Collection.filter, Collection.map])
def test_a_hole_in_a_masked_result_is_refused(operator: Function) -> None:
    holed = np.ma.MaskedArray([True, False], mask=[False, True])

    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            operator(Collection.of(scope, np.array([1, 2])), lambda column: holed)

    with pytest.raises(OperatorError, match="masked values, as at row 1"):
        execute_directly(program)


NAMES = np.array(["ann", "joanna"], np.dtypes.StringDType())


def test_a_text_for_all_rows_with_a_whole_column_in_it_is_refused() -> None:
    numbers = np.array([1, 2])
    with pytest.raises(DataError, match=r"one text for all rows, .*: 'item-\[1 2\]'; timely.rowwise"):
        call(lambda column: f"item-{column}", (numbers,))
    with pytest.raises(DataError, match=r"whole column in it: \"\['ann' 'joanna'\]-\[1 2\]\""):
        call(lambda names, column: (column, f"{names}-{column}"), (NAMES, numbers))
    assert call(lambda column: "item", (numbers,)) == "item"
    assert call(lambda column: "[]", (numbers[:0],)) == "[]"


def test_whether_a_column_has_a_text_is_no_condition_on_its_rows() -> None:
    def program(worker: Any) -> None:
        with worker.dataflow() as scope:
            Collection.of(scope, NAMES, np.array([1, 2])).filter(lambda name, number: "ann" in name)

    with pytest.raises(OperatorError, match=r"`'ann' in column` is about a whole column of text: np\.strings\.find"):
        execute_directly(program)
