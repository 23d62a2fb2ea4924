"""Operators whose logic is the caller's: sources, sinks, and operators with one or two inputs.

`logic` is called whenever the operator is activated, with its ports. It should take all that is on its inputs. Where
a frontier matters, use the `_frontier` forms: their constructor receives a capability for the least time, from which
others can be made, and which has to be dropped or downgraded or nothing downstream will ever be final; the logic it
returns is activated when a frontier moves, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from timely.arguments import check_functions, check_logic
from timely.dataflow.activator import Activator
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.notificator import Notificator
from timely.dataflow.operator import Logic
from timely.dataflow.pact import Pact
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S, ScopeCore, check_streams
from timely.order import Moment

UnaryLogic = Callable[[InputPort, OutputPort], None]
BinaryLogic = Callable[[InputPort, InputPort, OutputPort], None]
UnaryNotifyLogic = Callable[[InputPort, OutputPort, Notificator], None]
BinaryNotifyLogic = Callable[[InputPort, InputPort, OutputPort, Notificator], None]


def source(
    scope: ScopeCore[S],
    constructor: Callable[[Capability, Activator], Callable[[OutputPort], None]],
    *,
    name: str = "source",
) -> S:
    """Return the stream of what an operator without inputs sends.

    `constructor(capability, activate)` returns the logic; the logic runs once, and again after each call of `activate`,
    which any thread may make (see `Activator`).

    >>> def countdown(capability, activate):
    ...     remaining = [3, 2, 1]
    ...     def logic(output):
    ...         output.give(capability, [remaining.pop(0)])
    ...         activate() if remaining else capability.drop()
    ...     return logic
    >>> example(lambda scope: source(scope, countdown))
    [3, 2, 1]
    """
    check_functions(name, constructor=constructor)
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output(initial=True)
    activate = Activator(builder.operator)
    builder.build(_constructed(lambda capability: constructor(capability, activate), output))
    return stream


def sink(stream: S, pact: Pact, logic: Callable[[InputPort], None], *, name: str = "sink") -> None:
    """Let `logic(input)` consume the stream; it is activated by messages and by changes of its frontier.

    >>> def collect(input):
    ...     for _, batch in input:
    ...         received.extend(batch)
    ...     if not input.frontier:
    ...         print("all there is:", sorted(received))
    >>> received = []
    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream([4, 3]).sink(Gather(), collect)
    >>> execute_directly(program)
    all there is: [3, 4]
    """
    check_logic(name, logic)
    builder = OperatorBuilder(stream.scope, name)
    input = builder.add_input(stream, pact, frontier=True)
    builder.build_from(lambda: logic(input))


def unary(stream: S, pact: Pact, logic: UnaryLogic, *, name: str = "unary") -> S:
    """Return the stream of what `logic(input, output)` sends.

    >>> def double(input, output):
    ...     for capability, batch in input:
    ...         output.give(capability, [2 * record for record in batch])
    >>> example(lambda scope: unary(scope.to_stream([1, 2]), Pipeline(), double))
    [2, 4]
    """
    check_logic(name, logic)
    builder, ports, result = _begun(name, [(stream, pact)])
    builder.build_from(partial(logic, *ports))
    return result


def unary_frontier(
    stream: S, pact: Pact, constructor: Callable[[Capability], UnaryLogic], *, name: str = "unary_frontier"
) -> S:
    """Return the stream of what the logic made by `constructor(capability)` sends; it may ask for `input.frontier`.

    >>> def count(capability):
    ...     counts = {}
    ...     def logic(input, output):
    ...         for right, batch in input:
    ...             if right.time not in counts:
    ...                 counts[right.time] = [right.retain(), 0]
    ...             counts[right.time][1] += len(batch)
    ...         for time in sorted(counts):
    ...             if not input.frontier.less_equal(time):
    ...                 held, number = counts.pop(time)
    ...                 with held:
    ...                     output.give(held, [number])
    ...     capability.drop()
    ...     return logic
    >>> example(lambda scope: unary_frontier(scope.to_stream(range(5)), Exchange(), count))
    [5]
    """
    check_functions(name, constructor=constructor)
    builder, ports, result = _begun(name, [(stream, pact)], frontier=True)
    builder.build(_constructed(constructor, *ports))
    return result


def binary(left: S, right: S, left_pact: Pact, right_pact: Pact, logic: BinaryLogic, *, name: str = "binary") -> S:
    """Return the stream of what `logic(left, right, output)` sends.

    >>> def marked(left, right, output):
    ...     for side, input in ("left", left), ("right", right):
    ...         for capability, batch in input:
    ...             output.give(capability, [(side, record) for record in batch])
    >>> example(lambda scope: scope.to_stream([1, 2]).binary(scope.to_stream([3]), Pipeline(), Pipeline(), marked))
    [('left', 1), ('left', 2), ('right', 3)]
    """
    check_logic(name, logic)
    check_streams(name, left=left, right=right)
    builder, ports, result = _begun(name, [(left, left_pact), (right, right_pact)])
    builder.build_from(partial(logic, *ports))
    return result


def binary_frontier(
    left: S,
    right: S,
    left_pact: Pact,
    right_pact: Pact,
    constructor: Callable[[Capability], BinaryLogic],
    *,
    name: str = "binary_frontier",
) -> S:
    """Return the stream of what the logic made by `constructor(capability)` sends; it may ask for both frontiers.

    >>> def sizes(capability):
    ...     counts = [0, 0]
    ...     def logic(left, right, output):
    ...         for side, input in enumerate((left, right)):
    ...             counts[side] += sum(len(batch) for _, batch in input)
    ...         if not left.frontier and not right.frontier:
    ...             with capability:
    ...                 output.give(capability, [tuple(counts)])
    ...     return logic
    >>> example(lambda scope: scope.to_stream([1, 2]).binary_frontier(scope.to_stream([3]), Gather(), Gather(), sizes))
    [(2, 1)]
    """
    check_functions(name, constructor=constructor)
    check_streams(name, left=left, right=right)
    builder, ports, result = _begun(name, [(left, left_pact), (right, right_pact)], frontier=True)
    builder.build(_constructed(constructor, *ports))
    return result


def unary_notify(
    stream: S, pact: Pact, logic: UnaryNotifyLogic, *, init: Iterable[Moment] = (), name: str = "unary_notify"
) -> S:
    """Return the stream of what `logic(input, output, notificator)` emits; it may request notifications.

    `init` are times to notify of though no message asks for it.

    >>> def count(input, output, notificator):
    ...     for capability, batch in input:
    ...         counts[capability.time] = counts.get(capability.time, 0) + len(batch)
    ...         notificator.notify_at(capability)
    ...     for time, capability in notificator:
    ...         output.give(capability, [counts.pop(time)])
    >>> counts = {}
    >>> example(lambda scope: unary_notify(scope.to_stream(range(5)), Exchange(), count))
    [5]
    """
    check_logic(name, logic)
    builder, ports, result = _begun(name, [(stream, pact)], frontier=True)
    builder.build(_notified(logic, ports, init))
    return result


def binary_notify(
    left: S,
    right: S,
    left_pact: Pact,
    right_pact: Pact,
    logic: BinaryNotifyLogic,
    *,
    init: Iterable[Moment] = (),
    name: str = "binary_notify",
) -> S:
    """Return the stream of what `logic(left, right, output, notificator)` emits; it may request notifications.

    >>> def meet(left, right, output, notificator):
    ...     for side, input in enumerate((left, right)):
    ...         for capability, batch in input:
    ...             seen.setdefault(capability.time, ([], []))[side].extend(batch)
    ...             notificator.notify_at(capability)
    ...     for time, capability in notificator:
    ...         output.give(capability, [tuple(map(sum, seen.pop(time)))])
    >>> seen = {}
    >>> example(lambda scope: scope.to_stream([1, 2]).binary_notify(
    ...     scope.to_stream([3]), Pipeline(), Pipeline(), meet))
    [(3, 3)]
    """
    check_logic(name, logic)
    check_streams(name, left=left, right=right)
    builder, ports, result = _begun(name, [(left, left_pact), (right, right_pact)], frontier=True)
    builder.build(_notified(logic, ports, init))
    return result


def _begun(name: str, fed: list[tuple[S, Pact]], *, frontier: bool = False) -> tuple[OperatorBuilder[S], list[Any], S]:
    """Return the builder of an operator, its ports (an input for each stream, then the output), and what it emits.

    With `frontier`, it may ask for the inputs' frontiers, and starts with a capability.
    """
    builder = OperatorBuilder(fed[0][0].scope, name)
    inputs = [builder.add_input(stream, pact, frontier=frontier) for stream, pact in fed]
    output, result = builder.add_output(initial=frontier)
    return builder, [*inputs, output], result


def _constructed(
    constructor: Callable[[Capability], Callable[..., None]], *ports: Any
) -> Callable[[list[Capability]], Logic]:
    """Return what builds a constructor's logic for its ports; `OperatorBuilder.build` refuses what cannot be called."""

    def build(capabilities: list[Capability]) -> Logic:
        logic = constructor(capabilities[0])
        return partial(logic, *ports) if callable(logic) else logic

    return build


def _notified(
    logic: Callable[..., None], ports: list[Any], init: Iterable[Moment]
) -> Callable[[list[Capability]], Logic]:
    """Return what builds logic that receives a notificator after its ports."""

    def build(capabilities: list[Capability]) -> Logic:
        notificator = Notificator(ports[:-1], ports[-1])
        with capabilities[0] as least:
            for time in init:
                notificator.notify_at(least.delayed(time))
        return partial(logic, *ports, notificator)

    return build
