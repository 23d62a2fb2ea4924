"""Calls of a session's workers: in one order on all, with an end for each, and gone when they are over."""

from __future__ import annotations

import gc
import sys
import threading
import time as clock
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from differential.errors import SessionError
from differential.operators import reduction
from differential.session import Session, engine as engine_module
from differential.session.call import Call
from differential.session.engine import Engine
from differential.session.site import COMMITS, Site
from timely import Antichain, Worker
from timely.lowlevel import Origin


@pytest.fixture(params=[1, 3])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    made = Engine(request.param, "session of a test", Origin("cell.py", 1))
    yield made
    made.close()
    assert not made.is_running


@pytest.fixture(params=[1, 2])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with Session(workers=request.param) as made:
        yield made


def test_all_workers_make_all_calls_in_one_order(engine: Engine) -> None:
    made: list[list[int]] = [[] for _ in range(engine.workers)]

    def calls(first: int) -> None:
        for number in range(first, first + 50):
            engine.call(lambda site, number=number: made[site.worker.index].append(number))  # type: ignore[misc]

    threads = [threading.Thread(target=calls, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(made[0]) == 150
    assert all(each == made[0] for each in made)
    assert [number for number in made[0] if number >= 200] == list(range(200, 250))


def test_a_call_returns_the_results_or_raises_the_error_of_a_worker(engine: Engine) -> None:
    assert sorted(engine.call(lambda site: site.worker.index)) == list(range(engine.workers))

    def fails(site: Site) -> None:
        if site.worker.index == engine.workers - 1:
            raise SessionError("here")

    with pytest.raises(SessionError, match="here"):
        engine.call(fails)
    assert len(engine.call(lambda site: None)) == engine.workers


def test_nothing_keeps_a_call_that_is_over_once_another_was_made(engine: Engine) -> None:
    class Result:
        pass

    results: list[Any] = []

    def make(site: Site) -> Result:
        results.append(weakref.ref(made := Result()))
        return made

    call = Call(make, (), engine.workers)
    assert not call.is_submitted
    engine.submit(call)
    assert call.is_submitted
    assert call.wait(20)
    assert (call.is_submitted, call.is_over) == (True, True)
    gone = weakref.ref(call)
    del call
    for _ in range(3):
        engine.call(lambda site: None)
    gc.collect()
    assert gone() is None
    assert [ref() for ref in results] == [None] * engine.workers


def test_calls_that_were_never_made_end_when_the_engine_closes(engine: Engine) -> None:
    entered = threading.Event()

    def slow(site: Site) -> None:
        entered.set()
        while not engine.is_closing:
            site.worker.step_or_park(0.01)

    first, second = Call(slow, (), engine.workers), Call(lambda site: None, (), engine.workers)
    engine.submit(first)
    engine.submit(second)
    assert entered.wait(20)
    engine.close()
    assert second.wait(20)
    with pytest.raises(SessionError, match="was closed"):
        engine.result(second)
    with pytest.raises(SessionError, match="was closed"):
        engine.call(lambda site: None)


def test_an_error_of_what_follows_a_call_reaches_its_caller_and_ends_the_engine(engine: Engine) -> None:
    def fails(call: Call[None]) -> None:
        raise MemoryError("changes of a commit")

    call: Call[None] = Call(lambda site: None, (), engine.workers, done=fails)
    engine.submit(call)
    assert call.wait(20), "the caller waits for ever"
    with pytest.raises(MemoryError, match="changes of a commit"):
        engine.result(call)
    with pytest.raises(SessionError, match="the session has ended: changes of a commit"):
        engine.call(lambda site: None)


def test_threads_that_look_at_the_same_time_find_the_same_bytes(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.table("words", {"word": ["a" * 100, "b" * 100]})
    session.commit()
    known, look, waits, may_go = (
        session.status().interned_bytes,
        Site.measure,
        threading.Semaphore(0),
        threading.Event(),
    )

    def slow(site: Site) -> int:
        assert may_go.wait(20), "the threads do not wait for the look"
        return look(site)

    wait = Call.wait

    def counted(call: Call[Any], timeout: float = -1) -> bool:
        waits.release()
        return wait(call, timeout)

    monkeypatch.setattr(Site, "measure", slow)
    monkeypatch.setattr(Call, "wait", counted)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(session.status().interned_bytes)) for _ in range(2)]
    for number, thread in enumerate(threads):
        thread.start()
        assert waits.acquire(timeout=20), f"thread {number} does not wait for the look"
    may_go.set()
    for thread in threads:
        thread.join(20)
    assert found == [known, known]
    assert known > 200


def test_an_error_that_no_view_is_to_blame_for_ends_the_engine(engine: Engine) -> None:
    def fails(site: Site) -> None:
        raise RuntimeError("broken")

    with pytest.raises(SessionError, match=r"the session has ended: .*broken"):
        engine.call(fails)
    with pytest.raises(SessionError, match=r"the session has ended: .*broken"):
        engine.call(lambda site: None)


@pytest.mark.composed
def test_commits_in_a_row_are_one_step_each_and_merging_waits_for_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Site] = []
    step = Site._step

    def counted(site: Site) -> None:
        steps.append(site)
        step(site)

    monkeypatch.setattr(Site, "_step", counted)
    monkeypatch.setattr(engine_module, "MOMENT", 30.0)
    monkeypatch.setattr(engine_module, "CALLS", 1000)
    with Session(workers=1) as db:
        orders = db.table("orders", {"customer": int, "total": int}, key="customer")
        people = db.table("people", {"id": [1, 2], "city": ["Rome", "Oslo"]})
        db.view("spent", lambda t: t.orders.group_by("customer").sum("total"))
        placed = db.view(
            "placed", lambda t: t.spent.join(t.people, on={"customer": "id"}).select("customer", "city", "total")
        )
        db.commit()
        worker = db._catalog.engine._sites[0].worker
        with placed.changes() as changes:
            steps.clear()
            before = activations(worker)
            for total in range(1, 11):
                orders.insert(customer=1, total=total)
                db.commit()
            assert len(steps) == 10
            after = activations(worker)
            assert {name: count - before[name] for name, count in after.items() if count != before[name]} == {
                "table orders: arrange": 10,
                "view spent: orders": 10,
                "view spent: sum": 10,
                "view placed: spent": 10,
                "view placed: people": 10,
                "view placed: join": 10,
                "view placed: arrange": 10,
            }
            assert len(changes.read_nowait()) == 10
            assert placed.records() == [(1, "Rome", 55)]
        monkeypatch.setattr(engine_module, "MOMENT", 0.0)
        people.insert(id=3, city="Rome")
        steps.clear()
        db.commit()
        deadline = clock.monotonic() + 20
        while len(steps) < 4 and clock.monotonic() < deadline:
            clock.sleep(0.001)
        assert len(steps) >= 4, "the worker does not go on without a call"


