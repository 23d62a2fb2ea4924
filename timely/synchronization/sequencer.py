"""A sequencer: commands from any worker, received by all workers in the same order.

Workers must build the same dataflows in the same order. If a user at one of them decides at run time what to build,
they must first agree on this order. A sequencer is a dataflow in which every command goes to worker 0, and from there
to all. Messages between two workers keep their order, so all workers receive the commands in the order of worker 0.

Invariant: of the commands received by any two workers, one sequence is always a prefix of the other; and commands of
one worker stay in order. A command is sent twice and costs no exchange of progress: no time passes until the sequencer
is closed. There is no agreement on *when*: workers receive a command at different moments.

Commands are plain data: None, booleans, numbers, text, bytes, and lists, tuples and dicts of these. Every worker,
including the sender, receives its own copy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timely.communication.plain import PlainPacker, unpack_plain
from timely.dataflow.operators.input import new_input
from timely.dataflow.pact import Gather
from timely.dataflow.ports import InputPort, OutputPort

if TYPE_CHECKING:
    from timely.worker.worker import Worker


class Sequencer:
    """Delivers the commands of all workers to all workers, in one order. All workers must create it, like a dataflow.

    Push commands on any worker, step, and iterate over those that have arrived. Here worker 1 makes every worker
    install a dataflow and drop it again:

    >>> def program(worker):
    ...     commands, probes, received = Sequencer(worker), {}, []
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
    ...             received.append(command)
    ...     return received
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
        """Send a command to all workers; raise `DataError` unless it is plain data."""
        # Packed here, not when it is sent on: so what is not plain data raises at the line that pushes it.
        self._input.send_batch([self._packer.pack(command)])

    def __iter__(self) -> Iterator[Any]:
        """Yield the commands that have arrived and were not yielded before, in order."""
        while self._arrived:
            yield unpack_plain(self._arrived.popleft())

    @property
    def has_arrived(self) -> bool:
        """Whether there are commands to iterate over."""
        return bool(self._arrived)

    def close(self) -> None:
        """Send no more commands. When all workers have closed and have received every command, it is done."""
        self._input.close()

    def done(self) -> bool:
        """Return whether all workers have closed and every command has been yielded on this one."""
        return not self._arrived and self._probe.done()

    def __repr__(self) -> str:
        state = "closed" if self._input.is_closed else "open"
        return f"Sequencer({state}, commands to yield: {len(self._arrived)})"


def _forward(input: InputPort, output: OutputPort) -> None:
    for right, batch in input:
        output.give_owned(right, batch)
