"""Durable collections: nothing lost, nothing twice, whatever crashes.

What comes in and what goes out is durable; operators are not. A program that is started again loads its inputs as of a
time, computes its answers again, and goes on where it stopped, with the same or another number of workers.
"""

from differential.durable.input import DurableSession, durable_input
from differential.durable.local import LocalStore
from differential.durable.output import DurableOutput, persist
from differential.durable.places import Directory
from differential.durable.shard import Shard
from differential.durable.state import OpenShard, State

__all__ = [
    "Directory",
    "DurableOutput",
    "DurableSession",
    "LocalStore",
    "OpenShard",
    "Shard",
    "State",
    "durable_input",
    "persist",
]
