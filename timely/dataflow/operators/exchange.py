"""Move records between workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.dataflow.operators.generic import unary
from timely.dataflow.pact import Exchange, Pact, whole_record
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S


def exchange(stream: S, route: Callable[..., Any] = whole_record, *, name: str = "exchange") -> S:
    """Return the same records, each on the worker that a hash of its route names (see `Exchange`).

    >>> sorted(example(lambda scope: scope.to_stream(range(4)).exchange(lambda x: x // 2)))
    [0, 1, 2, 3]
    """
    return move(stream, Exchange(route), name)


def move(stream: S, pact: Pact, name: str) -> S:
    """Return the same records after a pact."""

    def logic(input: InputPort, output: OutputPort) -> None:
        for capability, batch in input.received():
            output.give_owned(capability, batch)

    return unary(stream, pact, logic, name=name)
