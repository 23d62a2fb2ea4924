"""What each operator costs: activations, time, records and bytes in and out, and what it keeps.

An account listens to a worker's log and adds up. `table` shows accounts, those of several workers together; `timely run
--profile` prints it at the end of a run, for each process. An operator's time is the time inside its activations. That
includes the stateless operators that run in line with it; each of those also has an account of its own, with the time
inside its function and the records in and out. Listening itself takes about a microsecond a record, part of which is in
those times. What an operator emits counts once, however many receive it.

The costs of dataflows that have ended remain. Dataflows that the same lines of the program built under the same name
share one row for each operator, so an account grows with the length of the program, not with the number of dataflows.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from timely.observe.events import (
    BatchEmitted,
    ChannelBuilt,
    DataflowCompleted,
    InlineBuilt,
    InlineRan,
    MessageReceived,
    OperatorBuilt,
    ScheduleStopped,
    StateResized,
    Unparked,
)
from timely.observe.log import Log

SHOWN = 40
"""How many operators a table shows: those that took the most time."""

_KINDS = (
    OperatorBuilt,
    InlineBuilt,
    ChannelBuilt,
    ScheduleStopped,
    InlineRan,
    BatchEmitted,
    MessageReceived,
    StateResized,
    Unparked,
    DataflowCompleted,
)
Place = tuple[str, str, int, str]
"""What dataflows built alike have in common: an operator's path, name, number and origin."""


class Logged(Protocol):
    """What has a log: a worker.

    >>> def program(worker):
    ...     logged: Logged = worker
    ...     return logged.log is worker.log
    >>> execute_directly(program)
    True
    """

    log: Log


@dataclass
class OperatorAccount:
    """What one operator of one dataflow has cost, or of several `dataflows` built alike, `dataflow` the first of them.

    `rows_kept` and `bytes_kept` are the most it kept at any time, of several dataflows in that which kept most. The
    number `operator` is below 0 for one that runs in line, whose bytes are not counted.
    """

    dataflow: int
    operator: int
    name: str
    path: str
    origin: str
    activations: int = 0
    nanoseconds: int = 0
    messages_in: int = 0
    records_in: int = 0
    bytes_in: int = 0
    messages_out: int = 0
    records_out: int = 0
    bytes_out: int = 0
    rows_kept: int = 0
    bytes_kept: int = 0
    dataflows: int = 1

    @property
    def place(self) -> Place:
        """What it has in common with the same operator of dataflows built alike."""
        return self.path, self.name, self.operator, self.origin

    @property
    def is_in_line(self) -> bool:
        """Whether its time is also part of that of the operator it runs in line with."""
        return self.operator < 0

    def add(self, other: OperatorAccount) -> None:
        """Add what the same operator has cost on another worker.

        >>> account = OperatorAccount(0, 1, "map", "words", "words.py:7", records_in=5)
        >>> account.add(OperatorAccount(0, 1, "map", "words", "words.py:7", records_in=2))
        >>> account.records_in
        7
        """
        for name in (*_ADDED, *_KEPT):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.dataflows = max(self.dataflows, other.dataflows)

    def add_dataflow(self, other: OperatorAccount) -> None:
        """Add what the same operator has cost in other dataflows of the same worker, built alike.

        >>> account = OperatorAccount(0, 1, "count", "words", "words.py:7", records_in=5, rows_kept=5)
        >>> account.add_dataflow(OperatorAccount(3, 1, "count", "words", "words.py:7", records_in=2, rows_kept=2))
        >>> account.records_in, account.rows_kept, account.dataflows
        (7, 5, 2)
        """
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _KEPT:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.dataflow = min(self.dataflow, other.dataflow)
        self.dataflows += other.dataflows


_KEPT = ("rows_kept", "bytes_kept")
_ADDED = tuple(each.name for each in fields(OperatorAccount) if each.default == 0 and each.name not in _KEPT)


