"""Asking the other workers what they hold.

A question goes to every worker that has not said goodbye; each answers when it steps, with what it really holds at that
moment. While this worker waits it takes in whatever else arrives, but runs no operator. A worker that is inside a long
operator, or whose program does something else, does not answer in time; of what it holds this one knows the counts.
"""

from __future__ import annotations

import time as clock
from itertools import count
from typing import TYPE_CHECKING

from timely.communication.message import Answer, Question
from timely.dataflow.explain import EVERYWHERE, dropped, held_here, unbuilt
from timely.dataflow.host import Answers
from timely.observe.activity import ASKING
from timely.order import Time

if TYPE_CHECKING:
    from timely.worker.worker import Worker


class Explainer:
    """A worker's questions and answers about what is held."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._numbers = count()
        self._answers: dict[int, dict[int, tuple[str, ...]]] = {}

    def receive(self, sender: int, message: Question | Answer) -> None:
        """Answer a question, or note an answer; raise `FrameError` for a question about no place there is.

        One about everything, with a time, is only for a worker that has slept for so many milliseconds.
        """
        if isinstance(message, Question):
            asleep = message.time[0] / 1000 if message.location == EVERYWHERE and message.time else 0.0
            if asleep and not self._worker.standstill.has_lasted(asleep):
                return
            self._worker.allocator.send(sender, Answer(message.number, tuple(self._held(sender, message))))
        elif message.number in self._answers:
            self._answers[message.number][sender] = message.lines

    def _held(self, sender: int, question: Question) -> list[str]:
        worker = self._worker
        dataflow = worker.dataflow_at(question.dataflow)
        if dataflow is not None:
            if question.location != EVERYWHERE:
                dataflow.arrivals.check_place(sender, question.location, question.time)
            return held_here(dataflow, question.location, question.time)
        if question.dataflow >= worker.built:
            return [unbuilt(worker.config, worker.index, question.dataflow)]
        if question.dataflow in worker.abandoned:
            return [dropped(worker.config, worker.index, question.dataflow)]
        return []

    def ask(self, dataflow: int, location: int, time: Time, patience: float) -> Answers:
        """Return the peers' answers, and the peers that gave none; see `Asker`."""
        worker, allocator = self._worker, self._worker.allocator
        peers = [peer for peer in range(worker.peers) if peer != worker.index and peer not in allocator.farewells]
        if not peers or patience <= 0:
            return Answers({}, peers)
        number = next(self._numbers)
        answers = self._answers[number] = {}
        for peer in peers:
            allocator.send(peer, Question(number, dataflow, location, time))
        deadline = clock.monotonic() + patience
        try:
            with worker.activity.during(ASKING):
                while len(answers) < len(peers) and clock.monotonic() < deadline:
                    allocator.park(min(0.05, max(0.0, deadline - clock.monotonic())))
                    worker.take_in()
        finally:
            del self._answers[number]
        return Answers(answers, [peer for peer in peers if peer not in answers])
