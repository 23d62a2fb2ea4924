"""Captured streams: the events of a stream, written to and read from memory, files and sockets.

`Stream.capture_into` writes the events of a stream to an `EventSink`. `timely.replay_into` reads them from
`EventSource`s and turns them into a stream again. `extract` lists the captured records by time, without a dataflow.

>>> queue = EventQueue()
>>> _ = example(lambda scope: scope.to_stream(range(3)).capture_into(queue))
>>> extract(queue)
[((0,), [0, 1, 2])]
"""

from timely.capture.event import EventQueue, EventSink, EventSource, extract
from timely.capture.file import EventFileReader, EventFileWriter
from timely.capture.socket import EventSocketReader, EventSocketWriter

__all__ = [
    "EventFileReader",
    "EventFileWriter",
    "EventQueue",
    "EventSink",
    "EventSocketReader",
    "EventSocketWriter",
    "EventSource",
    "extract",
]
