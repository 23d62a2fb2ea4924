"""Tables, views, commits, questions and errors of a session."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from traceback import extract_tb
from typing import Any, assert_type

import numpy as np
import pytest

from differential import Collection, Session
from differential.errors import OperatorError, SessionError
from differential.session import Change, Table, View
from differential.session.site import Site

WAIT = 20.0


@pytest.fixture(params=[1, 2])
def db(request: pytest.FixtureRequest) -> Iterator[Session]:
    with Session(workers=request.param) as session:
        session.table("orders", {"customer": [1, 2, 1], "total": [30, 5, 20]}, key="customer")
        session.commit()
        yield session


def orders(db: Session) -> Table:
    return db.table("orders")


def fails_from(limit: int) -> Any:
    def function(*columns: Any) -> Any:
        if len(columns[0]) and columns[-1].max() >= limit:
            raise ValueError("too large")
        return columns

    return function


def test_nothing_is_visible_before_the_commit(db: Session) -> None:
    spent = db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
    orders(db).insert(customer=3, total=1)
    orders(db).delete(customer=1)
    assert (orders(db).records(), spent.records()) == ([(1, 20), (1, 30), (2, 5)], [(1, 50), (2, 5)])
    assert db.ask(lambda t: t.orders.group_by("customer").count()).records() == [(1, 2), (2, 1)]
    assert db.commit() == 2
    assert (orders(db).records(), spent.records()) == ([(2, 5), (3, 1)], [(2, 5), (3, 1)])


def test_a_commit_over_several_tables_is_one_change(db: Session) -> None:
    people = db.table("people", {"id": int, "city": str}, key="id")
    both = db.view("both", lambda t: t.orders.join(t.people, on={"customer": "id"}))
    changes = both.changes()
    with db.transaction():
        people.insert(id=[1, 2], city=["Rome", "Oslo"])
        orders(db).upsert(customer=1, total=7)
    people.upsert(id=1, city="Bern")
    db.commit()
    assert [(change.time, change.records()) for change in changes.read_nowait()] == [
        (2, [((1, 7, "Rome"), 1), ((2, 5, "Oslo"), 1)]),
        (3, [((1, 7, "Bern"), 1), ((1, 7, "Rome"), -1)]),
    ]


def test_a_commit_that_deletes_an_absent_row_changes_nothing_and_names_the_line(db: Session) -> None:
    orders(db).insert(customer=9, total=9)
    orders(db).delete(customer=1, total=31)
    with pytest.raises(SessionError, match=r"'orders' does not have the row \(1, 31\) .*test_session.py:\d+"):
        db.commit()
    assert db.commit() == 2
    assert orders(db).records() == [(1, 20), (1, 30), (2, 5)]


def test_a_row_that_occurs_twice_can_be_deleted_twice(db: Session) -> None:
    orders(db).insert(customer=[2, 8], total=[5, 8])
    db.commit()
    orders(db).delete(customer=[2, 2, 8, 8], total=[5, 5, 8, 8])
    with pytest.raises(SessionError, match=r"\(8, 8\)"):
        db.commit()
    orders(db).delete(customer=[2, 2, 8], total=[5, 5, 8])
    db.commit()
    assert orders(db).records() == [(1, 20), (1, 30)]


def test_tables_and_views_are_found_by_name_and_kind(db: Session) -> None:
    db.view("sums", lambda t: t.orders.group_by("customer").sum("total"))
    table, view = assert_type(db.table("orders"), Table), assert_type(db.view("sums"), View)
    table.insert(customer=3, total=5)
    db.commit()
    assert view.records() == db["sums"].records() == [(1, 50), (2, 5), (3, 5)]
    for call, message in (
        (lambda: db.rejects("sums"), r"view 'sums' is not a table .*: use db.view\('sums'\)"),
        (lambda: db.table("order"), "there is no table 'order' .*test_session.py.*; did you mean 'orders'.; db.table"),
        (lambda: db.view("orders"), r"table 'orders' is not a view .*: use db.table\('orders'\)"),
        (lambda: db.table("sums"), r"view 'sums' is not a table .*: use db.view\('sums'\)"),
        (lambda: db.view("order"), r"there is no view 'order' .*\); db.view\('order', definition\) makes one"),
        (lambda: db.table("order", key="customer"), "needs columns"),
        (lambda: db.table("orders", added={"at": 1}), "needs columns"),
    ):
        with pytest.raises(SessionError, match=message):
            call()


class Growing:
    """What is in a dict to which another thread adds something as soon as this is looked at."""

    name = "growing"

    def __init__(self, items: dict[str, Any]) -> None:
        self.items = items

    @property
    def kind(self) -> str:
        self.items[f"{len(self.items)} others"] = self
        return "table"

    def __str__(self) -> str:
        return self.kind


def test_errors_and_the_status_do_not_mind_what_other_threads_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(state=str(tmp_path)) as db:
        db.table("orders", {"x": int})
        db.commit()
        storage = db._catalog.storage
        assert storage is not None
        with monkeypatch.context() as patched:
            patched.setattr(db._catalog, "items", items := {})
            items["growing"] = Growing(items)
            with pytest.raises(SessionError, match="there is no table 'order'"):
                db.table("order")
            with pytest.raises(AttributeError, match="order"):
                _ = db.order  # type: ignore[attr-defined]
            patched.setattr(db._catalog, "items", {})
            patched.setattr("differential.session.storage.Reaches", lambda each: storage._reaches.setdefault("x", each))
            assert db.status().commit == 1
        del storage._reaches["x"]


def test_a_transaction_that_fails_forgets_its_changes_alone(db: Session) -> None:
    orders(db).insert(customer=5, total=5)

    def fails() -> None:
        with db.transaction():
            orders(db).insert(customer=6, total=6)
            db["absent"]

    with pytest.raises(KeyError):
        fails()
    with db.transaction():
        with db.transaction():
            orders(db).insert(customer=7, total=7)
        assert len(orders(db)) == 3
        with pytest.raises(SessionError, match="the transaction\\(\\) block commits at its end"):
            db.commit()
    assert orders(db).records() == [(1, 20), (1, 30), (2, 5), (5, 5), (7, 7)]


def test_a_rollback_drops_a_table_whose_first_rows_it_forgets_unless_something_uses_it(db: Session) -> None:
    made, used, empty = db.table("made", {"x": [1]}), db.table("used", {"x": [1]}), db.table("empty", {"x": int})
    db.view("user", lambda t: t.used)
    db.rollback()
    with pytest.raises(SessionError, match=r"table 'made' was rolled back with the rows that it began with"):
        made.records()
    assert "made" not in db
    db.table("made", {"x": [2]})
    used.insert(x=3)
    empty.insert(x=4)
    db.commit()
    db.rollback()
    assert (db["made"].records(), db["user"].records(), empty.records()) == ([(2,)], [(3,)], [(4,)])


def test_what_is_dropped_or_of_another_session_does_not_drop_what_has_its_name(db: Session) -> None:
    old = db.table("stock", {"id": [1]})
    db.drop(old)
    new = db.table("stock", {"id": [2]})
    with pytest.raises(SessionError, match="table 'stock' was dropped"):
        db.drop(old)
    with Session() as other:
        other.table("stock", {"id": int})
        with pytest.raises(SessionError, match="table 'stock' belongs to another session"):
            other.drop(new)
        assert list(other) == ["stock"]
    assert "stock" in db
    db.drop(new)
    with pytest.raises(SessionError, match="there is no table or view 'stock'"):
        db.drop(new)
    for wrong in None, ["stock"]:
        with pytest.raises(SessionError, match="the name of a table or view must be text, not"):
            db.drop(wrong)  # type: ignore[arg-type]


def test_an_index_gets_names_like_the_collection_that_it_is_of(db: Session) -> None:
    db.table("pairs", {"x": [1], "y": [2]})
    db.commit()
    rows = db.ask(lambda t: t.named(t.pairs.arrange_by_key(), "a", "b"))
    assert (rows.columns, rows.records()) == (("a", "b"), [(1, 2)])


def test_what_was_stated_about_a_table_that_is_dropped_is_not_lost_when_the_session_is_closed() -> None:
    with Session() as db:
        stock = db.table("stock", {"id": int})
        db.commit()
        stock.insert(id=1)
        db.drop(stock)
        assert db.status().uncommitted == 0
        db.close()


def test_a_rollback_keeps_a_table_whose_first_rows_another_thread_has_committed_at_once(
    db: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Table.insert

    def committed_at_once(table: Table, data: Any) -> None:
        insert(table, data)
        thread = threading.Thread(target=db.commit)
        thread.start()
        thread.join(WAIT)

    with monkeypatch.context() as patched:
        patched.setattr(Table, "insert", committed_at_once)
        made = db.table("made", {"x": [1]})
    made.insert(x=2)
    db.rollback()
    assert made.records() == [(1,)]


def test_a_block_that_fails_drops_the_tables_made_in_it(db: Session) -> None:
    before = db.table("before", {"x": [1]})

    def fails() -> None:
        with db.transaction():
            db.table("within", {"x": [2]})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert "within" not in db
    db.commit()
    assert before.records() == [(1,)]


def test_upsert_needs_a_key_that_was_named(db: Session) -> None:
    words = db.table("words", {"word": ["a"], "times": [1]})
    with pytest.raises(SessionError, match="has no key"):
        words.upsert(word="a", times=2)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (lambda t: t.ordrs, "no table or view 'ordrs': did you mean 'orders'"),
        (lambda t: t.nothing, "there are good, orders"),
        (lambda t: 7, "returns 7: return a collection"),
        (lambda t: t.orders.map(fails_from(0)), "too large"),
        (lambda t: t.orders.filter(lambda r: 1 / 0), "ZeroDivisionError"),
        (lambda t: t.orders.named("a", "b", "c"), "3 name"),
    ],
)
def test_a_definition_that_fails_is_not_added(db: Session, definition: Any, message: str) -> None:
    good = db.view("good", lambda t: t.orders.count())
    for define in (lambda: db.view("wrong", definition), lambda: db.ask(definition)):
        with pytest.raises(SessionError, match=message) as caught:
            define()
        assert "7: return" in message or "test_session.py:" in str(caught.value) or "name(s)" in str(caught.value)
    with pytest.raises(KeyError):
        db["wrong"]
    orders(db).insert(customer=1, total=1)
    db.commit()
    assert good.records() == [(1, 3), (2, 1)]


def test_the_error_of_a_commit_explains_few_of_the_views_that_are_dropped_and_first_those_with_a_cause_of_their_own(
    db: Session,
) -> None:
    for name, read in [("v0", "orders"), *((f"v{at}", f"v{at - 1}") for at in range(1, 10)), ("alone", "orders")]:
        function = fails_from(100) if read == "orders" else lambda customer, total: (customer, total)
        db.view(name, lambda t, read=read, function=function: t[read].map(function))
    orders(db).insert(customer=1, total=100)
    with pytest.raises(SessionError, match=r"^view 'v0' failed") as error:
        db.commit()
    shown = str(error.value).split("; dropped, too: ")[1:]
    assert len(shown) == 5
    assert shown[0].startswith("view 'alone' failed")
    assert shown[1] == "view 'v1' reads view 'v0', which was dropped"
    assert shown[4] == "6 more; list(db) names what is left)"
    assert list(db) == ["orders"]


def test_a_view_that_fails_in_a_commit_is_dropped_with_its_readers_and_others_go_on(db: Session) -> None:
    bad = db.view("bad", lambda t: t.orders.map(fails_from(100)))
    reader = db.view("reader", lambda t: t.bad.map(lambda customer, total: total))
    good = db.view("good", lambda t: t.orders.count())
    changes, others = bad.changes(), reader.changes()
    orders(db).insert(customer=1, total=100)
    with pytest.raises(
        SessionError, match=r"'bad' failed.*test_session.py:\d+.*too large.*commit 2 is complete"
    ) as error:
        db.commit()
    assert "dropped, too: view 'reader' reads view 'bad', which was dropped" in str(error.value)
    assert isinstance(error.value.__cause__, Exception)
    assert len(orders(db)) == 4
    assert good.records() == [(1, 3), (2, 1)]
    for gone in (bad, reader):
        with pytest.raises(SessionError):
            gone.records()
        assert repr(gone).endswith("dropped>")
    with pytest.raises(SessionError, match=r"view 'bad' failed.*test_session.py:\d+.*too large") as ended:
        changes.get()
    assert isinstance(ended.value.__cause__, OperatorError)
    with pytest.raises(SessionError, match="view 'reader' reads view 'bad', which was dropped"):
        others.get()
    assert db.commit() == 3
    db.view("bad", lambda t: t.orders.count())


class Panic(BaseException):
    """What extensions in Rust raise is not an `Exception` either."""


@pytest.mark.parametrize("error", [Panic("too large"), SystemExit("too large"), asyncio.CancelledError("too large")])
def test_a_view_whose_function_raises_what_is_no_exception_is_dropped_like_any_other(
    db: Session, error: BaseException
) -> None:
    def fails(customer: Any, total: Any) -> Any:
        if len(total) and total.max() >= 100:
            raise error
        return customer, total

    bad = db.view("bad", lambda t: t.orders.map(fails))
    good = db.view("good", lambda t: t.orders.count())
    orders(db).insert(customer=1, total=100)
    message = rf"view 'bad' failed \(.*test_session.py:\d+\): {type(error).__name__}: too large \(commit 2 is complete"
    with pytest.raises(SessionError, match=message):
        db.commit()
    assert good.records() == [(1, 3), (2, 1)]
    with pytest.raises(SessionError, match="view 'bad' failed"):
        bad.records()
    with pytest.raises(SessionError, match=r"the question failed \(.*too large"):
        db.ask(lambda t: t.orders.map(fails))
    assert db.commit() == 3


@pytest.mark.parametrize("other", [bytes, str, float])
@pytest.mark.parametrize("workers", [1, 2])
def test_keys_of_different_kinds_fail_the_view_that_joins_them_and_nothing_else(workers: int, other: Any) -> None:
    with Session(workers) as db:
        names, places = db.table("names", {"id": int, "x": int}), db.table("places", {"id": other, "y": int})
        db.view("swapped", lambda t: t.names.select("x", "id"))
        counts = db.view("counts", lambda t: t.swapped.group_by("x").count())
        db.view("both", lambda t: t.names.select("x", id=lambda r: r.id + 0).join(t.places, on="id"))
        db.view("some", lambda t: t.swapped.select("id", x=lambda r: r.x + 0).join(t.places, on={"x": "id"}))
        places.insert(id=b"1" if other is bytes else other(1), y=3)
        db.commit()
        names.insert(id=1, x=2)
        with pytest.raises(SessionError, match=r"'join' \(built at .*test_session.py.*are of different kinds") as error:
            db.commit()
        assert "view 'both' failed" in str(error.value)
        assert "view 'some' failed" in str(error.value)
        assert list(db) == ["names", "places", "swapped", "counts"]
        names.insert(id=2, x=2)
        db.commit()
        assert counts.records() == [(2, 2)]


def test_a_function_does_not_receive_rows_that_are_gone(db: Session) -> None:
    def definition(t: Any) -> Collection:
        return t.orders.map(lambda customer, total: (customer, [60 // each for each in total.tolist()]))  # type: ignore[no-any-return]

    orders(db).insert(customer=3, total=0)
    db.commit()
    with pytest.raises(SessionError, match="ZeroDivisionError"):
        db.view("parts", definition)
    orders(db).upsert(customer=3, total=60)
    db.commit()
    assert db.ask(definition).records() == [(1, 2), (1, 3), (2, 12), (3, 1)]
    parts = db.view("parts", definition)
    orders(db).delete(customer=2)
    db.commit()
    assert parts.records() == [(1, 2), (1, 3), (3, 1)]
    assert "parts" in db.explain()


def test_a_function_that_fails_on_rows_that_are_there_is_not_called_again(db: Session) -> None:
    calls = []

    def fail(customer: Any, total: Any) -> Any:
        if len(customer):
            calls.append(customer)
        raise ValueError("never")

    with pytest.raises(SessionError, match="never"):
        db.ask(lambda t: t.orders.filter(fail))
    assert len(calls) <= 2  # once on each worker


def test_a_view_that_is_defined_again_is_replaced(db: Session) -> None:
    first = db.view("view", lambda t: t.orders.count())
    second = db.view("view", lambda t: t.orders.group_by("customer").max("total"))
    assert second.records() == [(1, 30), (2, 5)]
    with pytest.raises(SessionError, match="was dropped"):
        first.records()
    db.view("over", lambda t: t.view)
    for refused in (lambda: db.view("view", lambda t: t.orders), lambda: db.drop(second), lambda: db.drop("orders")):
        with pytest.raises(SessionError, match="while it is read: first drop view"):
            refused()
    db.drop("over")
    db.drop(second)
    db.drop("orders")
    with pytest.raises(SessionError, match="no table or view 'orders'"):
        db.drop("orders")
    assert db.table("orders", {"x": [1]}).columns == ("x",)


def test_names_are_taken_once(db: Session) -> None:
    with pytest.raises(SessionError, match="already"):
        db.table("orders", {"x": [1]})
    with pytest.raises(SessionError, match="is the name of a table"):
        db.view("orders", lambda t: t.orders)
    with pytest.raises(SessionError, match="must be text"):
        db.view("", lambda t: t.orders)
    assert len(orders(db)) == 3


def test_a_table_can_have_any_name(db: Session) -> None:
    for name in ("scope", "constant", "two words"):
        db.table(name, {"x": [1]})
    db.commit()
    both = db.view("both", lambda t: t["scope"].concat(t["constant"], t["two words"]))
    assert both.records() == [(1,), (1,), (1,)]


def test_definitions_have_the_full_power_of_collections(db: Session) -> None:
    def definition(t: Any) -> Collection:
        start = t.constant(np.array([1]), np.array([0]))
        known = start.iterate(lambda inner: inner.map(lambda n, i: (n, np.minimum(i + 1, 5))).concat(start).max())
        return known.join_map(t.orders.arrange_by_key(), lambda n, i, total: (n, i + total))  # type: ignore[no-any-return]

    assert db.view("view", definition).records() == [(1, 25), (1, 35)]


def test_a_question_leaves_nothing_behind(db: Session) -> None:
    engine, orders = db._catalog.engine, db._catalog.items["orders"]
    before = engine.call(lambda site: len(site.worker.dataflows))
    imports = engine.call(lambda site: site.part(orders).trace.statistics().imports)
    for _ in range(3):
        db.ask(lambda t: t.orders.group_by("total").count())
    assert engine.call(lambda site: len(site.worker.dataflows)) == before
    assert engine.call(lambda site: site.part(orders).trace.statistics().imports) == imports
    asked, kept = Everything(), Everything()
    gone, alive = weakref.ref(asked), weakref.ref(kept)
    db.ask(lambda t, function=asked: t.orders.filter(function))
    db.view("kept", lambda t, function=kept: t.orders.filter(function))
    del asked, kept
    gc.collect()
    assert gone() is None
    assert alive() is not None
    db.drop("kept")
    gc.collect()
    assert alive() is None


class Everything:
    """A predicate whose end shows that nothing of a definition remains."""

    def __call__(self, customer: Any, total: Any) -> Any:
        return total > 0


def test_a_definition_cannot_use_its_session(db: Session) -> None:
    with pytest.raises(SessionError, match="cannot use its session"):
        db.view("inside", lambda t: t.orders.filter(lambda r: db.commit() > 0))


def test_a_watch_is_called_at_each_commit_that_changes_something(db: Session) -> None:
    seen: list[Change] = []
    watch = orders(db).watch(seen.append)
    db.commit()
    orders(db).insert(customer=4, total=4)
    db.commit()
    assert [(change.time, change.records()) for change in seen] == [(3, [((4, 4), 1)])]
    watch.close()
    orders(db).insert(customer=4, total=4)
    db.commit()
    assert len(seen) == 1


def test_a_watch_needs_a_function(db: Session) -> None:
    with pytest.raises(SessionError, match=r"watch \(at .*test_session.py:\d+\) takes a function of a change, not 5"):
        orders(db).watch(5)  # type: ignore[arg-type]


def test_a_watch_that_fails_ends_and_the_error_comes_out_of_the_commit(db: Session) -> None:
    watch = orders(db).watch(lambda change: 1 / 0)
    orders(db).insert(customer=4, total=4)
    failed = r"watch\(\) failed: ZeroDivisionError: division by zero \(commit 2 is complete, and the watch has ended\)"
    with pytest.raises(SessionError, match=failed) as caught:
        db.commit()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert watch.is_closed
    assert (db.commit(), len(orders(db))) == (3, 4)


def test_the_traceback_of_a_watch_that_fails_has_no_line_that_called_it(db: Session) -> None:
    orders(db).watch(lambda change: 1 / 0)
    orders(db).insert(customer=4, total=4)
    with pytest.raises(SessionError) as caught:
        db.commit()
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    files = [Path(frame.filename).name for frame in extract_tb(cause.__traceback__)]
    assert files == ["test_session.py"]


def test_a_watch_that_commits_is_refused_and_its_changes_belong_to_the_next_commit(db: Session) -> None:
    def again(change: Change) -> None:
        orders(db).insert(customer=5, total=5)
        db.commit()

    def block(change: Change) -> None:
        with db.transaction():
            orders(db).insert(customer=6, total=6)

    for callback in again, block:
        orders(db).watch(callback)
        orders(db).insert(customer=4, total=4)
        with pytest.raises(SessionError, match=r"a callback of watch\(\) cannot commit, because commit \d+ calls it"):
            db.commit()
        db.commit()
    assert {5, 6} <= {customer for customer, _ in orders(db).records()}


def test_an_interrupt_while_a_watch_is_called_refuses_no_later_commit(
    db: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt may come before the end of a delivery is noted, which the assignment here stands for."""
    seen: list[int] = []
    orders(db).watch(lambda change: seen.append(change.time))
    monkeypatch.setattr(db._catalog.watches, "_commit", db._catalog.last)
    orders(db).insert(customer=4, total=4)
    assert seen == [db.commit()]


