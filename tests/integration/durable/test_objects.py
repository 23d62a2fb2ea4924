"""Durable collections in an object store behind a network, with the protocol of S3."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from threading import Thread

import pytest

from differential.durable import Shard, State, durable_input, persist
from differential.durable.objects import Objects, ObjectStore
from tests.integration.durable.object_server import ObjectServer, store_at
from tests.integration.launcher.launching import ROOT
from tests.unit.durable.test_stores import (
    test_a_manifest_is_replaced_by_who_knows_it as check_manifests,
    test_what_was_put_is_there_until_it_is_deleted as check_parts,
)
from timely import Worker, execute_directly
from timely.errors import FencedError, OperatorError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
EPOCHS, KILLS = 60, 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    started = ObjectServer(tmp_path_factory.mktemp("server"))
    try:
        yield started
    finally:
        started.close()


def program(worker: Worker, place: Objects, last: int) -> int:
    """Make the epochs up to `last` that are not durable; return the first of them."""
    state = State.open(worker, place)
    with worker.dataflow() as scope:
        session, numbers = durable_input(scope, state.shard("numbers", keep=0))
        answer = persist(numbers.map(lambda x: x % 7).count(), state.shard("counts"))
    first = session.epoch
    for epoch in range(first, last):
        session.insert(list(range(epoch, epoch + 10)))
        session.advance_to(epoch + 1)
        worker.step_while(lambda: not answer.is_durable(session.epoch))
    session.close()
    worker.step_while(lambda: not answer.done())
    return first


def check(place: Objects, last: int) -> None:
    """Compare what is durable with what the epochs add up to, at each time."""
    counts = Shard("counts", place.store("counts"))
    counts.verify()
    assert counts.manifest().upper == last
    for epoch in range(last):
        expected = Counter(x % 7 for first in range(epoch + 1) for x in range(first, first + 10))
        assert counts.read(epoch) == dict.fromkeys(expected.items(), 1)


def test_a_bucket_keeps_what_every_store_promises(server: ObjectServer) -> None:
    check_parts(ObjectStore(server.store(), "one/words"))
    check_manifests(ObjectStore(server.store(), "two/words"))


def test_of_several_writers_that_know_a_manifest_one_replaces_it(server: ObjectServer) -> None:
    """The manifests of two writers differ, as they do in use: one that finds its own there has replaced the former."""
    store = ObjectStore(server.store(), "many/words")
    assert store.compare_and_set(None, b"0 by nobody")
    done: list[int] = []

    def count(writer: int) -> None:
        while len(done) < 40:
            manifest = store.get_manifest()
            assert manifest is not None
            present = int(manifest.split()[0])
            if store.compare_and_set(manifest, f"{present + 1} by {writer}".encode()):
                done.append(present)

    writers = [Thread(target=count, args=(writer,), daemon=True) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert sorted(done) == list(range(len(done)))
    manifest = store.get_manifest()
    assert manifest is not None
    assert int(manifest.split()[0]) == len(done)


def test_a_program_that_is_killed_goes_on_in_a_bucket(server: ObjectServer) -> None:
    random, place = Random(5), Objects(server.store(), "killed")
    for kill in range(KILLS):
        command = [sys.executable, "-m", "tests.integration.durable.test_objects", server.url, "killed"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
            try:
                assert running.stdout is not None
                assert running.stdout.readline() == "begins\n"
                running.wait(random.uniform(0, 1.0))
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
            finally:
                running.kill()
                assert running.wait(60) in (0, -signal.SIGKILL), f"run {kill}"
    assert execute_directly(lambda worker: program(worker, place, EPOCHS)) > 0
    check(place, EPOCHS)


def test_a_program_that_another_one_has_replaced_is_refused(server: ObjectServer) -> None:
    place = Objects(server.store(), "two-at-once")

    def replaced(worker: Worker) -> None:
        state = State.open(worker, place)
        with worker.dataflow() as scope:
            session, _ = durable_input(scope, state.shard("numbers", keep=0))
        worker.step()
        execute_directly(lambda other: program(other, Objects(store_at(server.url), "two-at-once"), 3))
        session.insert(1)
        session.close()
        worker.step_while(lambda: not session.is_durable(1))

    with pytest.raises((FencedError, OperatorError), match="was claimed by process"):
        execute_directly(replaced)
    check(place, 3)


if __name__ == "__main__":
    print("begins", flush=True)
    execute_directly(lambda worker: program(worker, Objects(store_at(sys.argv[1]), sys.argv[2]), EPOCHS))
