"""The weight of a message, by which queues count the room it takes."""

from __future__ import annotations

from sys import getsizeof

import numpy as np
import pytest

from timely.communication.message import Data, Goodbye, Message, ProgressUpdate, weight
from timely.data.container import Columns


@pytest.mark.parametrize(
    ("message", "bytes_held"),
    [
        (Data(0, 1, (2,), Columns((np.arange(10), np.zeros(10, np.int8)))), 90),
        (Data(0, 1, (2,), ["a record", "another"]), 16 + getsizeof("a record") + getsizeof("another")),
        (Data(0, 1, (2,), Columns((np.arange(0),))), 0),
        (ProgressUpdate(0, ((1, (2,), 3),)), 0),
        (Goodbye(0, 1), 0),
    ],
)
def test_a_message_weighs_64_bytes_and_what_its_batch_holds(message: Message, bytes_held: int) -> None:
    assert weight(message) == 64 + bytes_held
