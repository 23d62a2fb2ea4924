"""DuckDB: a table in memory and a query that is answered again, with as many threads as there are cores."""

from __future__ import annotations

from typing import Any

from benchmarks.graphs import Ints
from benchmarks.session_tools.cities import customers

SPENT = """
SELECT spent.customer, city, total FROM
    (SELECT customer, sum(total)::BIGINT AS total FROM orders {where} GROUP BY customer) AS spent
    JOIN customers USING (customer)
"""
REACHED = """
WITH RECURSIVE reached(node) AS (
    SELECT 0::BIGINT UNION SELECT target FROM reached JOIN edges ON source = node
)
SELECT node, 1 AS found FROM reached
"""


class _Queried:
    table: str
    query: str

    def __init__(self, one: Ints, other: Ints) -> None:
        import duckdb

        self._columns = one, other
        self._database = duckdb.connect()

    def _load(self, name: str, **columns: Any) -> None:
        import pyarrow as pa

        self._database.register("given", pa.table(columns))
        self._database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self._database.unregister("given")

    def change(self, one: Ints, other: Ints) -> Any:
        self._insert(one, other)
        return _Found(self._answer())

    def ask(self, one: int, other: int) -> int:
        raise NotImplementedError

    def whole(self) -> dict[int, int]:
        found = self._answer()
        return dict(zip(found.column(0).to_pylist(), found.column(-1).to_pylist()))

    def close(self) -> None:
        self._database.close()

    def _answer(self) -> Any:
        return self._database.sql(self.query).to_arrow_table()

    def _insert(self, one: Ints, other: Ints) -> None:
        import pyarrow as pa

        given = pa.table({"one": one, "other": other})  # read by its name
        self._database.execute(f"INSERT INTO {self.table} SELECT * FROM given")
        del given


class _Found:
    """An Arrow table of the answer, looked up after it was measured."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._rows: dict[int, int] | None = None

    def __getitem__(self, key: int) -> int:
        if self._rows is None:
            self._rows = dict(zip(self._table.column(0).to_pylist(), self._table.column(-1).to_pylist()))
        return self._rows[key]


class Orders(_Queried):
    """The sum of each customer's orders, with the customer's city."""

    table = "orders"
    query = SPENT.format(where="")

    def first(self) -> None:
        number, city = customers(self._columns[0])
        self._load("orders", customer=self._columns[0], total=self._columns[1])
        self._load("customers", customer=number, city=city.tolist())
        self._answer()

    def ask(self, one: int, other: int) -> int:
        self._database.execute("INSERT INTO orders VALUES (?, ?)", [one, other])
        found = self._database.execute(SPENT.format(where="WHERE customer = ?"), [one]).fetchall()
        return int(found[0][-1])


class Reach(_Queried):
    """What can be reached from node 0."""

    table = "edges"
    query = REACHED

    def first(self) -> None:
        self._load("edges", source=self._columns[0], target=self._columns[1])
        self._answer()
