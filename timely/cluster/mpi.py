"""MPI: `mpirun -n 4 timely run --on mpi script.py` runs one process per rank, under any implementation of MPI.

Ranks exchange one message by MPI (with mpi4py, the extra `mpi`): where rank 0 is, the name of the run, and new keys.
Then MPI is shut down, and the processes meet as those of other systems do. So MPI has no part in the run itself, except
that mpirun ends all ranks when one of them dies. A program that uses MPI for its own purposes cannot be started in this
way.

The keys cross the network as MPI's own messages do, which are mostly not encrypted. Where strangers can read that
network, make keys where all machines can read them, and give `--curve DIR`.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from timely.cluster.place import ProcessPlace, agreed_ports, number
from timely.cluster.rendezvous import placed_at
from timely.communication.curve import load_keys, make_keys, write_keys
from timely.config import Config
from timely.errors import ConfigError
from timely.run.directory import run_directory

RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MPI_RANKID")
"""The variables by which Open MPI, PMIx, MPICH and its descendants number the processes that they start."""
_BYTES = 1024
"""The size of the message: a name of 255 characters and two keys take half of it."""


@contextmanager
def placed(config: Config) -> Iterator[Config]:
    """Yield the configuration of this rank, once all ranks are connected."""
    number(os.environ, *RANKS, of="a rank; use 'mpirun -n PROCESSES timely run --on mpi SCRIPT'")
    with run_directory(config.workers) as directory:
        rank, ranks, introduction = _exchange(config, str(directory))
        if config.curve_dir is None:
            if rank != 0:
                write_keys(str(directory), introduction["public"].encode(), introduction["secret"].encode())
            config = replace(config, curve_dir=str(directory))
        place = ProcessPlace(
            rank, ranks, introduction["machine"], introduction["run"], agreed_ports(introduction["run"])
        )
        with placed_at(place, config) as settled:
            yield settled


def _exchange(config: Config, directory: str) -> tuple[int, int, Mapping[str, Any]]:
    """Return the rank of this process, the number of ranks, and what rank 0 has sent to all; shut down MPI."""
    try:
        import mpi4py
    except ImportError:
        raise ConfigError("--on mpi needs mpi4py: pip install 'timely-dataflow[mpi]'") from None
    mpi4py.rc.thread_level = "single"
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ConfigError(f"mpi4py cannot load an implementation of MPI: {error}") from None
    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    message = bytearray(_BYTES)
    if rank == 0:
        text = json.dumps(_introduction(config, directory)).encode()
        message[: len(text)] = text
    world.Bcast(message, root=0)
    MPI.Finalize()
    # JSON has no NUL, so what is stripped is the rest of the message.
    return rank, ranks, json.loads(message.rstrip(b"\0"))


def _introduction(config: Config, directory: str) -> dict[str, str]:
    """Return what rank 0 sends to all; make keys in a directory, unless all ranks have some."""
    introduction = {"machine": socket.gethostname(), "run": os.urandom(8).hex()}
    if config.curve_dir is None:
        make_keys(directory)
        public, secret = load_keys(directory)
        introduction |= {"public": public.decode(), "secret": secret.decode()}
    return introduction
