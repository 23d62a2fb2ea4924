"""Seeds of the fuzzer: an input for every kind of message and event, and the inputs in `corpus.txt`.

A line of the corpus is an input in hexadecimal that reaches branches that no other input reaches, found by long runs.
"""

from __future__ import annotations

from pathlib import Path

import msgpack
import numpy as np

from differential.capture import CapturedUpdates, Statement
from differential.data.updates import Updates
from tests.fuzz.frames import joined
from timely.capture import codec as event_codec, event as captured
from timely.capture.event import Event
from timely.communication.codec import Ack, Hello, MessageEncoder, WireMessage
from timely.communication.message import (
    Data,
    Failure,
    Goodbye,
    ProgressUpdate,
    Shape,
    StallAnswer,
    StallQuestion,
    Taken,
)
from timely.communication.plain import PlainPacker
from timely.data import container
from timely.data.container import Batch, Columns
from timely.progress.antichain import Antichain

CORPUS = Path(__file__).with_name("corpus.txt")

_BATCHES: list[Batch] = [
    [1, "text", None, (2.5, b"bytes", [True, {"a": (1 << 80,)}])],
    Columns((np.arange(3), np.array([True, False, True]))),
    Columns((np.array([0.5, 1.5]), np.array(["a", "wörter"], np.dtypes.StringDType()))),
    Columns((np.array([b"x", b""], np.object_), np.array([1, 2], np.int16))),
    Updates.at((3,), (np.arange(2), np.array([0.5, 1.5]))),
    Updates((np.arange(3),), np.array([[0, 1], [2, 0]]), np.array([0, 1, 1]), np.array([1, -1, 2])),
]

_MESSAGES: list[WireMessage] = [
    *(Data(1, 2, (3, 4), batch) for batch in _BATCHES),
    Data(0, 0, (0,), Columns((np.arange(2000),))),
    ProgressUpdate(1, ((7, (2**40, 0), -3), (8, (1,), 1))),
    Shape(2, b"digest", ("map", "filter")),
    Failure(0, "no"),
    Goodbye(0, 3),
    Goodbye(1, 0, has_left=True),
    Hello(2, 1, 1 << 20, True, 4711, "process"),
    Ack(1 << 30),
    StallQuestion(1, 0, -1, (5,)),
    StallAnswer(1, ("a line",)),
    Taken(((1, 2, 3), (0, 0, 1))),
]

_EVENTS: list[Event] = [
    captured.Progress((((0,), -1), ((1,), 1))),
    *(captured.Messages((2,), batch) for batch in _BATCHES),
    CapturedUpdates(Updates.at((3,), (np.arange(2),))),
    Statement(Antichain([(0,)]), Antichain([(2,)]), (((0,), 2), ((1,), 1))),
]


def seeds() -> list[bytes]:
    """Return inputs that are understood."""
    plain = PlainPacker().pack
    made = []
    for message in _MESSAGES:
        encoded = [bytes(frame) for frame in MessageEncoder(0, "g").encode(message, 1)]
        made.append(b"\0" + joined([encoded[0][4:], *encoded[1:]]))
        _, _, _, _, *values = msgpack.unpackb(encoded[0][4:], use_list=False)
        made.append(b"\1" + joined([*map(msgpack.packb, values), b"".join(encoded[1:])]))
    for batch in _BATCHES:
        kind, meta, buffers = container.encode(batch)
        number = ("columns", "updates", "list").index(kind)
        made.append(b"\2" + joined([bytes((number,)), plain(meta), *(buffer.tobytes() for buffer in buffers)]))
    for event in _EVENTS:
        frame = b"".join(map(bytes, event_codec.encode(event)))
        made.append(b"\3" + joined([frame[event_codec.FRAME.size :]]))
    return made


def corpus() -> list[bytes]:
    """Return the inputs kept."""
    return [bytes.fromhex(line) for line in CORPUS.read_text().split()] if CORPUS.exists() else []
