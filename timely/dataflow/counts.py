"""What the operators of one dataflow have done on one worker while they were counted (`timely.dataflow.counting`)."""

from __future__ import annotations


class Counts:
    """Numbers that only grow. The worker's own thread adds to them, and any thread may read them."""

    def __init__(self, operators: int, channels: int, inlines: int) -> None:
        self.nanoseconds = [0] * operators
        """The time inside of activations, with that of what runs in line."""
        self.emitted = [0] * operators
        """Records that have left each operator, whatever receives them."""
        self.received = [0] * channels
        """Records of each channel that this worker's operator has received."""
        self.inline_received = [0] * inlines
        self.inline_sent = [0] * inlines
