"""A sequencer: commands that any worker gives, seen by all workers in one order.

Workers must build the same dataflows in the same order. Where what to build is decided while they run, by a user at one
of them, they have to agree on that order first. A sequencer is a dataflow in which every command goes to worker 0 and
from there to all: messages between two workers keep their order, so all see the order in which worker 0 saw them.

Invariant: what one worker has seen is a prefix of what any other has seen or will see, and of the commands that one
worker gave, none overtakes an earlier one. A command travels twice and costs no exchange of progress: nothing moves on
in time until the sequencer is closed. There is no agreement on *when*: workers see a command at different moments.

Commands are plain data: None, booleans, numbers, text, bytes, and lists, tuples and dicts of them. Every worker, the
one that gave it too, receives a copy of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timely.communication.codec import PlainPacker, unpack_plain
from timely.dataflow.operator import InputPort, OutputPort
from timely.dataflow.operators.input import new_input
from timely.dataflow.pact import Gather

if TYPE_CHECKING:
    from timely.worker.worker import Worker


class Sequencer:
    """Gives all workers the commands of all workers, in one order. All workers must make it, like a dataflow.

    Push commands on any worker; step; iterate for those that have come. Here worker 1 has every worker install a
    dataflow and drop it again:

    >>> def program(worker):
    ...     commands, probes, said = Sequencer(worker), {}, []
    ...     if worker.index == 1:
    ...         commands.push(("install", "evens", 10))
    ...         commands.push(("drop", "evens"))
    ...         commands.push("end")
    ...     while worker.step_or_park():
    ...         for command in commands:
    ...             match command:
    ...                 case "install", name, size:
    ...                     with worker.dataflow(name) as scope:
    ...                         evens = scope.to_stream(range(size)).filter(lambda x: x % 2 == 0).exchange()
    ...                         probes[name] = evens.probe()
    ...                     worker.step_while(lambda: not probes[name].done())
    ...                 case "drop", name:
    ...                     del probes[name]
    ...                 case "end":
    ...                     commands.close()
    ...             said.append(command)
    ...     return said
    >>> first, second = execute(program, Config(workers=2))
    >>> first == second == [("install", "evens", 10), ("drop", "evens"), "end"]
    True
    """

    def __init__(self, worker: Worker) -> None:
        self._packer = PlainPacker()
        self._arrived: deque[bytes] = deque()
        with worker.dataflow("sequencer") as scope:
            self._input, given = new_input(scope, name="commands")
            ordered = given.unary(Gather(0), _forward, name="order").broadcast()
            self._probe = ordered.inspect(self._arrived.append).probe()

    def push(self, command: Any) -> None:
        """Give a command to all workers; raise `DataError` unless it is plain data."""
        self._input.send_batch([self._packer.pack(command)])

    def __iter__(self) -> Iterator[Any]:
        """Yield the commands that have come and were not yielded yet, in order."""
        while self._arrived:
            yield unpack_plain(self._arrived.popleft())

    @property
    def has_arrived(self) -> bool:
        """Whether there are commands to iterate over."""
        return bool(self._arrived)

    def close(self) -> None:
        """Give no more commands. Once all workers have said so, and have been given what came before, it is done."""
        self._input.close()

    def done(self) -> bool:
        """Return whether all workers have closed and every command has been yielded here."""
        return not self._arrived and self._probe.done()


def _forward(input: InputPort, output: OutputPort) -> None:
    for right, batch in input:
        output.give(right, batch)
