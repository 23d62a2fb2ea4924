"""What operators, and layers on top of `timely`, may use of it: the contract below `Stream` and `Scope`.

The names of the package `timely` are enough to write a program, and most operators. A layer that adds its own kind of
batch, its own streams or operators that schedule themselves needs these too; `differential` and `timely.graphlinq` use
nothing else.

**A batch** is a `list` of records, `Columns`, or a class of one's own that satisfies `Container` and is registered with
`register`. A batch that was emitted is never changed: other operators and other threads read it.

**Columns of several batches** may have different types. `concatenate` makes one batch of several, and `stacked` one
column; both refuse what NumPy would round or turn into text. So do `of_one_kind`, which only converts, and `in_type`,
for a column whose type is known. `as_columns`, `as_mask` and `as_row_mask` check what a function of the program
returned; `call` and `consult` call it, with read-only columns.

**Sums of integers** that need more than 64 bits wrap around in NumPy. `may_wrap` returns False where none can,
`wrapped` returns the groups whose sum or product does, and `total` and `total_of_totals` are exact.

**An operator** is built with `OperatorBuilder`. Its `Logic` is a function that is called once per activation. It is
activated

- when a message arrives at one of its inputs, but not for messages that it has left there although there was room;
- when the frontier of an input built with `frontier=True` moves, unless the operator has set `operator.waits = False`
  because it needs no frontier at the moment;
- when it asks for it: `operator.activate()` runs it in this step or the next, `operator.resume_later()` once no other
  operator is ready, and an `Activator` may be called from any thread.

In an activation it takes messages with `for capability, batch in input` or, with times alone, `input.drain()`; both
leave messages in the queue while `operator.must_wait()`, since consumers have no room, unless the input was built with
`drains=True`. It emits with `output.give(capability, batch)`. All changes it makes to progress become visible together,
after it has returned: so no frontier moves during an activation.

**A capability** is the right to emit at its time or later. Whoever holds one holds up every frontier downstream. The
right that comes with a message ends with the activation; `retain()` makes a capability of it that lasts.

**What an input that drains its queue may rely on**: when its frontier has passed a time, every message at that time has
been queued. So it takes all messages first and asks for the frontier then.

**A function that needs no capability** runs in line with what it consumes: `inline` and `inline_timed` (which can
change times, stating how as a `PathSummary`) cost a call per batch, and no activation. `split` divides each batch among
several streams.

**Streams of one's own class**: operators are functions over `StreamCore` and `ScopeCore`, and return streams of the
class that they were given.

>>> def largest_so_far(stream):
...     builder = OperatorBuilder(stream.scope, "largest so far")
...     input = builder.add_input(stream, Gather())
...     output, result = builder.add_output()
...     def constructor(_):
...         largest = []
...         def logic():
...             for capability, batch in input:
...                 for record in batch:
...                     if not largest or record > largest[0]:
...                         largest[:] = [record]
...                         output.give(capability, [record])
...         return logic
...     builder.build(constructor)
...     return result
>>> example(lambda scope: largest_so_far(scope.to_stream([3, 1, 4])))
[3, 4]
"""

