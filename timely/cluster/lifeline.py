"""Lifelines: the connections of a rendezvous, which stay open so that their end reports that of a process.

Between the rendezvous and the first dataflow a program may read files for minutes. A process that ends in that time has
not greeted any worker, so for the workers it would merely be late. But its connection to process 0 ends. Process 0
records this as its fate, for its own workers (`timely.communication.notes`), and passes it on to the other processes.
If process 0 itself ends, all find out by their own connections.

Nothing is ever sent to process 0, so one thread sleeps in each process and costs nothing.
"""

from __future__ import annotations

import json
import selectors
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread

from timely.cluster.lines import LineConnection
from timely.cluster.seal import KeyPairSeal
from timely.communication.notes import declare_fate
from timely.errors import TransportError

GONE = "has ended before it met the others"


Declare = Callable[[int, str], object]
"""What is called with a process that has ended, and with the text that reports it."""


def spread(
    guests: Mapping[int, LineConnection], seal: KeyPairSeal, generation: str, declare: Declare = declare_fate
) -> None:
    """Watch the connections to all other processes from now on, in a thread, and pass on which have ended."""
    arguments = dict(guests), seal, generation, declare
    Thread(target=_spread, args=arguments, name="timely lifelines", daemon=True).start()


def _spread(guests: dict[int, LineConnection], seal: KeyPairSeal, generation: str, declare: Declare) -> None:
    with selectors.DefaultSelector() as selector:
        for process, lines in guests.items():
            selector.register(lines.connection, selectors.EVENT_READ, process)
        while guests:
            for key, _ in selector.select():
                process = key.data
                with suppress(EOFError, TransportError):
                    guests[process].receive()
                    continue
                # Before it is closed, after which it has no descriptor by which to find it.
                selector.unregister(guests[process].connection)
                guests.pop(process).close()
                declare(process, GONE)
                news = seal.sealed(json.dumps({"generation": generation, "gone": process}).encode())
                for lines in guests.values():
                    # It has most likely ended, too, which its own connection reports next.
                    with suppress(OSError):
                        lines.send(news)


def follow(lines: LineConnection, seal: KeyPairSeal, generation: str, declare: Declare = declare_fate) -> None:
    """Take in, in a thread, what process 0 passes on from now on."""
    Thread(target=_follow, args=(lines, seal, generation, declare), name="timely lifeline", daemon=True).start()


def _follow(lines: LineConnection, seal: KeyPairSeal, generation: str, declare: Declare) -> None:
    with suppress(EOFError, TransportError, ValueError, KeyError):
        while True:
            for line in lines.receive():
                news = json.loads(seal.opened(line))
                if news["generation"] == generation:
                    declare(news["gone"], GONE)
    lines.close()
    declare(0, GONE)
