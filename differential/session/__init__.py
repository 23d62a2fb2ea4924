"""A live database of collections in a notebook or a script: see `differential.session.session`."""

from differential.session.changes import Change, Changes
from differential.session.definition import Tables
from differential.session.group_by import GroupBy, Windows
from differential.session.live import Watch
from differential.session.readable import Table, View
from differential.session.relation import Relation
from differential.session.row import Row
from differential.session.rows import Rows
from differential.session.session import Session
from differential.session.status import Status
from differential.session.windows import sessions, sliding, tumbling
from timely.lowlevel import refuse_copies

__all__ = [
    "Change",
    "Changes",
    "GroupBy",
    "Relation",
    "Row",
    "Rows",
    "Session",
    "Status",
    "Table",
    "Tables",
    "View",
    "Watch",
    "Windows",
    "sessions",
    "sliding",
    "tumbling",
]

refuse_copies(Session)
