"""How fast do all workers send records to all?

    timely run -n 2 examples/alltoall.py --records 1000000 --epochs 50
    timely run -w 2 examples/alltoall.py --plot exchange.svg

In each epoch every worker sends as many records to each worker. A record is three integers of 64 bits: its sender, its
receiver and a number. How records are spread over workers is a pact; `ToReceiver` here is one of our own, in a few
lines. An epoch ends once all workers have received all of its records, so its latency is that of a shuffle. Records for
other threads are passed by reference, and records for other processes cross a socket as columns.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from pace import Pace
from splitmix import splitmix

from differential.jobs import at_least, counted
from differential.jobs.command_line import add_output, options_from, parser_of
from differential.jobs.outputs import Result, reporting
from differential.jobs.picture import latency_panels
from differential.jobs.status import CheckError, status_of
from timely import Columns, Gather, InputPort, OutputPort, Worker, execute, new_input
from timely.data.container import Batch, records

EPILOG = """\
The answer has a record (sender, receiver, records, sum) for each pair of workers; the sum is that of the numbers,
modulo 2 ** 63.

examples:
  {program} --records 1000000
  timely run -n 2 {script} --check --csv traffic.csv         (two processes)
  timely run -n 2 -w 2 {script} --records 10 --epochs 10000  (small messages)
