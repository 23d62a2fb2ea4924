"""Asking the other workers what they hold.

A question goes to every worker that has not said goodbye; each answers when it steps, with what it really holds at that
moment. While this worker waits it takes in whatever else arrives, but runs no operator. A worker that is inside a long
operator, or whose program does something else, does not answer in time; of what it holds this one knows the counts.
"""

from __future__ import annotations

import time as clock
from itertools import count
from math import ceil
from typing import TYPE_CHECKING

from timely.communication.message import Answer, Question
from timely.dataflow.explain import EVERYWHERE, counted_elsewhere, dropped, ended, held_here, name_worker
from timely.dataflow.host import Answers
from timely.order import Time

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.worker.worker import Worker


class Explainer:
    """A worker's questions and answers about what is held."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._numbers = count()
        self._answers: dict[int, dict[int, tuple[str, ...]]] = {}

    def standstill(self, dataflow: Dataflow, seconds: float, patience: float) -> list[str]:
        """Return a line for each thing that any worker holds of a dataflow, if all others have slept for `seconds`.

        Nothing where one has not, or where a worker before this one runs the dataflow, too, and so reports it.
        """
        answers, silent = self.ask(dataflow.index, EVERYWHERE, (ceil(seconds * 1000),), patience)
        before = [peer for peer in answers if peer < self._worker.index]
        if silent or not all(self._is_without(peer, dataflow.index, answers[peer]) for peer in before):
            return []
        lines = held_here(dataflow, EVERYWHERE, ())
        lines += [line for peer in sorted(answers) for line in answers[peer]]
        counted = counted_elsewhere(dataflow, EVERYWHERE, ()) if self._worker.allocator.farewells else []
        return lines + counted + (ended(dataflow) if counted else [])

    def refusals(self) -> list[str]:
        """Return a line, for people, where something was refused: what waits may be waiting for that."""
        allocator = self._worker.allocator
        refused = allocator.statistics().refused
        if not refused:
            return []
        last = f", the last one: {allocator.last_refusal}" if allocator.last_refusal else ""
        name = name_worker(self._worker.config, allocator.index)
        return [f"{name} has refused {refused:,} of the messages and connections to it{last}"]

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
            return [self._unbuilt(worker.index, question.dataflow)]
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
            while len(answers) < len(peers) and clock.monotonic() < deadline:
                allocator.park(min(0.05, max(0.0, deadline - clock.monotonic())))
                worker.take_in()
        finally:
            del self._answers[number]
        return Answers(answers, [peer for peer in peers if peer not in answers])

    def _is_without(self, worker: int, dataflow: int, lines: tuple[str, ...]) -> bool:
        """Return whether a worker's answer is that it does not have a dataflow."""
        return lines in ((dropped(self._worker.config, worker, dataflow),), (self._unbuilt(worker, dataflow),))

    def _unbuilt(self, worker: int, dataflow: int) -> str:
        return f"{name_worker(self._worker.config, worker)} has not built dataflow {dataflow} yet"
