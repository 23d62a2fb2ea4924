"""A further process of a session: runs one worker, and makes the calls that the coordinator sends.

It is started by `differential.session.coordinator`, and ends with it: the socket between them is its lifeline.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from differential.session.call import Call
from differential.session.channel import Channel, MemberCounts, Message, packed, portable
from differential.session.cluster import Cluster, Control
from differential.session.engine import Engine
from differential.session.interrupt import Closing
from differential.session.item import Item, taken
from timely import Config
from timely.errors import SessionError


def main(descriptor: int) -> None:
    """Run a worker for the session that has the other end of a socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator interrupts what is to be interrupted
    SessionMember(descriptor).run()


class SessionMember(Cluster):
    """A process of a session that is not its first."""

    def __init__(self, descriptor: int) -> None:
        self._channel = Channel(Connection(descriptor), self._item)
        self._items: dict[int, Item] = {}
        self._noted: set[Item] = set()
        """The items of which something was counted or kept since the last answer."""
        self._sent: dict[int, MemberCounts] = {}
        """What the coordinator knows of each item."""
        self._verdicts: SimpleQueue[Any] = SimpleQueue()
        """Why an item is not built, or None if it is; Closing at the end."""

    def run(self) -> None:
        """Make calls until the coordinator closes the session, or ends."""
        hello = self._channel.receive()
        if hello is None:
            return
        config, self._index, name, origin = hello
        self._config: Config = replace(config, process=self._index)
        try:
            engine = Engine(1, name, origin, self)
        except SessionError:
            return  # the coordinator knows why (`connected`)
        while (message := self._channel.receive()) is not None:
            kind, *content = message
            if kind == Message.CALL:
                self._submit(engine, *content)
            elif kind == Message.BUILT:
                self._verdicts.put(*content)
            elif kind == Message.FAIL:
                self._fail(engine, *content)
            elif kind == Message.NOTE:
                engine.note_functions()
            elif kind == Message.INTERRUPT:
                self._interrupt(engine, *content)
            elif kind == Message.CLOSE:
                break
        self._verdicts.put(Closing)  # the worker may wait for a verdict that no longer comes
        engine.close()

    @contextmanager
    def connected(self, control: Control) -> Iterator[Config]:
        self._noted = control.noted
        try:
            yield self._config
        except BaseException as error:
            self._channel.send(packed(Message.ENDED, portable(error)))
            raise

    def settle(self, item: Item) -> None:
        self._channel.send(packed(Message.VOTE, portable(item.refused)))
        # All workers build one item at a time, so the next verdict is about this item.
        verdict = self._verdicts.get()
        if verdict is Closing:
            raise Closing
        item.refused = item.refused or verdict

    def fail(self, item: Item, error: BaseException) -> None:
        self._channel.send(packed(Message.FAILED, item.number, portable(error)))

    def left(self, item: Item) -> None:
        self._items.pop(item.number, None)
        self._sent.pop(item.number, None)
        self._channel.send(packed(Message.LEFT, item.number))

    def _item(self, description: tuple[Any, ...]) -> Item:
        """Return the item of this process that a description is about."""
        number, name, kind, origin, peers, names, shown, keys, event_time, types = description
        item = self._items.get(number)
        if item is None:
            item = Item(name, kind, origin, peers, names, shown, keys, number=number)
            self._items[number] = item
        if kind == "table":
            item.event_time = event_time  # the program may state it after the table was made
            item.schema.declare_types(types)
        return item

    def _submit(self, engine: Engine, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            engine.submit(_Call(function, arguments, self._answer))
        except SessionError as error:
            self._send_result(None, error, [])

    def _fail(self, engine: Engine, number: int, error: BaseException) -> None:
        item = self._items.get(number)
        if item is not None:  # else this process has dropped it already
            item.fail(error)
            engine.wake()

    def _interrupt(self, engine: Engine, number: int | None, is_noted: bool) -> None:
        item = None if number is None else self._items.get(number)
        # An item that this process has dropped already has nothing to interrupt.
        if number is None or item is not None:
            engine.interrupt(item, is_noted)

    def _answer(self, call: Call[Any]) -> None:
        """Send what a call has returned, and what it has changed."""
        index, counts = self._index, []
        for item in taken(self._noted):
            if item.parts[index] is not None:
                now = MemberCounts(item.number, item.totals[index], item.nbytes[index], item.take_changed(index))
                if now.changed or now != self._sent.get(item.number):
                    self._sent[item.number] = now._replace(changed=[])  # what has changed is sent once
                    counts.append(now)
        self._send_result(call.results[0] if call.results else None, call.error, counts)

    def _send_result(self, result: Any, error: BaseException | None, counts: list[MemberCounts]) -> None:
        try:
            data = packed(Message.RESULT, result, portable(error), counts)
        except Exception as cannot:
            error = SessionError(f"a result cannot be sent to the first process: {type(cannot).__name__}: {cannot}")
            data = packed(Message.RESULT, None, error, [])
        self._channel.send(data)


class _Call(Call[Any]):
    """A call of the coordinator, which is answered when it is over."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], answer: Callable[[Call[Any]], None]):
        super().__init__(function, arguments, 1)
        self._answer = answer

    def _forget(self) -> None:
        # A call that is abandoned is answered, too: the coordinator expects one answer for each call that it has sent.
        self._answer(self)
        self.results = []  # the coordinator has them
        super()._forget()