from timely.arguments import check_functions, check_kind, check_parameters, check_whole, refusal
from timely.capture.event import as_integer, checked_time, register as register_event
from timely.config import Config
from timely.data.buffers import Buffers, columns_from_buffers, columns_to_buffers
from timely.data.column_like import ColumnLike
from timely.data.columns import as_column, in_type, of_one_kind, rows_and_columns, stacked, starts_of_runs
from timely.data.comparisons import BYTES, COMPARISONS, TEXTS, refuse_comparison, refuse_members
from timely.data.container import (
    Array,
    Batch,
    Columns,
    Container,
    as_columns,
    as_mask,
    as_row_mask,
    bytes_of,
    concatenate,
    of_columns,
    register,
)
from timely.data.exact import may_wrap, total, total_of_totals, wrapped
from timely.data.logical import NULL, LogicalType, is_stated, stated, with_none
from timely.data.moments import Durations, time_name, unit_of, zone_of
from timely.data.numeric import Decimals, code_floats, float_codes
from timely.data.opaque import Items, hashable
from timely.data.strings import exact_operand, plain_string
from timely.data.text import text_column
from timely.data.typed import Typed, fill_null, is_null, name_of, nullable, typed
from timely.data.types import logical_type
from timely.data.user_functions import call, consult, read_only_views
from timely.dataflow.activator import Activator
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.capability_set import CapabilitySet
from timely.dataflow.core import DataflowCore
from timely.dataflow.host import Host
from timely.dataflow.inline import derived, inline, inline_timed, merged, split
from timely.dataflow.input_capability import InputCapability
from timely.dataflow.operator import Logic, Operator
from timely.dataflow.operator_core import OperatorCore
from timely.dataflow.operators.capture import check_sink
from timely.dataflow.operators.each_time import map_each_time
from timely.dataflow.operators.generic import UnaryLogic, sink
from timely.dataflow.operators.input import Input, new_input
from timely.dataflow.operators.replay import EVENTS_PER_RUN, check_sources, poller
from timely.dataflow.pact import Broadcast, Exchange, Gather, Pact, Pipeline, scatter
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.routing import destinations, hash_columns
from timely.dataflow.streams import S, ScopeCore, StreamCore, check_scope, check_streams
from timely.dataflow.tee import Push
from timely.observe.events import StateResized
from timely.observe.log import Log
from timely.observe.notices import notify
from timely.order import LIMIT, Moment, Time, as_time, less_equal
from timely.origin import Origin, attributed, is_ours, raised_at, user_origin
from timely.progress.antichain import CLOSED, Antichain
from timely.progress.summary import PathSummary
from timely.uncopied import refuse_copies

__all__ = [
    "BYTES",
    "CLOSED",
    "COMPARISONS",
    "EVENTS_PER_RUN",
    "LIMIT",
    "NULL",
    "TEXTS",
    "Activator",
    "Antichain",
    "Array",
    "Batch",
    "Broadcast",
    "Buffers",
    "Capability",
    "CapabilitySet",
    "ColumnLike",
    "Columns",
    "Config",
    "Container",
    "DataflowCore",
    "Decimals",
    "Durations",
    "Exchange",
    "Gather",
    "Host",
    "Input",
    "InputCapability",
    "InputPort",
    "Items",
    "Log",
    "Logic",
    "LogicalType",
    "Moment",
    "Operator",
    "OperatorBuilder",
    "OperatorCore",
    "Origin",
    "OutputPort",
    "Pact",
    "PathSummary",
    "Pipeline",
    "Push",
    "S",
    "ScopeCore",
    "StateResized",
    "StreamCore",
    "Time",
    "Typed",
    "UnaryLogic",
    "as_column",
    "as_columns",
    "as_integer",
    "as_mask",
    "as_row_mask",
    "as_time",
    "attributed",
    "bytes_of",
    "call",
    "check_functions",
    "check_kind",
    "check_parameters",
    "check_scope",
    "check_sink",
    "check_sources",
    "check_streams",
    "check_whole",
    "checked_time",
    "code_floats",
    "columns_from_buffers",
    "columns_to_buffers",
    "concatenate",
    "consult",
    "derived",
    "destinations",
    "exact_operand",
    "fill_null",
    "float_codes",
    "hash_columns",
    "hashable",
    "in_type",
    "inline",
    "inline_timed",
    "is_null",
    "is_ours",
    "is_stated",
    "less_equal",
    "logical_type",
    "map_each_time",
    "may_wrap",
    "merged",
    "name_of",
    "new_input",
    "notify",
    "nullable",
    "of_columns",
    "of_one_kind",
    "plain_string",
    "poller",
    "raised_at",
    "read_only_views",
    "refusal",
    "refuse_comparison",
    "refuse_copies",
    "refuse_members",
    "register",
    "register_event",
    "rows_and_columns",
    "scatter",
    "sink",
    "split",
    "stacked",
    "starts_of_runs",
    "stated",
    "text_column",
    "time_name",
    "total",
    "total_of_totals",
    "typed",
    "unit_of",
    "user_origin",
    "with_none",
    "wrapped",
    "zone_of",
]
