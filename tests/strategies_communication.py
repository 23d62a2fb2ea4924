"""Hypothesis strategies for messages and for bytes that are not a message, and the equality of messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from timely.capture.codec import FRAME, Body, body_length, check
from timely.communication.codec import Ack, Hello, WireMessage
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
from timely.data.container import Batch, Columns

indices = st.integers(0, 2**31 - 1)
times = st.lists(st.integers(0, 2**62), min_size=1, max_size=4).map(tuple)

scalars = (
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | st.text() | st.binary()
)
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.tuples(st.integers()), inner, max_size=3)
    ),
    max_leaves=12,
)

_dtypes = st.sampled_from(["<i8", "<u8", "<f8", "<f4", "<i4", "<i2", "|i1", "|u1", "|b1", "|S3"])


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    """Columns of all kinds, some text, of one length."""
    length = draw(st.integers(0, 40))
    made: list[Any] = [
        draw(npst.arrays(np.dtype(dtype), length)) for dtype in draw(st.lists(_dtypes, min_size=1, max_size=3))
    ]
    if draw(st.booleans()):
        texts = draw(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=length, max_size=length))
        made.append(np.array(texts, np.dtypes.StringDType()))
    return Columns(tuple(made))


batches = st.lists(plain, max_size=5) | columns()

messages: st.SearchStrategy[WireMessage] = st.one_of(
    st.builds(Data, indices, indices, times, batches),
    st.builds(
        ProgressUpdate,
        indices,
        st.lists(st.tuples(indices, times, st.integers(-(2**40), 2**40)), max_size=6).map(tuple),
    ),
    st.builds(Shape, indices, st.binary(max_size=32), st.lists(st.text(), max_size=4).map(tuple)),
    st.builds(Failure, indices, st.text(st.characters(exclude_categories=["Cs"]))),
    st.builds(Goodbye, indices, indices),
    st.builds(Hello, indices, indices, indices, st.booleans(), indices),
    st.builds(Ack, indices),
    st.builds(Taken, st.lists(st.tuples(indices, indices, indices), max_size=4).map(tuple)),
    st.builds(StallQuestion, indices, indices, indices | st.just(-1), times),
    st.builds(StallAnswer, indices, st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4).map(tuple)),
)


def read_body(data: Body) -> bytearray:
    """Return the body of the frame at the start of `data`, which is an encoded event."""
    frame = bytes(data[: FRAME.size])
    body = bytearray(data[FRAME.size : FRAME.size + body_length(frame)])
    check(frame, body)
    return body


def same_batch(one: Batch, other: Batch) -> bool:
    """Return whether two batches hold the same records, of the same types."""
    if isinstance(one, list) or isinstance(other, list):
        return same_value(one, other)
    assert isinstance(one, Columns)
    assert isinstance(other, Columns)
    return [column.dtype for column in one.columns] == [column.dtype for column in other.columns] and all(
        np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
        for left, right in zip(one.columns, other.columns, strict=True)
    )


def same_value(one: Any, other: Any) -> bool:
    """Return whether two plain values are equal with equal types (a tuple is not a list, True is not 1)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    return bool(one == other)


def same_message(one: WireMessage, other: WireMessage) -> bool:
    """Return whether two messages are equal."""
    if isinstance(one, Data) and isinstance(other, Data):
        return one[:3] == other[:3] and same_batch(one.batch, other.batch)
    return type(one) is type(other) and one == other
