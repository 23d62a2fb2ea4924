"""Change capture: write a collection so that a reader restores it exactly, whatever happens to the messages on the way.

There are two kinds of message, as in the change capture of Frank McSherry's differential dataflow. `CapturedUpdates`
are updates; each (record, time) is written once. A `Statement` gives, for an interval of times (those in advance
of `lower` and not of `upper`), the number of distinct updates at each time. The messages are idempotent and in no
order: a reader may receive each several times, from several sources, late or early. It drops updates that it has
received before, and a time is complete when such intervals cover it and the number of distinct updates is the one
stated. A missing update holds the reader's frontier back; messages that contradict each other are an error.

Each worker writes its updates; worker 0 states how many all workers have written. After a crash the same program can
resume with the same or another number of workers, from the last statement on (`stated`): it writes everything beyond
the statement again, and that must be the same.
"""

from differential.capture.messages import CapturedUpdates, Statement, stated
from differential.capture.write import capture_into

__all__ = ["CapturedUpdates", "Statement", "capture_into", "stated"]
