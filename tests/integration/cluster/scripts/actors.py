"""Run programs on actors of a Ray that this script starts; print what came of each, a line each."""

from __future__ import annotations

import os
import signal
import sys
import time as clock
from pathlib import Path

import ray

import timely.cluster.ray
from differential import new_input
from differential.durable import Directory, Shard, State, durable_input, persist
from timely import Config, Worker
from timely.errors import TransportError


def places(worker: Worker) -> tuple[int, int, int]:
    return worker.index, worker.peers, os.getpid()


def wrong(worker: Worker) -> None:
    if worker.index == 1:
        raise ValueError("a wrong number")
    worker.step()


def dies(worker: Worker) -> None:
    if worker.index == 1:
        clock.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    with worker.dataflow() as scope:
        _open = new_input(scope)
    worker.step_while(lambda: True)


def counts(worker: Worker) -> int:
    """Count words of nine epochs; a process dies after each four of them. Return the first epoch that it made."""
    state = State.open(worker)
    with worker.dataflow() as scope:
        words, collection = durable_input(scope, state.shard("words", keep=0))
        counted = persist(collection.count(), state.shard("counts"))
    first = words.epoch
    print(f"begins at {first}", flush=True)
    for epoch in range(first, 9):
        words.insert(epoch % 2)
        words.advance_to(epoch + 1)
        worker.step_while(lambda epoch=epoch: not counted.is_durable(epoch + 1))
        if worker.index == worker.peers - 1 and epoch % 4 == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    words.close()
    worker.step_while(lambda: not counted.done())
    return first


if __name__ == "__main__":
    STATE = sys.argv[1]
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    found = timely.cluster.ray.run(places, processes=2, workers=2)
    print("places", [place[:2] for place in found], len({pid for *_, pid in found}), flush=True)
    try:
        timely.cluster.ray.run(wrong, processes=2)
    except ValueError as error:
        print("raised", error, flush=True)
    begun = clock.monotonic()
    try:
        timely.cluster.ray.run(dies, processes=2)
    except TransportError as error:
        print("died", str(error)[:20], clock.monotonic() - begun < 20, flush=True)
    firsts = timely.cluster.ray.run(counts, processes=2, restarts=3, state=STATE)
    shard = Shard("counts", Directory(STATE).store("counts"))
    print("continued", firsts, sorted(shard.read(8)), flush=True)
    try:
        timely.cluster.ray.run(places, processes=9, config=Config(rendezvous_seconds=2))
    except TransportError as error:
        print("room", error, flush=True)
    print("lock", (Path(STATE) / "restarts.lock").exists(), flush=True)
