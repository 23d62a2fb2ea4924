"""Asking the other workers what they hold, and answering them.

A question goes to every worker that has not ended. Each answers when it steps, with what it holds at that moment. While
the asking worker waits it takes in whatever else arrives, but runs no operator. A worker does not answer in time if it
is inside a long operator, or its program does something else; then only the counts of what it holds are known.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from itertools import count

from timely.communication.message import StallAnswer, StallQuestion
from timely.dataflow.explain import EVERYWHERE, dropped, held_here, unbuilt
from timely.dataflow.host import Answers, Host
from timely.observe.activity import ASKING
from timely.order import Time
from timely.worker.dataflows import Dataflows


class Explainer:
    """A worker's questions and answers about what is held.

    `has_slept(seconds)` returns whether the worker has slept for so long; `take_in()` delivers what has arrived.
    """

    def __init__(
        self,
        host: Host,
        dataflows: Dataflows,
        has_slept: Callable[[float], bool],
        take_in: Callable[[], object],
    ) -> None:
        self._host = host
        self._dataflows = dataflows
        self._has_slept = has_slept
        self._take_in = take_in
        self._numbers = count()
        self._answers: dict[int, dict[int, tuple[str, ...]]] = {}

    def receive(self, sender: int, message: StallQuestion | StallAnswer) -> None:
        """Answer a question, or note an answer; raise `FrameError` for a question about no place there is.

        A question about everything, with a time, is only for a worker that has slept for as many milliseconds.
        """
        if isinstance(message, StallQuestion):
            asleep = message.time[0] / 1000 if message.location == EVERYWHERE and message.time else 0.0
            if not asleep or self._has_slept(asleep):
                self._host.allocator.send(sender, StallAnswer(message.number, tuple(self._held(sender, message))))
        elif message.number in self._answers:  # else the answer is late: `ask` has returned without it
            self._answers[message.number][sender] = message.lines

    def ask(self, dataflow: int, location: int, time: Time, patience: float) -> Answers:
        """Return the peers' answers, and the peers that gave none; see `timely.dataflow.host.Asker`."""
        host, allocator = self._host, self._host.allocator
        peers = [peer for peer in range(host.peers) if peer != host.index and peer not in allocator.farewells]
        if not peers or patience <= 0:
            return Answers({}, peers)
        number = next(self._numbers)
        answers = self._answers[number] = {}
        for peer in peers:
            allocator.send(peer, StallQuestion(number, dataflow, location, time))
        deadline = clock.monotonic() + patience
        try:
            with host.activity.during(ASKING):
                while len(answers) < len(peers) and clock.monotonic() < deadline:
                    allocator.park(min(0.05, max(0.0, deadline - clock.monotonic())))
                    # This also answers the peers' questions, so two workers that ask each other do not wait in vain.
                    self._take_in()
        finally:
            del self._answers[number]
        return Answers(answers, [peer for peer in peers if peer not in answers])

    def _held(self, sender: int, question: StallQuestion) -> list[str]:
        """Return a line for each thing that this worker holds, or that it does not have the dataflow."""
        index, config = question.dataflow, self._host.config
        dataflow = self._dataflows.running.get(index)
        if dataflow is not None:
            if question.location != EVERYWHERE:
                dataflow.arrivals.check_place(sender, question.location, question.time)
            return held_here(dataflow, question.location, question.time)
        if index >= self._dataflows.built:
            return [unbuilt(config, self._host.index, index)]
        return [dropped(config, self._host.index, index)] if index in self._dataflows.abandoned else []
