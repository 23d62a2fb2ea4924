"""A session: views that each commit keeps up to date, read as the changes of the commit."""

from __future__ import annotations

from benchmarks.graphs import Ints
from benchmarks.session_tools.cities import customers
from differential import Session
from differential.graphs import reachability
from differential.session import View


class _Kept:
    """A view over one table, and its changes."""

    view: View

    def __init__(self, one: Ints, other: Ints) -> None:
        self._columns = one, other
        self._db = Session(workers=1)

    def change(self, one: Ints, other: Ints) -> dict[int, int]:
        self._rows.insert({self._names[0]: one, self._names[1]: other})
        self._db.commit()
        return {
            key: value
            for change in self._changes.read_nowait()
            for key, value, diff in zip(change.rows[0].tolist(), change.rows[-1].tolist(), change.diff.tolist())
            if diff > 0
        }

    def ask(self, one: int, other: int) -> int:
        raise NotImplementedError

    def close(self) -> None:
        self._db.close()

    def _load(self, name: str, names: tuple[str, str]) -> None:
        self._names = names
        self._rows = self._db.table(name, dict(zip(names, self._columns)), key=names[0])

    def _begin(self) -> None:
        self._db.commit()
        self._changes = self.view.changes()


class Orders(_Kept):
    """The sum of each customer's orders, with the customer's city."""

    def first(self) -> None:
        self._load("orders", ("customer", "total"))
        self._db.table("customers", dict(zip(("customer", "city"), customers(self._columns[0]))))
        self._db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
        self.view = self._db.view(
            "placed", lambda t: t.spent.join(t.customers, on="customer").select("customer", "city", "total")
        )
        self._begin()

    def whole(self) -> dict[int, int]:
        customer, _, total = self.view.rows().arrays()
        return dict(zip(customer.tolist(), total.tolist()))


class Reach(_Kept):
    """What can be reached from node 0."""

    def first(self) -> None:
        self._load("edges", ("source", "target"))
        self.view = self._db.view("reached", lambda t: reachability(t.edges, t.constant(0)), columns=("node", "start"))
        self._begin()

    def change(self, one: Ints, other: Ints) -> dict[int, int]:
        return dict.fromkeys(super().change(one, other), 1)

    def whole(self) -> dict[int, int]:
        return dict.fromkeys(self.view.rows().arrays()[0].tolist(), 1)
