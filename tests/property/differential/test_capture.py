"""A captured collection is read back exactly, however its messages were repeated, reordered and spread."""

from __future__ import annotations

import threading
import time as clock
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Updates, new_input, replay_into
from differential.capture import CapturedUpdates, Statement, stated
from differential.capture.replay import Seen
from tests.thorough import examples
from timely import Antichain, Config, Worker, execute
from timely.capture import EventFileReader, EventFileWriter, EventQueue
from timely.capture.event import Event
from timely.errors import BuildError, TimelyError

Change = tuple[tuple[Any, ...], tuple[int, ...], int]
changes = st.lists(
    st.tuples(st.integers(0, 3), st.tuples(st.integers(0, 3), st.sampled_from("ab")), st.sampled_from([-1, 1, 2])),
    max_size=12,
)


def written(updates: list[Any], workers: int) -> tuple[list[Event], list[Change]]:
    """Return all messages that this many workers write, and the changes of the collection itself."""
    queues = [EventQueue() for _ in range(workers)]

    def program(worker: Worker) -> list[Change]:
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            collection.capture_into(queues[worker.index])
            output = collection.output(signed=True)
        if worker.index == 0:
            for epoch, record, diff in sorted(updates):
                session.advance_to(epoch)
                session.update(*record, diff=diff)
                worker.step()
        session.close()
        worker.step_while(lambda: not output.done())
        return output.changes()

    found = execute(program, Config(workers=workers))[0]
    messages: list[Event] = []
    for queue in queues:
        while (event := queue.next_nowait()) is not None:
            messages.append(event)
    return messages, found


def read(queues: list[EventQueue], workers: int) -> list[Change]:
    for queue in queues:
        queue.close()

    def program(worker: Worker) -> list[Change]:
        with worker.dataflow() as scope:
            output = replay_into(scope, queues).output(signed=True)
        worker.step_while(lambda: not output.done())
        return output.changes()

    return execute(program, Config(workers=workers))[0]


@settings(max_examples=examples(25), deadline=None)
@given(changes, st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32))
def test_repeated_and_reordered_messages_give_the_collection(
    updates: list[Any], writers: int, readers: int, sources: int, seed: int
) -> None:
    messages, expected = written(updates, writers)
    # How many messages threads write is not the same in each run, so what is drawn here must not be Hypothesis's.
    random = Random(seed)
    sent = messages + [message for message in messages if random.random() < 0.5]
    random.shuffle(sent)
    queues = [EventQueue() for _ in range(sources)]
    for message in sent:
        random.choice(queues).push(message)
    assert read(queues, readers) == expected


def test_a_worker_that_is_behind_learns_the_last_frontier() -> None:
    epochs = 4
    queue, has_stated = EventQueue(), threading.Event()

    def program(worker: Worker) -> list[Change]:
        with worker.dataflow() as scope:
            output = replay_into(scope, [queue]).output(signed=True)
        if worker.index == 1:
            assert has_stated.wait(30), "worker 0 does not state all frontiers"
        else:
            for epoch in range(epochs):
                upper = Antichain([(epoch + 1,)] if epoch + 1 < epochs else [])
                queue.push(Statement(Antichain([(epoch,)]), upper, ()))
                end = clock.monotonic() + 0.05
                while clock.monotonic() < end:  # the frontier goes to worker 1, which takes all of them later
                    worker.step()
            queue.close()
            has_stated.set()
        worker.step_while(lambda: not output.done())
        return output.changes()

    assert execute(program, Config(workers=2)) == [[], []]


def test_a_missing_update_is_reported() -> None:
    statement = Statement(Antichain([(0,)]), Antichain(), (((2,), 1),))
    with pytest.raises(TimelyError, match=r"not complete: 1 update\(s\) at \(2,\)"):
        read([EventQueue([statement])], 1)


def test_an_update_that_no_statement_covers_is_reported() -> None:
    for messages, time in (([], 0), ([Statement(Antichain([(0,)]), Antichain([(4,)]), ())], 4)):
        with pytest.raises(TimelyError, match=rf"no source states how many updates there are from \({time},\) on"):
            read([EventQueue(messages)], 1)


def test_contradicting_updates_are_refused() -> None:
    both = [CapturedUpdates(Updates.at((0,), (np.array([7]),), np.array([diff]))) for diff in (1, 2)]
    with pytest.raises(TimelyError, match=r"the update of \(7,\) at \(0,\) came with different diffs"):
        read([EventQueue(both)], 1)


@given(st.lists(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), max_size=20), max_size=12))
def test_seen_admits_each_row_once(batches: list[list[tuple[int, int, int]]]) -> None:
    seen, known = Seen(), set()
    for batch in batches:
        rows = np.array([(*row, 1) for row in batch], np.int64).reshape(-1, 4).T.copy()
        new, unlike = seen.add(rows)
        assert not len(unlike)
        admitted = [batch[place] for place in new.tolist()]
        assert len(admitted) == len(set(admitted))
        assert set(admitted) == set(batch) - known
        known |= set(batch)
    assert len(seen) == len(known)


@pytest.mark.parametrize("writers", [1, 2])
def test_a_resumed_writer_continues_after_its_last_statement(writers: int, tmp_path: Path) -> None:
    paths = [tmp_path / f"{worker}.events" for worker in range(3)]

    def program(worker: Worker, resumed: bool) -> None:
        after = stated(EventFileReader(path, follow=True) for path in paths[:1]) if resumed else None
        sink = EventFileWriter(paths[worker.index], resume=resumed)
        with worker.dataflow() as scope:
            session, collection = new_input(scope)
            collection.capture_into(sink, after=after)
            probe = collection.probe()
        for epoch in range(6):
            if worker.index == 0:
                session.insert(np.arange(10), np.full(10, epoch))
            session.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(session.time))

    execute(lambda worker: program(worker, False), Config(workers=2))
    whole = paths[0].read_bytes()
    paths[0].write_bytes(whole[: len(whole) // 2])
    execute(lambda worker: program(worker, True), Config(workers=writers))
    sources = [EventFileReader(path) for path in paths[:2]]

    def reread(worker: Worker) -> list[Change]:
        with worker.dataflow() as scope:
            output = replay_into(scope, sources).output()
        worker.step_while(lambda: not output.done())
        return output.changes()

    found = execute(reread, Config(workers=2))[0]
    assert found == [((key, epoch), (epoch,), 1) for epoch in range(6) for key in range(10)]


class Counting(EventQueue):
    """A source that counts how often it is closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1
        super().close()


def test_sources_are_closed_when_they_are_exhausted() -> None:
    messages, expected = written([((7,), (0,), 1)], 1)
    source = Counting(messages)
    assert read([source], 1) == expected
    assert source.closed == 2  # once by `read`, which lets it be exhausted


@pytest.mark.parametrize("after", [5, Antichain([(0, 0)]), Antichain([(3, 0)])])
def test_a_frontier_from_which_a_writer_cannot_resume_is_refused(after: Any) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            new_input(scope)[1].capture_into(EventQueue(), after=after)

    with pytest.raises(BuildError, match=r"capture: `after` is an Antichain of times of 1 coordinate\(s\)"):
        execute(program)