@dataclass
class _Running:
    """What is known of a dataflow that runs: its operators, its channels, and the rows and bytes kept by operator."""

    operators: dict[int, OperatorAccount] = field(default_factory=dict)
    channels: dict[int, ChannelBuilt] = field(default_factory=dict)
    kept: dict[int, list[int]] = field(default_factory=dict)


_UNKNOWN = _Running()
"""In place of a dataflow that has ended, or that was never logged; nothing is added to it."""


class Account:
    """Adds up what happens on a worker, from now on.

    >>> def program(worker):
    ...     account = Account(worker)
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream(range(5)).exchange().probe()
    ...     while worker.step():
    ...         pass
    ...     account.close()
    ...     return [(each.name, each.records_in, each.records_out) for each in account.operators()]
    >>> execute_directly(program)
    [('exchange', 5, 5), ('to_stream', 0, 5)]
    """

    def __init__(self, worker: Logged) -> None:
        self.waited = 0
        """Nanoseconds for which the worker had nothing to do."""
        self._running: dict[int, _Running] = {}
        self._ended: dict[Place, OperatorAccount] = {}
        self._begun = clock.perf_counter_ns()
        self._log = worker.log
        self._stop = worker.log.listen(self._take, *_KINDS)

    @property
    def elapsed(self) -> int:
        """Nanoseconds since the account was opened."""
        return clock.perf_counter_ns() - self._begun

    def operators(self) -> list[OperatorAccount]:
        """Return what each operator has cost so far, sorted by dataflow and name.

        The operators of dataflows that have ended share an account with those of dataflows that were built alike.
        """
        self._log.flush()
        accounts = list(self._ended.values())
        accounts += [account for dataflow in self._running.values() for account in dataflow.operators.values()]
        return sorted(accounts, key=lambda account: (account.dataflow, account.name, account.operator))

    def close(self) -> None:
        """Listen no longer."""
        self._stop()

    def _take(self, events: Sequence[Any]) -> None:
        for event in events:
            kind = type(event)
            if kind is BatchEmitted:
                account = self._account(event.dataflow, event.operator)
                account.messages_out += 1
                account.records_out += event.records
                account.bytes_out += event.bytes
            elif kind is ScheduleStopped:
                account = self._account(event.dataflow, event.operator)
                account.activations += 1
                account.nanoseconds += event.nanoseconds
            elif kind is MessageReceived:
                channel = self._running.get(event.dataflow, _UNKNOWN).channels.get(event.channel)
                account = self._account(event.dataflow, None if channel is None else channel.operator)
                account.messages_in += 1
                account.records_in += event.records
                account.bytes_in += event.bytes
            elif kind is InlineRan:
                # Functions in line have numbers of their own, whose complements are below those of operators.
                account = self._account(event.dataflow, ~event.inline)
                account.activations += 1
                account.nanoseconds += event.nanoseconds
                account.messages_in += 1
                account.records_in += event.records_in
                account.records_out += event.records_out
            elif kind is StateResized:
                self._keep(event)
            elif kind is OperatorBuilt:
                # After the time and the worker, the fields of the record are those of the account, in their order.
                self._begin(event.dataflow).operators[event.operator] = OperatorAccount(*event[2:])
            elif kind is InlineBuilt:
                account = OperatorAccount(event.dataflow, ~event.inline, event.name, event.path, event.origin)
                self._begin(event.dataflow).operators[~event.inline] = account
            elif kind is ChannelBuilt:
                self._begin(event.dataflow).channels[event.channel] = event
            elif kind is DataflowCompleted:
                self._end(event.dataflow)
            else:
                # Only `Unparked` is left of the kinds that are listened to.
                self.waited += event.nanoseconds

    def _begin(self, dataflow: int) -> _Running:
        return self._running.setdefault(dataflow, _Running())

    def _account(self, dataflow: int, operator: int | None) -> OperatorAccount:
        """Return the account of an operator, or a new one that nobody reads if the operator is unknown."""
        known = None if operator is None else self._running.get(dataflow, _UNKNOWN).operators.get(operator)
        return OperatorAccount(dataflow, -1, "", "", "") if known is None else known

    def _end(self, dataflow: int) -> None:
        """Add the costs of a dataflow that has ended to those of the ended dataflows that were built alike."""
        for account in self._running.pop(dataflow, _UNKNOWN).operators.values():
            # Nothing changes this account any more, so it may become the sum for those built alike.
            known = self._ended.setdefault(account.place, account)
            if known is not account:
                known.add_dataflow(account)

    def _keep(self, event: StateResized) -> None:
        dataflow = self._running.get(event.dataflow, _UNKNOWN)
        account = dataflow.operators.get(event.operator)
        if account is not None:
            kept = dataflow.kept.setdefault(event.operator, [0, 0])
            kept[0] += event.rows
            kept[1] += event.bytes
            account.rows_kept = max(account.rows_kept, kept[0])
            account.bytes_kept = max(account.bytes_kept, kept[1])


