"""Build an operator from its ports: the most general way, in which all others are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from timely.arguments import check_functions, check_logic
from timely.dataflow.capability import Capability
from timely.dataflow.operator import Logic, Operator
from timely.dataflow.pact import Pact
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.streams import S, ScopeCore, check_scope, check_streams
from timely.dataflow.tee import Push
from timely.errors import BuildError
from timely.origin import user_origin
from timely.progress.summary import PathSummary

Constructor = Callable[[list[Capability]], Logic]


class OperatorBuilder(Generic[S]):
    """Describes one operator: add inputs and outputs, connect them, then `build`, or `build_from`.

    >>> def evens_and_odds(stream):
    ...     builder = OperatorBuilder(stream.scope, "evens_and_odds")
    ...     numbers = builder.add_input(stream, Pipeline())
    ...     (even, evens), (odd, odds) = builder.add_output(), builder.add_output()
    ...     def logic():
    ...         for capability, batch in numbers:
    ...             is_even = batch.columns[0] % 2 == 0
    ...             even.give(capability, batch.compress(is_even))
    ...             odd.give(capability, batch.compress(~is_even))
    ...     builder.build_from(logic)
    ...     return evens, odds
    >>> example(lambda scope: evens_and_odds(scope.to_stream(range(6)))[1])
    [1, 3, 5]
    """

    def __init__(
        self, scope: ScopeCore[S], name: str, *, cancels: bool = False, static: bool = False, constant: bool = False
    ) -> None:
        """Begin an operator of a scope.

        With `cancels` it promises to emit what is left of all it received at a time: never both a change and its
        opposite. With `constant` it promises to emit what it has at the start, and nothing later. With `static` a
        worker may run it in a region (`timely.dataflow.region`). It then promises to run for no other reason than
        messages and frontiers, to receive all messages whenever it runs, and to emit and hold capabilities only because
        of these.
        """
        check_scope(name, scope)
        scope.dataflow.refuse_if_built()
        self.scope = scope
        self.operator = Operator(scope, name, user_origin(), cancels)
        self.operator.node.is_static = static
        self.operator.node.is_constant = constant
        scope.dataflow.add_operator(self.operator)
        self._mentioned: set[tuple[InputPort, OutputPort]] = set()
        self._is_built = False

    def __repr__(self) -> str:
        return f"<builder of {self.operator}>"

    def add_input(self, stream: S, pact: Pact, *, frontier: bool = False, drains: bool = False) -> InputPort:
        """Return a new input fed by `stream`.

        With `frontier`, the input knows its frontier, and the operator is activated when that changes. With `drains`,
        the operator promises to take all messages before it asks for the frontier, which makes that cheaper.

        Raises BuildError unless the stream is of the operator's own scope, and `pact` a pact.
        """
        self._refuse_if_built()
        check_streams(self.operator.name, stream=stream)
        if stream.scope.dataflow is not self.scope.dataflow:
            raise BuildError(
                f"{self.operator} is in {self.scope.dataflow} but its input is a stream of {stream.scope.dataflow}: "
                "what flows in one can be captured, and replayed in another"
            )
        if stream.scope is not self.scope:
            raise BuildError(
                f"{self.operator} is in {self.scope} but its input is a stream of {stream.scope}: "
                "use enter() or leave() to bring the stream there"
            )
        if isinstance(pact, type) or not (hasattr(pact, "split") and hasattr(pact, "name")):
            raise BuildError(f"{self.operator} needs a pact, such as Pipeline() or Exchange(), not {pact!r:.80}")
        port = InputPort(self.operator, len(self.operator.inputs), pact, frontier, drains)
        self.scope.dataflow.plan.add_edge(stream.location, port.place, PathSummary.identity(self.scope.width))
        stream.tee.consumers.append(port)
        self.operator.inputs.append(port)
        self.operator.has_inputs = True
        return port

    def add_output(self, *, initial: bool = False) -> tuple[OutputPort, S]:
        """Return a new output and its stream. With `initial`, it starts with a capability for the least time."""
        self._refuse_if_built()
        dataflow, operator = self.scope.dataflow, self.operator
        port = OutputPort(operator, len(operator.outputs), dataflow.add_tee(), initial)
        operator.outputs.append(port)
        operator.tees.append(port.tee)
        return port, self.scope.stream(port.place, port.tee)

    def connect(self, input: InputPort, output: OutputPort, summary: PathSummary | None) -> None:
        """State what a message at `input` can result in at `output`: `summary` of its time, or nothing (None).

        Pairs not mentioned can result in the same time. Here one output is for the epoch of a message, the other for
        the next epoch, and a second input decides nothing but when to send to the first:

        >>> def now_and_next(stream, ticks):
        ...     builder = OperatorBuilder(stream.scope, "now_and_next")
        ...     values = builder.add_input(stream, Pipeline())
        ...     tick = builder.add_input(ticks, Pipeline())
        ...     (now, at_once), (then, later) = builder.add_output(), builder.add_output()
        ...     builder.connect(values, then, PathSummary(1, (1,), ()))
        ...     builder.connect(tick, then, None)
        ...     def logic():
        ...         for right, batch in values:
        ...             then.give(right, batch)
        ...         for right, batch in tick:
        ...             now.give(right, batch)
        ...     builder.build_from(logic)
        ...     return at_once, later
        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         clock, ticks = new_input(scope)
        ...         at_once, later = now_and_next(stream, ticks)
        ...         probes = at_once.probe(), later.inspect_time(print).probe()
        ...     numbers.send(7)
        ...     numbers.advance_to(1)
        ...     worker.step()
        ...     return [probe.frontier for probe in probes]
        >>> execute_directly(program)
        (1,) 7
        [Antichain([(0,)]), Antichain([(2,)])]

        Raises BuildError where `summary` is not a summary, or would lead back in time, and unless `input` and `output`
        are of this operator and were not mentioned before.
        """
        self._refuse_if_built()
        if input not in self.operator.inputs or output not in self.operator.outputs:
            raise BuildError(
                f"{self.operator} connects an input of its own with an output of its own, not {input!s:.80} with "
                f"{output!s:.80}: use connect(input, output, summary)"
            )
        if (input, output) in self._mentioned:
            raise BuildError(f"{self.operator} has connected {input} with {output} before: do so once for each pair")
        if summary is not None and not _is_summary(summary):
            raise BuildError(
                f"{self.operator}: {summary!r:.80} is not a summary of a path: take "
                "PathSummary(keep, increments, suffix) of whole numbers, none of them negative"
            )
        self._mentioned.add((input, output))
        if summary is not None:
            output.connect(input, summary)

    def build(self, constructor: Constructor, *, inline: Push | None = None) -> None:
        """Finish the operator, when all its ports are added.

        `constructor` receives the initial capabilities (one for each output made with `initial`) when the dataflow is
        complete, and returns the logic to call at each activation. Raises BuildError if it is finished already or has
        no ports, and, when the dataflow is complete, if what the constructor returns cannot be called.

        >>> def once(scope, record):
        ...     builder = OperatorBuilder(scope, "once")
        ...     output, stream = builder.add_output(initial=True)
        ...     def constructor(capabilities):
        ...         def logic():
        ...             while capabilities:
        ...                 with capabilities.pop() as capability:
        ...                     output.give(capability, [record])
        ...         return logic
        ...     builder.build(constructor)
        ...     return stream
        >>> example(lambda scope: once(scope, 7))
        [7]
        """
        self._refuse_if_built()
        dataflow, operator = self.scope.dataflow, self.operator
        check_functions(operator.name, constructor=constructor)
        if not operator.inputs and not operator.outputs:
            raise BuildError(f"{operator} has no input and no output: nothing would ever have it run")
        self._is_built = True
        for output in operator.outputs:
            for input in operator.inputs:
                if (input, output) not in self._mentioned:
                    output.connect(input, None)
        operator.inline = inline
        operator.node.may_run_in_line = inline is not None
        operator.node.is_finished = True

        def construct() -> None:
            capabilities = [
                Capability(output, self.scope.minimum, is_initial=True) for output in operator.outputs if output.initial
            ]
            logic = operator.attempt(lambda: constructor(capabilities))
            if not callable(logic):
                raise BuildError(
                    f"the constructor of {operator} must return the function to call at each activation, and returned "
                    f"{logic!r:.80}"
                )
            check_logic(operator.name, logic, operator.origin)
            operator.logic = logic
            if operator.inline is None:
                dataflow.activate(operator)

        dataflow.when_built(construct)

    def build_from(self, logic: Logic, named: Callable[[Exception], Exception] | None = None) -> None:
        """Finish the operator, which needs none of the capabilities that it starts with: `build` without a constructor.

        `named` returns, for an error that the logic raises, the one that is reported. Raises BuildError where `build`
        does.
        """
        check_logic(self.operator.name, logic)
        self.operator.named = named
        self.build(lambda _: logic)

    def _refuse_if_built(self) -> None:
        if self._is_built:
            raise BuildError(f"{self.operator} is built: nothing can be added to it")


def _is_summary(summary: PathSummary) -> bool:
    """Return whether a summary given by a program is one: all fields are non-negative."""
    if not isinstance(summary, PathSummary):
        return False
    return all(type(each) is int and each >= 0 for each in (summary.keep, *summary.increments, *summary.suffix))
