"""The parts of an arrangement, as the operators that index updates return them."""

from __future__ import annotations

from typing import NamedTuple

from differential.data.codes import Encoder
from differential.trace.reader import TraceReader
from timely import Stream


class Arranged(NamedTuple):
    """A stream of batches, a reader of the trace that holds them all, and what the codes in them mean.

    The first `keys` columns of a record are its key. `key` and `value` encode and decode the columns of both.
    """

    stream: Stream
    trace: TraceReader
    key: Encoder
    value: Encoder
    keys: int
