"""Pacts: how the messages on a stream are spread over the workers before an operator receives them.

`Pipeline` leaves every message on the worker that sent it. `Exchange` sends each record to the worker its hash names,
so that equal keys meet; `Broadcast` sends every record to all workers, `Gather` to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from timely.arguments import check_functions, refusal
from timely.data.container import Array, Batch, Columns, as_columns, of_columns, take
from timely.data.user_functions import call
from timely.dataflow.operator_core import OperatorCore
from timely.dataflow.routing import Destinations, Hashes, destinations, hash_columns, hash_record
from timely.dataflow.tee import Push
from timely.errors import DataError
from timely.order import Time


class Pact(Protocol):
    """How a message is spread over `peers` workers.

    >>> from timely.data.container import records
    >>> class Last:
    ...     name = "at the last worker"
    ...     def split(self, batch, peers):
    ...         return iter([(peers - 1, batch)])
    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = new_input(scope)
    ...         stream.sink(Last(), lambda input: [print(worker, *records(batch)) for _, batch in input.drain()])
    ...     if worker.index == 0:
    ...         numbers.send(7)
    >>> _ = execute(program, Config(workers=3))
    worker 2 of 3 7
    """

    @property
    def name(self) -> str: ...

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]] | None:
        """Yield (worker, part of the batch); None means that the whole batch stays on this worker."""


@runtime_checkable
class Selective(Pact, Protocol):
    """A pact for some batches only, so that others from other workers are refused.

    >>> class OfColumns(Exchange):
    ...     def admits(self, batch, coordinates):
    ...         return isinstance(batch, Columns)
    >>> isinstance(OfColumns(), Selective), isinstance(Exchange(), Selective)
    (True, False)
    """

    def admits(self, batch: Batch, coordinates: int) -> bool:
        """Return whether this is a batch to spread where times have this many coordinates."""


class Pipeline:
    """Messages stay where they are.

    >>> Pipeline().split(Columns((np.arange(4),)), 2) is None
    True
    """

    name = "pipeline"

    def __repr__(self) -> str:
        return "Pipeline()"

    def split(self, batch: Batch, peers: int) -> None:
        """Return None: the whole batch stays on this worker."""


def whole_record(*columns: Any) -> Any:
    """Return a record, or its columns, as they are: the route that an `Exchange` has by default.

    >>> whole_record("a"), whole_record("a", 1)
    ('a', ('a', 1))
    """
    return columns[0] if len(columns) == 1 else columns


class Exchange:
    """Each record goes to the worker that a hash of its route names.

    `route` receives a batch's columns and returns the column (or tuple of columns) to hash; for list batches it
    receives one record and returns one value. Without it the whole record is hashed.

    >>> parts = Exchange(lambda key, value: key).split(Columns((np.array([3, 4, 3]), np.array([1, 2, 3]))), 2)
    >>> [list(part.rows()) for worker, part in parts]
    [[(4, 2)], [(3, 1), (3, 3)]]
    """

    name = "exchange"

    def __init__(self, route: Callable[..., Any] = whole_record) -> None:
        check_functions(self.name, route=route)
        self._route = route

    def __repr__(self) -> str:
        return "Exchange()" if self._route is whole_record else f"Exchange({self._route!r})"

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]] | None:
        """Return (worker, its records) for each worker that records go to, or None where there is one worker."""
        if peers == 1:
            return None
        return scatter(batch, destinations(self._hashes(batch), peers))

    def check(self, batch: Batch) -> None:
        """Raise the error of `split` for a batch with routes that have no hash; of a list, the first route counts.

        >>> Exchange(lambda record: None).check(["a", "b"])
        Traceback (most recent call last):
        ...
        timely.errors.DataError: cannot make a column of None (NoneType): ...
        """
        if isinstance(batch, Columns):
            self._columns(batch)
        else:
            self._hashes(batch[:1] if isinstance(batch, list) else batch)

    def _columns(self, batch: Columns) -> tuple[Array, ...]:
        """Return the columns to hash."""
        route = self._route
        return batch.columns if route is whole_record else _routed(call(route, batch.columns), batch)

    def _hashes(self, batch: Batch) -> Hashes:
        route = self._route
        if isinstance(batch, Columns):
            return hash_columns(self._columns(batch))
        if isinstance(batch, list):
            return np.array([hash_record(route(record)) for record in batch], np.uint64)
        raise DataError(f"cannot exchange a batch of kind {batch.kind!r} record by record")


class ExchangeByKey(Exchange):
    """Each record goes to the worker that its first `keys` columns hash to; only batches of columns are taken.

    >>> pairs = Columns((np.array([7, 2, 7]), np.array([1, 2, 3])))
    >>> [list(part.rows()) for _, part in ExchangeByKey(1).split(pairs, 2)]
    [[(2, 2)], [(7, 1), (7, 3)]]
    >>> ExchangeByKey(1).check([(0, 1.0)])
    Traceback (most recent call last):
    ...
    timely.errors.DataError: this operator takes batches of columns, not of kind 'list'; Columns((array, ...)) makes one
    """

    def __init__(self, keys: int) -> None:
        super().__init__(lambda *columns: columns[:keys])

    def _hashes(self, batch: Batch) -> Hashes:
        of_columns(batch)  # refuses others
        return super()._hashes(batch)


def checked_once(push: Push, pact: Pact, operator: OperatorCore) -> Push:
    """Return what passes on messages that stay on the one worker, and checks the first as several workers would.

    So a program does not fail only once it has more workers; the other messages cost no routes.

    >>> def push(time, batch):
    ...     print(time, batch)
    >>> def route(record):
    ...     print("route of", record)
    ...     return record
    >>> with_check = checked_once(push, Exchange(route), operator=None)
    >>> for time in (0,), (1,):
    ...     with_check(time, ["a"])
    route of a
    (0,) ['a']
    (1,) ['a']
    """
    if not isinstance(pact, Exchange):
        return push
    exchange, is_checked = pact, False

    def push_checked(time: Time, batch: Batch) -> None:
        nonlocal is_checked
        if not is_checked and len(batch):
            is_checked = True
            try:
                exchange.check(batch)
            except Exception as error:
                raise operator.failure(error, time) from error
        push(time, batch)

    return push_checked


class Broadcast:
    """Every worker receives every record.

    >>> [(worker, list(part.rows())) for worker, part in Broadcast().split(Columns((np.arange(2),)), 3)]
    [(0, [0, 1]), (1, [0, 1]), (2, [0, 1])]
    """

    name = "broadcast"

    def __repr__(self) -> str:
        return "Broadcast()"

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]] | None:
        """Return the batch for every worker, or None where there is one worker."""
        return None if peers == 1 else ((peer, batch) for peer in range(peers))


class Gather:
    """One worker receives everything: the one of that number, modulo how many there are.

    Raises BuildError where `worker` is not an integer of at least 0.

    >>> [(worker, list(part.rows())) for worker, part in Gather(1).split(Columns((np.arange(2),)), 3)]
    [(1, [0, 1])]
    """

    def __init__(self, worker: int = 0) -> None:
        if not isinstance(worker, (int, np.integer)) or worker < 0:
            at = f"a worker, given by its number, such as 0, not at {worker!r:.80}"
            raise refusal("Gather", f"all is gathered at {at}")
        self.name = f"gather at {worker}"
        self._worker = int(worker)

    def __repr__(self) -> str:
        return f"Gather({self._worker})"

    def split(self, batch: Batch, peers: int) -> Iterator[tuple[int, Batch]] | None:
        """Return the batch for the one worker, or None where there is no other."""
        return None if peers == 1 else iter([(self._worker % peers, batch)])


def as_worker(number: Any, peers: int, pact: str) -> int:
    """Return the number of a worker that a pact names; raise DataError where none of `peers` workers has it.

    >>> as_worker(np.int64(1), 2, "to one")
    1
    >>> as_worker(2, 2, "to one")
    Traceback (most recent call last):
    ...
    timely.errors.DataError: the pact 'to one' names worker 2, and the workers are 0 to 1
    """
    if not isinstance(number, (int, np.integer)) or not 0 <= number < peers:
        raise DataError(f"the pact {pact!r} names worker {number!r:.80}, and the workers are 0 to {peers - 1}")
    return int(number)


def _routed(values: Any, batch: Columns) -> tuple[Array, ...]:
    """Return the columns that a route chose or made; those of the batch as they are, whatever their type."""
    chosen = values if isinstance(values, tuple) else (values,)
    if chosen and all(any(column is own for own in batch.columns) for column in chosen):
        return chosen
    return as_columns(values, len(batch))


MANY_ROWS, FEW_WORKERS = 4096, 4
"""At least this many rows, for at most this many workers, are looked through once for each worker: that costs less than
sorting them."""


def scatter(batch: Batch, workers: Destinations) -> Iterator[tuple[int, Batch]]:
    """Yield (worker, its rows in their order) for every worker that a row of the batch goes to.

    >>> list(scatter(["a", "b", "c"], np.array([1, 0, 1], np.uint16)))
    [(0, ['b']), (1, ['a', 'c'])]
    """
    if len(workers) > MANY_ROWS and (highest := int(workers.max())) < FEW_WORKERS:
        yield from _pick(batch, workers, highest + 1)
        return
    counts = np.bincount(workers).tolist()
    # The counts end with that of the highest worker. If only one is not 0, it is the last.
    if counts.count(0) == len(counts) - 1:
        yield len(counts) - 1, batch
        return
    order = np.argsort(workers, kind="stable")
    start = 0
    for worker, count in enumerate(counts):
        if count:
            yield worker, take(batch, order[start : start + count])
            start += count


def _pick(batch: Batch, workers: Destinations, count: int) -> Iterator[tuple[int, Batch]]:
    """Yield what `scatter` does, looking through the rows once for each of the first `count` workers."""
    for worker in range(count):
        rows = np.flatnonzero(workers == worker)
        if len(rows) == len(workers):
            yield worker, batch
        elif len(rows):
            yield worker, take(batch, rows)
