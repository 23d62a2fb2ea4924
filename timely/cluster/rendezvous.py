"""Rendezvous: how processes that a cluster's system has started learn each other's addresses, and keys.

Each process knows its index, how many there are, and where process 0 is. Process 0 listens (`head`). Every other
process connects and introduces itself (`member`): its index, its ports, and the addresses of both ends of the
connection. So nobody has to know by which names or on which network the machines reach each other. When all are
connected, process 0 answers each with the addresses of all, the generation of this attempt and, under a seal that
keeps secrets, new keys. Under any other seal all processes have the keys.

All lines are sealed (`seal`). Each end includes what the other has chosen at random for this connection, so a recorded
line has no effect. Connections that send anything else are closed and counted.

**Missing processes.** While they wait, processes print every four seconds for which. A process that ends while others
wait is named at once, unless the system starts it again in its place. The connections stay open after the answer, and
the end of one is the news that its process has ended (`lifeline`). Workers that have not met this process then report
that instead of waiting for it.

A rendezvous of N processes takes N - 1 connections with one line in each direction, and process 0 opens and makes
N - 1 seals.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from timely.cluster.head import Head
from timely.cluster.member import Member
from timely.cluster.place import ProcessPlace, settled
from timely.cluster.seal import KeyPairSeal, Munge, Seal
from timely.communication.curve import load_keys, make_keys, write_keys
from timely.config import Config
from timely.errors import ConfigError
from timely.run.directory import run_directory


@contextmanager
def placed_at(place: ProcessPlace, config: Config) -> Iterator[Config]:
    """Yield the configuration of the process at a place, once all processes are connected.

    If `config` names no directory of keys, process 0 makes keys and hands them out under a seal of munge. They are in a
    private directory of this process until the context ends.
    """
    if place.process >= place.processes:
        raise ConfigError(
            f"this is process {place.process} of {place.processes}, which are counted from 0: the system has started "
            "more than it states; start all of them again with one number"
        )
    if place.processes == 1:
        yield replace(config, processes=1, process=0, addresses=())
        return
    keys = None if config.curve_dir is None else load_keys(config.curve_dir)
    seal: Seal = Munge() if keys is None else KeyPairSeal(*keys)
    deadline = clock.monotonic() + config.rendezvous_seconds
    with run_directory(config.workers) as directory:
        curve_dir = config.curve_dir or str(directory)
        if place.process == 0:
            if keys is None:
                make_keys(curve_dir)
            addresses, generation = Head(place, config, seal, load_keys(curve_dir)).host(deadline)
        else:
            addresses, generation, handed_out = Member(place, config, seal, keys).attend(deadline)
            if keys is None:
                write_keys(curve_dir, *handed_out)
        yield settled(config, place, addresses, generation, curve_dir)
