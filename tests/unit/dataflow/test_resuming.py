"""An operator with more messages than it sends at once resumes only when its earlier messages have been consumed."""

from __future__ import annotations

from collections import deque

from timely import Capability, Pipeline, Stream, Worker, execute_directly, new_input
from timely.dataflow.builder import OperatorBuilder


def tripled(stream: Stream, name: str, log: list[str]) -> Stream:
    """Send each message three times, in three activations."""
    builder = OperatorBuilder(stream.scope, name)
    input = builder.add_input(stream, Pipeline(), drains=True)
    output, result = builder.add_output()
    todo: deque[Capability] = deque()

    def logic() -> None:
        for time, _ in input.drain():
            todo.extend(Capability(output, time) for _ in range(3))
        if todo:
            log.append(name)
            with todo.popleft() as capability:
                output.give(capability, [name])
        if todo:
            builder.operator.resume_later()

    builder.build(lambda _: logic)
    return result


def test_the_last_of_several_operators_resumes_first_so_that_at_most_one_message_waits() -> None:
    log: list[str] = []

    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            session, stream = new_input(scope)
            first = tripled(stream, "first", log)
            tripled(first, "second", log).inspect(lambda _: log.append("consumed"))
        session.send(0)
        session.close()
        while worker.step():
            pass

    execute_directly(program)
    assert log == ["first", *["second", "consumed"] * 3] * 3
