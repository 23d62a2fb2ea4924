"""Durable collections: nothing lost, nothing twice, whatever crashes.

What comes in and what goes out is durable; operators are not, unless they keep snapshots of private state. A program
that is started again loads its inputs as of a time, computes its answers again, and goes on where it stopped, with the
same or another number of workers.
"""

from differential.durable.input import DurableSession, durable_input
from differential.durable.local import LocalStore
from differential.durable.output import DurableOutput, persist
from differential.durable.shard import Shard
from differential.durable.snapshots import Restorable, in_share, stateful
from differential.durable.state import OpenShard, State
from differential.durable.store import Directory

__all__ = [
    "Directory",
    "DurableOutput",
    "DurableSession",
    "LocalStore",
    "OpenShard",
    "Restorable",
    "Shard",
    "State",
    "durable_input",
    "in_share",
    "persist",
    "stateful",
]
