"""Differential dataflow: collections of `(data, time, diff)` updates, answering a change with a change.

More names are in `differential.capture`, `delta`, `errors` and `graphs`, and, of traces, in
`differential.arrangement.reading`, `differential.trace.events` and `differential.trace.log`.
"""

from typing import TYPE_CHECKING

import differential.beside
import differential.errors  # noqa: F401  the name `differential.errors`
from differential.collection import Arrangement, Collection, Trace
from differential.data.updates import Updates
from differential.example import example
from differential.operators.cogroup import CoGroups
from differential.operators.groups import Groups
from differential.operators.innermost import innermost
from differential.operators.input import InputSession
from differential.operators.output import Output
from differential.operators.upsert import UpsertSession
from differential.sources import new_input, new_upsert_input, replay_into
from differential.trace.handle import TraceHandle
from differential.variable import Variable
from timely.lowlevel import refuse_copies

if TYPE_CHECKING:
    from differential.session import Session as Session
else:

    def __getattr__(name):
        """Import `Session` when it is first used, since most programs use none."""
        if name != "Session":
            raise AttributeError(f"module 'differential' has no attribute {name!r}")
        from importlib import import_module

        globals()[name] = found = import_module("differential.session").Session
        return found


__all__ = [
    "Arrangement",
    "CoGroups",
    "Collection",
    "Groups",
    "InputSession",
    "Output",
    "Session",
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

refuse_copies(Arrangement, Collection, InputSession, Output, Trace, TraceHandle, UpsertSession, Variable)
