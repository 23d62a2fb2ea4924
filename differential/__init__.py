"""Differential dataflow: collections of `(data, time, diff)` updates, answering a change with a change."""

import differential.beside  # noqa: F401  what is imported next may be compiled for the other package
import timely.api  # noqa: F401  all of it first, as programs do: its modules import each other
from differential.arrangement import Arrangement
from differential.capture import Changes, Statement, capture_into, stated
from differential.collection import Collection, innermost
from differential.example import example
from differential.operators.cogroup import CoGroups
from differential.operators.groups import Groups
from differential.operators.input import InputSession, new_input
from differential.operators.iterate import Variable
from differential.operators.output import Output
from differential.operators.upsert import UpsertSession, new_upsert_input
from differential.replay import replay_into
from differential.traces import Contents, Cursor, Found, Trace, TraceStatistics
from differential.updates import Updates

__all__ = [
    "Arrangement",
    "Changes",
    "CoGroups",
    "Collection",
    "Contents",
    "Cursor",
    "Found",
    "Groups",
    "InputSession",
    "Output",
    "Statement",
    "Trace",
    "TraceStatistics",
    "Updates",
    "UpsertSession",
    "Variable",
    "capture_into",
    "example",
    "innermost",
    "new_input",
    "new_upsert_input",
    "replay_into",
    "stated",
]