def test_the_error_of_a_watched_view_comes_out_of_its_commit_alone(db: Session) -> None:
    numbers = db.table("numbers", {"x": int})
    seen: list[list[Any]] = [[], []]
    doomed = db.view("doomed", lambda t: t.numbers.map(lambda x: [7 // each for each in x.tolist()]))
    doomed.watch(lambda change: seen[0].append(change.time))
    collected = doomed.changes()
    numbers.watch(lambda change: seen[1].append(change.time))
    numbers.insert(x=1)
    db.commit()
    numbers.insert(x=0)
    with pytest.raises(SessionError, match=r"view 'doomed' failed: .*ZeroDivisionError.*commit 3 is complete"):
        db.commit()
    numbers.insert(x=2)
    assert db.commit() == 4
    assert seen == [[2], [2, 3, 4]]
    assert [change.time for change in collected.read_nowait()] == [2]
    with pytest.raises(SessionError, match=r"view 'doomed' failed: .*ZeroDivisionError"):
        collected.read_nowait()


def test_changes_of_a_view_that_reads_a_failed_one_end_with_an_error(db: Session) -> None:
    numbers = db.table("numbers", {"x": int})
    db.view("inverse", lambda t: t.numbers.map(lambda x: [1 // each for each in x.tolist()]))
    reader, dropped = (db.view(name, lambda t: t.inverse.count()) for name in ("reader", "dropped"))
    changes, others = reader.changes(), dropped.changes()
    db.drop(dropped)
    numbers.insert(x=0)
    with pytest.raises(
        SessionError, match=r"view 'inverse' failed: .*; dropped, too: view 'reader' reads view 'inverse'"
    ):
        db.commit()
    with pytest.raises(SessionError, match="view 'reader' reads view 'inverse', which was dropped"):
        list(changes)
    assert list(others) == []


def test_a_watch_that_fails_keeps_nothing_from_the_others(db: Session) -> None:
    numbers = db.table("numbers", {"x": int})
    seen = []
    doomed = db.view("doomed", lambda t: t.numbers.map(lambda x: [7 // each for each in x.tolist()]))
    numbers.watch(lambda change: {}["no such key"])
    numbers.watch(lambda change: seen.append(change.time))
    numbers.insert(x=0)
    with pytest.raises(SessionError, match="view 'doomed' failed"):  # what has failed in the dataflow comes first
        db.commit()
    assert seen == [2]
    with pytest.raises(SessionError, match="view 'doomed' failed"):
        len(doomed)


def test_changes_wait_in_a_thread_and_end_with_the_session(db: Session) -> None:
    changes = orders(db).changes()
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.extend(change.time for change in changes))
    thread.start()
    for _ in range(3):
        orders(db).insert(customer=4, total=4)
        db.commit()
    db.close()
    thread.join(WAIT)
    assert not thread.is_alive()
    assert seen == [2, 3, 4]


def test_commits_and_changes_can_be_awaited(db: Session) -> None:
    async def main() -> list[int]:
        changes = orders(db).changes()
        seen = []

        async def follow() -> None:
            async for change in changes:
                seen.append(change.time)
                if len(seen) == 2:
                    return

        following = asyncio.create_task(follow())
        for _ in range(2):
            orders(db).insert(customer=4, total=4)
            await asyncio.wait_for(db.commit_async(), WAIT)
        orders(db).delete(customer=0, total=0)
        with pytest.raises(SessionError, match="does not have"):
            await asyncio.wait_for(db.commit_async(), WAIT)
        await asyncio.wait_for(following, WAIT)
        return seen

    assert asyncio.run(main()) == [2, 3]


def test_closing_a_session_ends_the_wait_for_a_block_that_does_not_end() -> None:
    db = Session()
    table = db.table("t", {"x": int})
    held, may_end, errors = threading.Event(), threading.Event(), list[SessionError]()

    def hold() -> None:
        with suppress(SessionError), db.transaction():  # it cannot commit
            table.insert(x=1)
            held.set()
            assert may_end.wait(60), "the session was not closed"

    def insert() -> None:
        try:
            table.insert(x=2)
        except SessionError as error:
            errors.append(error)

    holder, waiter = threading.Thread(target=hold, daemon=True), threading.Thread(target=insert, daemon=True)
    holder.start()
    assert held.wait(60), "the block did not begin"
    waiter.start()
    waiter.join(0.05)
    assert waiter.is_alive()
    db.close()
    waiter.join(20)
    still_waits = waiter.is_alive()
    may_end.set()
    holder.join(60)
    assert not still_waits
    assert "the session was closed" in str(errors[0])


def test_a_block_is_its_tasks_alone(db: Session) -> None:
    async def in_a_block(entered: asyncio.Event, go_on: asyncio.Event) -> None:
        with db.transaction():
            orders(db).insert(customer=4, total=4)
            with pytest.raises(SessionError, match="leave out commit"):
                await db.commit_async()
            entered.set()
            await go_on.wait()
            orders(db).insert(customer=5, total=5)

    async def program() -> None:
        entered, go_on = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(in_a_block(entered, go_on))
        await entered.wait()
        for change in (
            db.commit,
            db.rollback,
            lambda: orders(db).insert(customer=6, total=6),
            lambda: db.transaction().__enter__(),
        ):
            with pytest.raises(SessionError, match="another task of this event loop awaits inside of a transaction"):
                change()
        waits = asyncio.create_task(db.commit_async())  # in a thread, which waits for the end of the block
        assert len(orders(db)) == len(db.ask(lambda t: t.orders)) == 3
        go_on.set()
        await asyncio.gather(task, waits)
        assert len(orders(db)) == 5

    asyncio.run(asyncio.wait_for(program(), WAIT))


def test_a_task_that_is_made_in_a_block_is_another_one(db: Session) -> None:
    """It has the context of the task that has made it."""

    async def other() -> None:
        orders(db).insert(customer=6, total=6)

    async def program() -> None:
        with db.transaction():
            with pytest.raises(SessionError, match="another task of this event loop awaits inside of a transaction"):
                await asyncio.create_task(other())
            with pytest.raises(SessionError, match="leave out commit"):
                await db.commit_async()
            with db.transaction():
                await own()
            orders(db).insert(customer=4, total=4)

    async def own() -> None:
        await asyncio.sleep(0)
        orders(db).insert(customer=5, total=5)

    asyncio.run(asyncio.wait_for(program(), WAIT))
    assert len(orders(db)) == 5
    with db.transaction():  # all tasks of a loop that runs in a block are in the block
        asyncio.run(other())
    assert len(orders(db)) == 6


def test_changes_that_nobody_keeps_are_not_collected(db: Session) -> None:
    kept = orders(db).changes()
    orders(db).changes()
    gc.collect()
    alive = [each() for each in orders(db)._item.followers if each() is not None]
    assert alive == [kept]
    kept.close()
    assert orders(db)._item.followers == ()


def test_status_and_explain_name_tables_views_and_lines(db: Session) -> None:
    db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
    orders(db).insert(customer=1, total=1)
    status = db.status()
    assert (status.commit, status.uncommitted) == (1, 1)
    assert status.items.to_pandas()[["name", "kind", "rows"]].values.tolist() == [
        ["orders", "table", 3],
        ["spent", "view", 2],
    ]
    assert 0 < status.interned_bytes < 100_000
    assert "distinct texts" not in status.heading()
    assert status.nbytes == sum(status.items.to_pandas()["index_bytes"]) > 0
    assert str(status).startswith("commit 1, ")
    assert "<table>" in status._repr_html_()
    assert "view 'spent': 2 rows, indexed by customer, reads table 'orders' (defined at" in db.explain()
    assert "test_session.py:" in db.explain()
    db.rollback()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_status_counts_the_bytes_of_distinct_texts(workers: int) -> None:
    with Session(workers=workers) as db:
        words = db.table("words", {"word": [f"the word with number {number}" for number in range(5000)]})
        db.commit()
        many = db.status()
        words.insert(word=["the word with number 7"] * 5000)
        db.commit()
        again = db.status()
    assert 5000 * 24 < many.interned_bytes == again.interned_bytes
    assert "MB of distinct texts and records" in many.heading()


def test_a_session_and_a_definition_have_the_names_of_tables_and_views(db: Session) -> None:
    db.view("totals", lambda t: t.orders.select("total"))
    assert (list(db), "orders" in db, "order" in db, 3 in db) == (["orders", "totals"], True, False, False)
    seen: list[Any] = []
    db.ask(lambda t: (seen.append((list(t), "totals" in t, "total" in t)), t.orders)[1])
    assert seen[0] == (["orders", "totals"], True, False)
    with pytest.raises(KeyError, match="there is no table or view 3"):
        db[3]  # type: ignore[index]


def test_who_follows_learns_why_a_session_has_ended_and_not_that_it_was_closed() -> None:
    def fails(site: Site) -> None:
        raise RuntimeError("broken")

    for is_closed in (False, True):
        db = Session()
        numbers = db.table("numbers", {"x": [1]})
        changes, run = numbers.changes(), db.start()
        db.commit()
        if is_closed:
            db.close()
        else:
            with pytest.raises(SessionError, match=r"has ended: .*broken"):
                db._catalog.engine.call(fails)
        with nullcontext() if is_closed else pytest.raises(SessionError, match=r"has ended: .*broken"):
            assert [change.records() for change in changes] == [[((1,), 1)]]
        why = "was closed" if is_closed else r"has ended: .*broken"
        with pytest.raises(SessionError, match=why):
            run.wait(10)
        with pytest.raises(SessionError, match=why):
            db.drop("numbers")
        db.close()


def test_what_is_left_of_a_session_that_was_closed_can_be_shown() -> None:
    with Session() as db:
        orders = db.table("orders", {"total": int})
    with pytest.raises(SessionError, match="the session was closed"):
        len(orders)
    assert repr(orders) == "<table 'orders' of a session that was closed>"
    assert orders._repr_html_() == "<p>&lt;table &#x27;orders&#x27; of a session that was closed&gt;</p>"
    with pytest.raises(SessionError, match="the session was closed"):
        db.start()


def test_two_sessions_live_side_by_side(db: Session) -> None:
    with Session() as other:
        other.table("orders", {"customer": [7]})
        other.commit()
        assert other.ask(lambda t: t.orders.count()).records() == [(7, 1)]
    assert len(orders(db)) == 3
    assert db.commit() == 2


def test_a_session_starts_its_own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TIMELY_PROCESSES": "2", "TIMELY_ADDRESSES": "ipc:///tmp/a,ipc:///tmp/b"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SessionError, match="without `timely run -n`"):
        Session()


def test_a_session_has_at_least_one_worker() -> None:
    for workers in (0, "2", 1.5):
        with pytest.raises(SessionError, match="at least one worker"):
            Session(workers=workers)  # type: ignore[arg-type]


def test_commits_are_retained_only_with_a_directory() -> None:
    with pytest.raises(SessionError, match=r"^keep=10 applies to a durable session: give state=, a directory, too$"):
        Session(keep=10)


def test_the_import_of_the_package_does_not_load_sessions() -> None:
    program = "import differential, sys; print('differential.session' in sys.modules, 'asyncio' in sys.modules)"
    program += "; differential.Session; print('differential.session' in sys.modules, 'pandas' in sys.modules)"
    assert run_apart(program) == "False False\nTrue False\n"


@pytest.mark.lengthy
def test_a_session_and_a_file_as_a_sink_need_no_library_of_an_extra() -> None:
    extras = "pyarrow", "pandas", "polars", "cloudpickle", "starlette", "httpx", "websockets", "psycopg"
    program = f"import sys; sys.modules.update(dict.fromkeys({extras}))\n"
    program += "import differential; differential.Session\n"
    program += "from differential.session import sinks, sources; print(sinks.csv.__name__, sources.csv.__name__)"
    assert run_apart(program) == "csv csv\n"


def run_apart(program: str) -> str:
    """Return what a program prints in a process of its own."""
    return subprocess.check_output([sys.executable, "-c", program], text=True, timeout=60)


@pytest.mark.parametrize("durable", [False, True])
def test_a_view_that_reads_the_one_it_replaces_is_refused_and_that_one_stays(tmp_path: Path, durable: bool) -> None:
    with Session(state=str(tmp_path / "db") if durable else None) as db:
        numbers = db.table("numbers", {"x": [1, 3, 6]})
        db.commit()
        view = db.view("v", lambda t: t.numbers.filter(lambda x: x > 2), durable=durable)
        with pytest.raises(
            SessionError, match=r"view 'v' \(at .*\) reads view 'v', which it replaces: give it another"
        ):
            db.view("v", lambda t: t.v.filter(lambda x: x > 5), durable=durable)
        numbers.insert(x=9)
        db.commit()
        assert view.records() == [(3,), (6,), (9,)]
        assert list(db) == ["numbers", "v"]


def test_a_view_that_an_interrupt_has_ended_between_commits_is_named(
    db: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    db.view("doomed", lambda t: t.orders.count())
    capsys.readouterr()
    catalog = db._catalog
    catalog.engine.fail(catalog.items["doomed"], KeyboardInterrupt())
    db.commit()
    assert capsys.readouterr().err == "timely: view 'doomed' was interrupted, and is dropped\n"
    assert list(db) == ["orders"]
    db.commit()
    assert capsys.readouterr().err == ""
