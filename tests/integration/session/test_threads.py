"""Many threads use one session at once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from differential import Session

WAIT = 40.0
ROUNDS = 25


def run_together(*bodies: Callable[[], None]) -> None:
    """Run functions in threads of their own; raise the first error."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(bodies))

    def run(body: Callable[[], None]) -> None:
        try:
            start.wait(WAIT)
            body()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_insert_commit_ask_and_watch_at_once(workers: int) -> None:
    """Transfers keep the sum of all accounts, so whoever sees half of one sees another sum."""
    with Session(workers) as db:
        accounts = db.table("accounts", {"id": list(range(4)), "amount": [100] * 4}, key="id")
        log = db.table("log", {"by": int, "moved": int})
        db.commit()
        total = db.view("total", lambda t: t.accounts.map(lambda id, amount: (id * 0, amount)).sum())
        moved = db.view("moved", lambda t: t.log.group_by("by").sum("moved"))
        changes = moved.changes()
        done = threading.Event()
        sums: list[Any] = []
        expected: Counter[int] = Counter()

        def transfer(seed: int) -> Callable[[], None]:
            def body() -> None:
                chosen = random.Random(seed)
                for _ in range(ROUNDS):
                    one, other = chosen.sample(range(4), 2)
                    with db.transaction():
                        now = dict(accounts.records())
                        accounts.upsert(id=[one, other], amount=[now[one] - 1, now[other] + 1])
                        log.insert(by=seed, moved=1)
                    expected[seed] += 1

            return body

        def look() -> None:
            while not done.is_set():
                seen = accounts.changes()
                sums.extend(total.records())
                sums.extend(db.ask(lambda t: t.accounts.map(lambda id, amount: (id * 0, amount)).sum()).records())
                len(moved), repr(accounts), db.status(), db.explain()
                for change in seen.read_nowait():  # whole transfers, from the first one on
                    assert sum(row[1] * diff for row, diff in change.records()) == 0

        def define() -> None:
            for _ in range(ROUNDS // 2):
                db.view("late", lambda t: t.accounts.filter(lambda r: r.amount > 100)).records()
                db.drop("late")

        def work() -> None:
            try:
                run_together(*(transfer(seed) for seed in range(3)), define)
            finally:
                done.set()

        run_together(work, look)
        assert set(sums) == {(0, 400)}
        assert dict(moved.records()) == expected == dict.fromkeys(range(3), ROUNDS)
        collected: Counter[Any] = Counter()
        times = []
        for change in changes.read_nowait():
            times.append(change.time)
            for row, diff in change.records():
                collected[row] += diff
        assert times == sorted(set(times))
        assert +collected == Counter({(seed, ROUNDS): 1 for seed in range(3)})


def test_a_block_of_another_thread_is_waited_for() -> None:
    with Session() as db:
        numbers = db.table("numbers", {"x": int})
        inside, go = threading.Event(), threading.Event()

        def block() -> None:
            with db.transaction():
                numbers.insert(x=1)
                inside.set()
                assert go.wait(WAIT)
                numbers.insert(x=2)

        def outside() -> None:
            assert inside.wait(WAIT)
            assert numbers.records() == []
            threading.Timer(0.05, go.set).start()
            numbers.insert(x=3)
            assert numbers.records() == [(1,), (2,)]
            db.commit()

        run_together(block, outside)
        assert numbers.records() == [(1,), (2,), (3,)]


def test_a_view_that_another_thread_defines_again_while_it_is_dropped_stays() -> None:
    with Session() as db:
        db.table("numbers", {"x": [1]})
        db.commit()
        db.view("all", lambda t: t.numbers)
        item = db._catalog.items["all"]
        begun, is_failed = threading.Event(), threading.Event()
        item.fail = lambda error: (type(item).fail(item, error), is_failed.set())  # type: ignore[assignment, misc]

        def definition(t: Any) -> Any:
            begun.set()
            assert is_failed.wait(WAIT), "the drop does not begin"
            return t.numbers.map(lambda x: x + 1)

        def define() -> None:
            db.view("all", definition)

        def drop() -> None:
            assert begun.wait(WAIT), "the view is not defined again"
            db.drop("all")

        run_together(define, drop)
        assert db.view("all").records() == [(2,)]
