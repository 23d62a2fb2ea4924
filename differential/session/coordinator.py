"""The first process of a session with several: starts the others, sends them the calls, and adds up what they answer.

For each member there are two threads here. One sends calls in the order of their list, which it follows as a worker
does, and in between what the session puts into its outbox. The other one receives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time as clock
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from multiprocessing.connection import Pipe
from queue import SimpleQueue
from threading import Thread
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from differential.session.call import Call
from differential.session.channel import Channel, MemberCounts, Message, SentDefinition, packed, portable
from differential.session.cluster import Cluster, Control
from differential.session.interrupt import Closing
from differential.session.item import Item
from timely import Config
from timely.errors import ConfigError, SessionError
from timely.lowlevel import Origin
from timely.services import declare_fate, run_directory

_START = "import sys; sys.path[:] = sys.argv[2:]; from differential.session.member import main; main(int(sys.argv[1]))"
ENDING_SECONDS = 2.0
"""How long members may take to end once they are asked to."""


class Coordinator(Cluster):
    """The members of a session, as its first process sees them."""

    def __init__(self, settings: Config, name: str, origin: Origin) -> None:
        import_module("zmq")  # not in the engine's thread: if that is ended while it imports, half a module is left
        super().__init__(settings)
        self._name = name
        self._origin = origin
        self._members: list[_Member] = []
        self._items: WeakValueDictionary[int, Item] = WeakValueDictionary()
        self._is_closing = False

    @contextmanager
    def connected(self, control: Control) -> Iterator[Config]:
        with run_directory(1) as directory:
            addresses = tuple(f"ipc://{directory}/{process}" for process in range(self._config.workers))
            config = replace(
                self._config,
                processes=self._config.workers,
                workers=1,
                addresses=addresses,
                generation=uuid4().hex[:16],
                curve_dir=None,  # the sockets are in a private directory
            )
            try:
                for process in range(1, self._config.workers):
                    hello = packed(config, process, self._name, self._origin)
                    member = _Member(self._items, control, process, self._name, hello, config.generation)
                    self._members.append(member)
                self.wake()  # for the calls, and the end, that came before there were members
                if self._is_closing:
                    self.close()
                yield config
            finally:
                self.close()
                self.kill()
                for process in range(1, self._config.workers):
                    declare_fate(process, "", config.generation)

    def pack(self, call: Call[Any]) -> None:
        named = [value for value in call.elsewhere if isinstance(value, Item)]
        self._items.update({item.number: item for item in named})  # first: answers name items by their numbers
        try:
            sent = tuple(SentDefinition(value) if callable(value) else value for value in call.elsewhere)
            call.packed = packed(Message.CALL, call.function, sent)
        except ConfigError:
            raise
        except Exception as error:
            raise SessionError(
                f"{named[0] if named else 'a call'} cannot be sent to the other processes of the session "
                f"({type(error).__name__}: {error}): a definition may use functions, modules and values, but nothing "
                "that belongs to one process"
            ) from error

    def wake(self) -> None:
        for member in self._members:
            member.post(b"")

    def settle(self, item: Item) -> None:
        for member in self._members:  # all of them: a vote that is left would count as one on the next item
            vote = member.votes.get()
            if vote is Closing:
                raise Closing
            item.refused = item.refused or vote
        # No worker builds before the last vote: all have the verdict, or all end.
        self._broadcast(Message.BUILT, portable(item.refused))

    def fail(self, item: Item, error: BaseException) -> None:
        self._broadcast(Message.FAIL, item.number, portable(error))

    def note_functions(self) -> None:
        self._broadcast(Message.NOTE)

    def interrupt(self, item: Item | None, is_noted: bool) -> None:
        self._broadcast(Message.INTERRUPT, None if item is None else item.number, is_noted)

    def close(self) -> None:
        self._is_closing = True
        for member in self._members:
            member.close()

    def kill(self) -> None:
        end = clock.monotonic() + ENDING_SECONDS
        for member in self._members:
            member.kill(max(0.0, end - clock.monotonic()))

    def _broadcast(self, *message: Any) -> None:
        if self._members:
            data = packed(*message)
            for member in self._members:
                member.post(data)


class _Member:
    """A process with one worker, as the coordinator sees it."""

    def __init__(
        self,
        items: WeakValueDictionary[int, Item],
        control: Control,
        process: int,
        name: str,
        hello: bytes,
        generation: str,
    ) -> None:
        self.votes: SimpleQueue[Any] = SimpleQueue()
        """Why the member cannot build an item, or None if it can; Closing at the end."""
        self._items = items
        self._control = control
        self._index = process
        self._generation = generation
        self._is_closing = False
        self._last = control.first()
        """The last call of the list that was sent, or was over before."""
        self._awaited: deque[Call[Any]] = deque()
        """The calls that were sent and are not answered."""
        self._outbox: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        """Messages, and the number of the last call that was added before each; None at the end."""
        ours, theirs = Pipe()
        self._channel = Channel(ours, lambda item: None)
        paths = [path or os.getcwd() for path in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *paths],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            process_group=0,  # a terminal sends Ctrl-C to the first process alone
        )
        theirs.close()  # the process has the only copy: when it ends, the thread that receives notices
        self._channel.send(hello)
        for body in (self._send, self._receive):
            Thread(target=body, name=f"timely {name}: process {process}", daemon=True).start()

    def post(self, message: bytes) -> None:
        """Send a message after all calls that have been added, or only these calls if it is empty."""
        self._outbox.put((self._control.tail().number, message))

    def close(self) -> None:
        """Ask the process to end."""
        self._is_closing = True  # first: `_end` then takes the end of the process for what was asked
        self.votes.put(Closing)
        self.post(packed(Message.CLOSE))

    def kill(self, seconds: float) -> None:
        """Wait for the process to end, and kill it if it does not."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self) -> None:
        while (posted := self._outbox.get()) is not None:
            number, message = posted
            while self._last.number < number:
                assert self._last.next is not None  # `post` read the number from the list
                self._last = self._last.next
                data = self._last.packed  # read once: a call that ends meanwhile forgets it
                if data is not None and not self._last.is_over:
                    self._awaited.append(self._last)  # first: `_receive` takes it out when the answer comes
                    self._channel.send(data)
            if message:
                self._channel.send(message)

    def _receive(self) -> None:
        error: BaseException | None = None
        try:
            while (message := self._channel.receive()) is not None:
                kind, *content = message
                if kind == Message.RESULT:
                    self._finish(*content)
                elif kind == Message.VOTE:
                    self.votes.put(*content)
                elif kind == Message.FAILED:
                    self._fail(*content)
                elif kind == Message.LEFT:
                    self._leave(*content)
                elif kind == Message.ENDED:
                    (error,) = content
                del message, content  # a result may be large, and the next message far
        except Exception as failure:  # nobody else would notice that this thread ends
            error = failure
        self._end(error)

    def _finish(self, result: Any, error: BaseException | None, counts: list[MemberCounts]) -> None:
        for each in counts:
            item = self._items.get(each.number)
            if item is not None:
                item.elsewhere.add(self._index)
                item.adopt(self._index, each.total, each.nbytes, each.changed)
                self._control.noted.add(item)
        # Last, because the call then publishes what was adopted. A member that goes on answers calls in their order.
        self._awaited.popleft().finish(result, error)

    def _fail(self, number: int, error: BaseException) -> None:
        item = self._items.get(number)
        if item is not None:
            self._control.fail(item, error)

    def _leave(self, number: int) -> None:
        item = self._items.get(number)
        if item is not None:
            item.elsewhere.discard(self._index)
            item.adopt(self._index, 0, 0, [])

    def _end(self, error: BaseException | None) -> None:
        """Record that the process has ended, and why."""
        self.votes.put(Closing)  # the engine may wait for a vote of this process
        self._outbox.put(None)
        if not self._is_closing:
            try:
                status = self._process.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                status = None
            ending = _ending(status, error)
            self._control.lose(SessionError(f"process {self._index} of the session {ending}"))
            # Last, because it may end the engine, which then has the reason already.
            declare_fate(self._index, ending, self._generation)


def _ending(status: int | None, error: BaseException | None) -> str:
    if error is not None:
        return f"has ended: {error}"
    if status is None:
        return "no longer answers"
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"has ended with status {status}"
