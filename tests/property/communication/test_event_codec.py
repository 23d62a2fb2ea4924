"""Events are decoded from their bytes unchanged; bytes that are not an event raise one kind of exception."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tests.strategies_communication import batches, read_body, same_batch, times
from timely.capture.codec import decode, encode
from timely.capture.event import Event, Messages, Progress
from timely.errors import CaptureError

progress = st.builds(Progress, st.lists(st.tuples(times.filter(bool), st.integers())).map(tuple))
messages = st.builds(Messages, times.filter(bool), batches)


@given(event=progress | messages)
def test_an_event_is_decoded_as_it_was(event: Event) -> None:
    back = decode(read_body(b"".join(encode(event))))
    assert type(back) is type(event)
    plain, batch = event.parts()
    other_plain, other_batch = back.parts()
    assert plain == other_plain
    if batch is None or other_batch is None:
        assert batch is other_batch
    else:
        assert same_batch(batch, other_batch)


@given(body=st.binary(max_size=200).map(bytearray))
def test_any_bytes_are_an_event_or_refused(body: bytearray) -> None:
    try:
        decode(body)
    except CaptureError:
        return


@given(event=messages, place=st.integers(0), value=st.integers(0, 255))
def test_a_changed_body_is_an_event_or_refused(event: Event, place: int, value: int) -> None:
    body = read_body(b"".join(encode(event)))
    body[place % len(body)] = value
    try:
        decode(body)
    except CaptureError:
        return
