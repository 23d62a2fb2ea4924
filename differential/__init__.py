"""Differential dataflow: collections of `(data, time, diff)` updates, answering a change with a change.

More names are in `differential.capture`, `delta`, `errors`, `events`, `graphs`, `logging` and `traces`.
"""

import differential.beside
import differential.errors  # noqa: F401  the name `differential.errors`
import timely.api  # noqa: F401  all of it first, as programs do: its modules import each other
from differential.arrangement import Arrangement
from differential.collection import Collection, innermost
from differential.example import example
from differential.operators.cogroup import CoGroups
from differential.operators.groups import Groups
from differential.operators.input import InputSession, new_input
from differential.operators.iterate import Variable
from differential.operators.output import Output
from differential.operators.upsert import UpsertSession, new_upsert_input
from differential.replay import replay_into
from differential.traces import Trace
from differential.updates import Updates

__all__ = [
    "Arrangement",
    "CoGroups",
    "Collection",
    "Groups",
    "InputSession",
    "Output",
    "Trace",
    "Updates",
    "UpsertSession",
    "Variable",
    "example",
    "innermost",
    "new_input",
    "new_upsert_input",
    "replay_into",
]
