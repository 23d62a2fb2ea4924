"""What jobs read: graphs, and changes to graphs, from files in several formats.

`open_graph` opens a graph once in each process, and each worker reads its `share` of it. `open_changes` opens a file of
changes, which one worker reads, and may follow while it grows. Lines that cannot be read are `Faults`.
"""

from differential.jobs.input.changes import EpochChange, OpenedChanges
from differential.jobs.input.edges import EdgeBatch, OpenedGraph
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.graph import open_graph
from differential.jobs.input.layout import InputLayout
from differential.jobs.input.names import Names
from differential.jobs.input.open_changes import open_changes

__all__ = [
    "EdgeBatch",
    "EpochChange",
    "Fault",
    "Faults",
    "InputLayout",
    "Names",
    "OpenedChanges",
    "OpenedGraph",
    "open_changes",
    "open_graph",
]
