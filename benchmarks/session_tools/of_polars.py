"""Polars: a frame that grows and a lazy query that is collected again, with as many threads as there are cores."""

from __future__ import annotations

from typing import Any

from benchmarks.graphs import Ints
from benchmarks.session_tools.cities import customers


class Orders:
    """The sum of each customer's orders, with the customer's city."""

    def __init__(self, one: Ints, other: Ints) -> None:
        self._columns = one, other

    def first(self) -> None:
        import polars as pl

        number, city = customers(self._columns[0])
        self._orders = pl.DataFrame({"customer": self._columns[0], "total": self._columns[1]})
        self._customers = pl.DataFrame({"customer": number, "city": city.tolist()}).lazy()
        self._answer(self._orders.lazy())

    def change(self, one: Ints, other: Ints) -> Any:
        self._insert(one, other)
        return _Found(self._answer(self._orders.lazy()))

    def ask(self, one: int, other: int) -> int:
        import polars as pl

        self._insert([one], [other])
        found = self._answer(self._orders.lazy().filter(pl.col("customer") == one))
        return int(found["total"][0])

    def whole(self) -> dict[int, int]:
        found = self._answer(self._orders.lazy())
        return dict(zip(found["customer"].to_list(), found["total"].to_list()))

    def close(self) -> None:
        del self._orders, self._customers

    def _insert(self, one: Any, other: Any) -> None:
        import polars as pl

        self._orders.vstack(pl.DataFrame({"customer": one, "total": other}), in_place=True)

    def _answer(self, orders: Any) -> Any:
        import polars as pl

        spent = orders.group_by("customer").agg(pl.col("total").sum())
        return spent.join(self._customers, on="customer").select("customer", "city", "total").collect()


class _Found:
    """A frame of the answer, looked up after it was measured."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __getitem__(self, key: int) -> int:
        import polars as pl

        return int(self._frame.filter(pl.col("customer") == key)["total"][0])