def table(accounts: Iterable[Account]) -> str:
    """Return a table of what the operators of all accounts cost together, for people, a row for those built alike.

    >>> def program(worker):
    ...     account = Account(worker)
    ...     with worker.dataflow("words") as scope:
    ...         scope.to_stream(range(5)).exchange().probe()
    ...     while worker.step():
    ...         pass
    ...     return table([account])
    >>> print(execute_directly(program))
    1 worker, ... s: ... s in operators, ... s waiting
    operator runs  busy s  records in  bytes in  records out  bytes out  rows kept  bytes kept
    words/... (0...) ...
    words/... (0...) ...
    """
    opened = list(accounts)
    total: dict[Place, OperatorAccount] = {}
    for account in opened:
        for place, each in _by_place(account.operators()).items():
            known = total.setdefault(place, each)
            if known is not each:
                known.add(each)
    ordered = sorted(total.values(), key=lambda account: -account.nanoseconds)
    rows = [_HEADINGS, *(_row(account) for account in ordered[:SHOWN])]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join([name.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]) for name, *rest in rows]
    if len(ordered) > SHOWN:
        lines.append(f"and {len(ordered) - SHOWN} more operators")
    busy = sum(account.nanoseconds for account in ordered if not account.is_in_line)
    elapsed, waited = max(account.elapsed for account in opened), sum(account.waited for account in opened)
    workers = f"{len(opened)} worker{'' if len(opened) == 1 else 's'}"
    heading = f"{workers}, {_seconds(elapsed)} s: {_seconds(busy)} s in operators, {_seconds(waited)} s waiting"
    return "\n".join([heading, *lines])


def _by_place(accounts: Iterable[OperatorAccount]) -> dict[Place, OperatorAccount]:
    """Return copies of a worker's accounts, one for each operator of dataflows built alike."""
    found: dict[Place, OperatorAccount] = {}
    for account in accounts:
        known = found.get(account.place)
        if known is None:
            # A copy, to which the costs of other dataflows and workers are added.
            found[account.place] = replace(account)
        else:
            known.add_dataflow(account)
    return found


_NUMBERS = ("records_in", "bytes_in", "records_out", "bytes_out", *_KEPT)
_HEADINGS = ("operator", "runs", "busy s", *(name.replace("_", " ") for name in _NUMBERS))


def _row(account: OperatorAccount) -> tuple[str, ...]:
    several = account.dataflows > 1
    number = str(account.operator) if several else f"{account.dataflow}.{account.operator}"
    if account.is_in_line:
        number = f"in line, {Path(account.origin).name}"
    name = f"{account.path}/{account.name} ({f'{account.dataflows} dataflows, ' if several else ''}{number})"
    numbers = (f"{getattr(account, each):,}" for each in _NUMBERS)
    return (name, f"{account.activations:,}", _seconds(account.nanoseconds), *numbers)


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e9:.3f}"
