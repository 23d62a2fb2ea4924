"""Pathway: a table of the columns and one that changes, as a pipeline that runs in a thread.

The pipeline reports the changes of its answer to a callback, in a commit of the connector at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any

from benchmarks.graphs import Ints
from benchmarks.harness import check
from benchmarks.session_tools.cities import customers

WAIT_SECONDS = 600.0


class _Piped:
    names: tuple[str, str]

    def __init__(self, one: Ints, other: Ints) -> None:
        import_module("pathway")
        self._columns = one, other
        self._changes: SimpleQueue[tuple[list[int], list[int]] | None] = SimpleQueue()
        self._found: dict[int, int] = {}
        self._changed = Condition()

    def first(self) -> None:
        import pandas as pd
        import pathway as pw

        (one, other), changes = self.names, self._changes

        class Changes(pw.io.python.ConnectorSubject):  # type: ignore[misc]
            def run(self) -> None:
                while (columns := changes.get()) is not None:
                    for first, second in zip(*columns):
                        self.next(**{one: first, other: second})
                    self.commit()

        schema = pw.schema_from_types(**{one: int, other: int})
        given = pw.debug.table_from_pandas(pd.DataFrame(dict(zip(self.names, self._columns))), schema=schema)
        rows = given.concat_reindex(pw.io.python.read(Changes(), schema=schema, autocommit_duration_ms=None))
        answer = self.answer(rows)

        def keep(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
            if is_addition:
                self._found[row["key"]] = row["value"]

        def end(time: int) -> None:
            with self._changed:
                self._changed.notify_all()

        pw.io.subscribe(answer, on_change=keep, on_time_end=end)
        self._thread = Thread(target=pw.run, kwargs={"monitoring_level": pw.MonitoringLevel.NONE}, daemon=True)
        self._thread.start()
        self._wait(lambda: bool(self._found))

    def change(self, one: Ints, other: Ints) -> dict[int, int]:
        is_affected, expected = self.effect(one.tolist(), other.tolist())
        self._changes.put((one.tolist(), other.tolist()))
        if is_affected:
            self._wait(lambda: all(self._found.get(key) == value for key, value in expected.items()))
        return dict(expected) if is_affected else {}

    def ask(self, one: int, other: int) -> int:
        raise NotImplementedError

    def whole(self) -> dict[int, int]:
        return dict(self._found)

    def close(self) -> None:
        self._changes.put(None)
        self._thread.join(WAIT_SECONDS)

    def answer(self, rows: Any) -> Any:
        """Return the answer as a table of `key` and `value`."""
        raise NotImplementedError

    def effect(self, one: list[int], other: list[int]) -> tuple[bool, dict[int, int]]:
        """Return whether rows change the answer, and what they make of it, to know when it is reported."""
        raise NotImplementedError

    def _wait(self, is_there: Callable[[], bool]) -> None:
        with self._changed:
            check(self._changed.wait_for(is_there, WAIT_SECONDS), "the pipeline does not answer")


class Orders(_Piped):
    """The sum of each customer's orders, with the customer's city."""

    names = ("customer", "total")

    def answer(self, rows: Any) -> Any:
        import pandas as pd
        import pathway as pw

        known = pd.DataFrame(dict(zip(("customer", "city"), map(list, customers(self._columns[0])))))
        cities = pw.debug.table_from_pandas(known, schema=pw.schema_from_types(customer=int, city=str))
        spent = rows.groupby(rows.customer).reduce(rows.customer, total=pw.reducers.sum(rows.total))
        joined = spent.join(cities, spent.customer == cities.customer)
        return joined.select(key=spent.customer, city=cities.city, value=spent.total)

    def effect(self, one: list[int], other: list[int]) -> tuple[bool, dict[int, int]]:
        sums: dict[int, int] = {}
        for key, value in zip(one, other):
            sums[key] = sums.get(key, self._found.get(key, 0)) + value
        return True, sums


class Reach(_Piped):
    """What can be reached from node 0: a mark of each node that its neighbours pass on, by Pathway's iteration."""

    names = ("source", "target")

    def answer(self, rows: Any) -> Any:
        import pathway as pw

        def step(marks: Any, edges: Any) -> Any:
            sent = edges.select(node=edges.target, mark=marks.ix(edges.source).mark)
            most = sent.groupby(id=sent.node).reduce(mark=pw.reducers.max(sent.mark))
            both = marks.join_left(most, marks.id == most.id, id=marks.id)
            higher = both.select(mark=pw.if_else(pw.coalesce(most.mark, 0) > marks.mark, 1, marks.mark))
            return {"marks": higher, "edges": edges}

        nodes = rows.select(node=rows.source).concat_reindex(rows.select(node=rows.target))
        nodes = nodes.groupby(nodes.node).reduce(nodes.node).with_id_from(pw.this.node)
        edges = rows.select(source=nodes.pointer_from(rows.source), target=nodes.pointer_from(rows.target))
        begun = nodes.select(mark=pw.if_else(nodes.node == 0, 1, 0))
        marked = pw.iterate(step, marks=begun, edges=edges).marks
        return nodes.select(key=nodes.node, value=marked.ix(nodes.id).mark).filter(pw.this.value == 1)

    def effect(self, one: list[int], other: list[int]) -> tuple[bool, dict[int, int]]:
        reached = {target: 1 for source, target in zip(one, other) if source in self._found}
        return bool(reached), reached