@pytest.mark.composed
def test_a_commit_runs_nothing_of_what_it_does_not_concern() -> None:
    with Session(workers=1) as db:
        tables = {name: db.table(name, {"key": int, "value": int}, key="key") for name in "abc"}
        counts = {name: db.view(f"count of {name}", lambda t, name=name: t[name].count()) for name in "abc"}
        both = db.view("both", lambda t: t.b.join_map(t.c, records))
        for number, table in enumerate(tables.values()):
            table.insert(key=0, value=number)
        db.commit()
        worker = db._catalog.engine._sites[0].worker

        def concerned(table: str, value: int) -> set[str]:
            """Change a table; return the dataflows of which something has run."""
            before = activations(worker)
            tables[table].insert(key=0, value=value)
            db.commit()
            return {name.partition(":")[0] for name, count in activations(worker).items() if count != before[name]}

        assert all(concerned("a", value) == {"table a", "view count of a"} for value in range(10))
        # The join is final only once both of its inputs are, and the count of b imports an index that moves on.
        assert concerned("c", 7) == {"table c", "view count of c", "view both", "view count of b"}
        assert [one.records() for one in counts.values()] == [[(0, 11)], [(0, 1)], [(0, 2)]]
        assert sorted(both.records()) == [(0, 1, 2), (0, 1, 7)]
        every = db.view("all", lambda t: t.a.concat(t.b, t.c).count())
        assert every.records() == db.ask(lambda t: t["all"]).records() == [(0, 14)]
        tables["b"].delete(key=0, value=1)
        db.commit()
        assert every.records() == [(0, 13)]
        assert not len(both)
        assert tables["a"].records() == [(0, value) for value in [0, *range(10)]]


@pytest.mark.composed
def test_a_new_table_lets_no_other_one_catch_up() -> None:
    with Session(workers=1) as db:
        old, other = db.table("old", {"key": [1]}, key="key"), db.table("other", {"key": [2]}, key="key")
        counts = db.view("counts", lambda t: t.other.count())
        db.commit()
        old.insert(key=3)
        db.commit()  # `other` is still as of the commit before
        worker = db._catalog.engine._sites[0].worker
        before = activations(worker)
        db.table("new", {"key": [4, 4]}, key="key")
        db.commit()
        after = activations(worker)
        ran = {name.partition(":")[0] for name, count in after.items() if count != before.get(name, 0)}
        assert ran == {"table new"}
        sums = db.view("sums", lambda t: t.old.concat(t.other, t.new).select("key").count())
        assert sorted(sums.records()) == [(1, 1), (2, 1), (3, 1), (4, 2)]
        other.insert(key=2)
        db.commit()
        assert (counts.records(), (2, 2) in sums.records()) == ([(2, 2)], True)