"""

WITHOUT_CHANGES = "its answer is what arrived by the end, and does not change; --csv FILE writes it"

RECORD = 24
"""The bytes of a record."""

MODULUS = 1 << 63

Traffic = Counter[tuple[int, int, str]]
"""By sender, receiver and what: "records", and the "sum" of their numbers modulo `MODULUS`."""


class ToReceiver:
    """A pact: each record goes to the worker that its second column names."""

    name = "to the receiver"

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]]:
        """Yield (worker, its records) for each worker that records go to."""
        assert isinstance(batch, Columns)
        for worker in np.unique(batch.columns[1]).tolist():
            yield worker, batch.compress(batch.columns[1] == worker)


def numbers(sender: int, epoch: int, size: int, peers: int) -> Any:
    """Return the numbers that a worker sends in an epoch: `size` for each of `peers` workers, in their order."""
    count = size * peers
    return (splitmix(np.arange(count) + (sender + epoch * peers) * count) >> np.uint64(1)).view(np.int64)


class Exchange:
    """The part of one worker: what it sends, and what has arrived."""

    def __init__(self, worker: Worker, size: int) -> None:
        self.pace = Pace()
        self.received: Traffic = Counter()
        """What this worker has received; at the end, on worker 0, what all have."""
        self._worker = worker
        self._size = size
        with worker.dataflow("all to all") as scope:
            self._session, stream = new_input(scope, name="records")
            self._probe = stream.unary(ToReceiver(), self._receive, name="receive").probe()

    def send(self) -> None:
        """Send the records of an epoch, and wait until all workers have received all of them."""
        worker, epoch = self._worker, self._session.epoch
        receiver = np.repeat(np.arange(worker.peers), self._size)
        columns = (
            np.full(len(receiver), worker.index),
            receiver,
            numbers(worker.index, epoch, self._size, worker.peers),
        )
        with self.pace.epoch(self._size * worker.peers**2):
            self._session.send_batch(Columns(columns))
            self._session.advance_to(epoch + 1)
            worker.step_while(lambda: self._probe.less_than(self._session.time))

    def gather(self) -> None:
        """Close the input, and bring what all workers have received to worker 0, in a dataflow of its own."""
        self._session.close()
        with self._worker.dataflow("totals") as scope:
            session, rows = new_input(scope, name="totals")
            rows.sink(Gather(0), self._keep)
        received, self.received = self.received, Counter()
        for sender in range(self._worker.peers):
            pair = sender, self._worker.index
            session.send(*pair, received[*pair, "records"], received[*pair, "sum"])
        session.close()
        while self._worker.step_or_park():
            pass

    def _receive(self, input: InputPort, output: OutputPort) -> None:
        here = self._worker.index
        for _, batch in input:
            sender, receiver, number = cast(Columns, batch).columns
            for each in np.unique(sender).tolist():
                rows = (sender == each) & (receiver == here)
                self.received[each, here, "records"] += int(rows.sum())
                self.received[each, here, "sum"] = (self.received[each, here, "sum"] + total(number[rows])) % MODULUS

    def _keep(self, input: InputPort) -> None:
        for _, batch in input:
            for sender, receiver, count, number in records(batch):
                self.received[sender, receiver, "records"] = count
                self.received[sender, receiver, "sum"] = number


def total(column: Any) -> int:
    """Return the sum of non-negative integers modulo `MODULUS`, without overflow."""
    low, high = int((column & 0xFFFFFFFF).sum()), int((column >> 32).sum())
    return (low + (high << 32)) % MODULUS


def program(
    worker: Worker, size: int, epochs: int, shown: Callable[[int, int], None] = lambda epoch, sent: None
) -> Exchange:
    """Return the exchange at its end; `shown` is called with the epochs and records so far."""
    exchange = Exchange(worker, size)
    for epoch in range(epochs):
        exchange.send()
        shown(epoch + 1, exchange.pace.items)
    exchange.gather()
    return exchange


def check(found: Traffic, size: int, epochs: int, peers: int) -> None:
    """Raise CheckError if a worker has received other records than were sent to it."""
    for sender in range(peers):
        sums = [0] * peers
        for epoch in range(epochs):
            sent = numbers(sender, epoch, size, peers).reshape(peers, size).tolist()
            sums = [(before + sum(part)) % MODULUS for before, part in zip(sums, sent)]
        for receiver in range(peers):
            expected = epochs * size, sums[receiver]
            arrived = found[sender, receiver, "records"], found[sender, receiver, "sum"]
            if arrived != expected:
                raise CheckError(
                    f"worker {receiver} received (records, sum) {arrived} from worker {sender}, which sent {expected}"
                )


def run(worker: Worker, options: argparse.Namespace) -> None:
    """Exchange records on one worker; worker 0 prints and writes the answer."""
    is_first = worker.index == 0
    with reporting("alltoall", worker, options) as (outputs, display):
        display.begin("exchanging", options.epochs)

        def shown(epoch: int, sent: int) -> None:
            display.advance(epoch, sent, "records")

        exchange = program(worker, options.records, options.epochs, shown)
        if is_first:
            if options.check:
                check(exchange.received, options.records, options.epochs, worker.peers)
            outputs.finish(result(exchange, worker.peers))


def result(exchange: Exchange, workers: int) -> Result:
    """Return what is printed, written and drawn."""
    pace, received = exchange.pace, exchange.received
    pairs = [(sender, receiver) for sender in range(workers) for receiver in range(workers)]
    rows = [(*pair, received[*pair, "records"], received[*pair, "sum"]) for pair in pairs]
    lines = [
        f"{counted(workers, 'worker')}, {RECORD * pace.rate / 1e6:,.1f} MB a second in total",
        pace.summary("records"),
    ]
    figures = {"workers": workers, "records": pace.items, "bytes_a_second": round(RECORD * pace.rate), **pace.figures()}
    title = f"Records from all to all of {counted(workers, 'worker')}: {counted(pace.items, 'record')}"
    panels = latency_panels(pace.milliseconds(), "epoch")
    return Result(lines, figures, ("sender", "receiver", "records", "sum"), rows, title, panels)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = parser_of(str(__doc__), EPILOG)
    add = parser.add_argument
    records = "records that each worker sends to each in an epoch (default 100,000)"
    add("--records", type=at_least(1), default=100_000, metavar="N", help=records)
    add("--epochs", type=at_least(1), default=100, metavar="N", help="number of epochs (default 100)")
    check = "compare what each worker received with what each sent, added up in plain Python"
    add("--check", action="store_true", help=check)
    plot = "draw the latencies of epochs (.svg, .png, .pdf)"
    add_output(parser, without={"--changes": WITHOUT_CHANGES}, csv="write what each worker received to FILE", plot=plot)
    return options_from(parser, arguments)


def main() -> int:
    """Run the program with the options of the command line; return the exit status."""
    options = options_of()
    return status_of("alltoall", lambda: execute(lambda worker: run(worker, options)))


if __name__ == "__main__":
    sys.exit(main())
