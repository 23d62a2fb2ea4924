"""Open a place: worker 0 claims the collections in it, and all workers learn what they are.

Claims are made one by one, so of two programs that claim the same collections at once each could get some. What one of
them makes final would then lack what the other one appends. So each checks that it has them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from differential.durable.manifest import Manifest
from differential.durable.shard import Shard
from differential.durable.store import Stores
from differential.durable.writer import Writer
from timely import Worker, new_input
from timely.lowlevel import Broadcast, InputPort


def claimed(place: Stores) -> dict[str, Writer]:
    """Return a writer of each collection in a place, which fences off those before."""
    writers: dict[str, Writer] = {}
    # In the order of names, which all programs follow, so two that begin together meet at the first collection.
    for name in place.names():
        check([*writers.values()][:1])  # a program that has begun since claims this collection first
        shard = Shard(name, place.store(name))
        writers[name] = Writer.claim(shard, shard.manifest().role)
    check(writers.values())
    for writer in writers.values():
        writer.remove_garbage()
    return writers


def check(writers: Iterable[Writer]) -> None:
    """Raise FencedError if another program has claimed one of some collections, which may then have the others too."""
    for writer in writers:
        writer.check()


def agreed(worker: Worker, writers: dict[str, Writer]) -> dict[str, Manifest]:
    """Return, on all workers, the manifests of the writers that worker 0 has, by name."""
    received: list[Any] = []

    def receive(input: InputPort) -> None:
        for _, batch in input.drain():
            received.extend(cast(list[object], batch))

    with worker.dataflow("state") as scope:
        session, stream = new_input(scope, name="manifests")
        stream.sink(Broadcast(), receive, name="manifests")
    if worker.index == 0:
        # One record, even of no collections: its arrival ends the wait of each worker.
        session.send_batch([[(name, writer.manifest.to_bytes()) for name, writer in writers.items()]])
    session.close()
    worker.step_while(lambda: not received)
    return {name: Manifest.from_bytes(data, name) for name, data in received[0]}