@pytest.mark.parametrize("processes", [False, True])
def test_what_a_commit_does_not_concern_is_read_as_it_was(processes: bool) -> None:
    with Session(workers=2, processes=processes) as db:
        tables = [db.table(f"t{number}", {"key": int, "value": int}, key="key") for number in range(4)]
        sums = [db.view(f"v{number}", lambda t, n=number: t[f"t{n}"].sum()) for number in range(4)]
        pair = db.view("pair", lambda t: t.v1.join(t.v2))
        total = [[0] * 5 for _ in tables]
        for commit in range(40):
            for number, table in enumerate(tables):
                if commit % (number + 2) == 0:
                    table.insert(key=commit % 5, value=commit)
                    total[number][commit % 5] += commit
            db.commit()
            if commit % 3 == 0:
                found = [dict(one.records()) for one in sums]
                assert [[each.get(key, 0) for key in range(5)] for each in found] == total
            if commit % 7 == 0:
                shared = dict(sums[1].records()).keys() & dict(sums[2].records()).keys()
                assert sorted(pair.records()) == [(key, total[1][key], total[2][key]) for key in sorted(shared)]
                asked = db.ask(lambda t: t.t0.join_map(t.t3, records)).records()
                assert Counter(asked) == Counter(joined(tables[0].records(), tables[3].records()))
            if commit == 20:
                db.drop("pair")
                pair = db.view("pair", lambda t: t.v1.join(t.v2))


def test_indexes_are_compacted_after_some_commits_though_the_worker_never_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "MOMENT", 30.0)
    monkeypatch.setattr(engine_module, "CALLS", 1000)
    with Session(workers=1) as db:
        numbers = db.table("numbers", {"x": int})
        for x in range(3 * COMMITS):
            numbers.insert(x=x)
            db.commit()
        [part] = db._catalog.items["numbers"].parts
        assert part is not None
        assert part.trace.logical == Antichain([(3 * COMMITS,)])


def test_commits_in_which_no_operator_runs_end(session: Session) -> None:
    table = session.table("table", {"key": int, "value": int}, key="key")
    for _ in range(3):
        session.commit()
    table.upsert(key=0, value=2)
    table.delete(key=0)  # a message without rows, which the index only learns types from
    for commit in range(4, 7):
        assert session.commit() == commit


def records(*columns: Any) -> tuple[Any, ...]:
    return columns


def joined(left: list[Any], right: list[Any]) -> list[Any]:
    return [(key, one, other) for key, one in left for again, other in right if key == again]


def activations(worker: Worker) -> dict[str, int]:
    """Return how often each operator that has run was activated, by the names of its dataflow and its own."""
    operators = [(dataflow.name, operator) for dataflow in worker.dataflows for operator in dataflow.operators]
    return {f"{name}: {operator.name}": operator.activations for name, operator in operators}


def test_a_worker_that_listens_hears_every_call_and_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MOMENT", 30.0)
    made = Engine(1, "session of a test", Origin("cell.py", 1))
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: [found.extend(made.call(lambda site: 1)) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 800, "a call was not heard"
    begun = clock.monotonic()
    made.close()
    assert not made.is_running
    assert clock.monotonic() - begun < 10, "the end was not heard"


@pytest.mark.parametrize("processes", [False, True])
def test_what_a_session_builds_for_itself_names_the_line_that_opens_it(processes: bool) -> None:
    with Session(2 if processes else 1, processes=processes) as db:
        line = f"{__file__}:{sys._getframe().f_lineno - 1}"

        def explained(site: Site) -> str:
            return site.worker.explain(patience=0.1)

        for text in db._catalog.engine.call(explained):
            assert text.count("(built at ") == text.count(f"'open' (built at {line})") > 0


@pytest.mark.interpreted
def test_a_view_of_a_table_that_the_last_commit_does_not_concern_reduces_each_group_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    postponed: list[int] = []
    of_a_kernel = reduction.BuiltIn.__call__

    def counted(self: reduction.BuiltIn, *arguments: Any) -> Any:
        chunks, pending = of_a_kernel(self, *arguments)
        postponed.append(len(pending))
        return chunks, pending

    monkeypatch.setattr(reduction.BuiltIn, "__call__", counted)
    with Session(workers=1) as db:
        orders = db.table("orders", {"customer": int, "total": int}, key="customer")
        other = db.table("other", {"x": int})
        orders.insert(customer=range(100), total=range(100))
        db.commit()
        for x in range(3):
            other.insert(x=x)
            db.commit()
        postponed.clear()
        assert len(db.ask(lambda t: t.orders.group_by("customer").max("total"))) == 100
        assert postponed == [0]
