"""Change capture: a collection written so that any reader, in spite of what happens on the way, gets it back exactly.

Two kinds of message, as in the change capture of Frank McSherry's differential dataflow. `Changes` are updates; each
(record, time) is written once. A `Statement` says of an interval of times, those in advance of `lower` and not of
`upper`, how many distinct updates there are at each time. The messages are idempotent and in no order: a reader may
receive each several times, from several places, late or early. It drops updates that it has seen, and knows that a time
is complete when statements cover it and the number of distinct updates is the one stated. An update that is missing
holds its frontier back; messages that contradict each other are an error.

Each worker writes the updates it has; worker 0 states what all have written. After a crash the same program can go on
with the same or another number of workers, from the last statement on (`stated`): what was written beyond it is written
again, and must be the same.
"""

from differential.capture.messages import Changes, Statement, stated
from differential.capture.write import capture_into

__all__ = ["Changes", "Statement", "capture_into", "stated"]
