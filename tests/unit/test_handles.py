"""How a notebook shows the handles that a program holds, and that none of them is copied."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import timely
from differential import Session, new_input, new_upsert_input
from timely import (
    Barrier,
    Broadcast,
    CapabilitySet,
    Exchange,
    Gather,
    OperatorBuilder,
    Pipeline,
    Probe,
    Sequencer,
    Worker,
    execute_directly,
    new_unordered_input,
)


def test_a_handle_shows_what_it_is_and_how_far_it_has_advanced() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("links") as scope:
            edges, graph = new_input(scope, name="edges")
            names, _ = new_upsert_input(scope, name="names")
            numbers, stream = timely.new_input(scope)
            probe, output = graph.probe(), graph.output(name="sink")
            held = [edges, names, numbers, probe, output]
            assert [repr(each) for each in held] == [
                "InputSession(Input('edges', not built))",
                "UpsertSession(Input('names', not built))",
                "Input('input', not built)",
                "Probe(not built)",
                "Output('sink', not built)",
            ]
            index = graph.arrange_by_key()
            with scope.iterative("loop") as loop:
                assert repr(loop) == "<scope 'links/loop'>"
        assert repr(worker) == "<worker 0 of 1>"
        assert repr(scope) == "<scope 'links'>"
        assert repr(stream) == "<stream in scope 'links'>"
        assert repr(graph) == "<collection in scope 'links', keys=1>"
        assert repr(index) == "<arrangement in scope 'links', keys=1>"
        assert repr(Probe()) == "Probe(not built)"
        edges.insert(1, 2)
        edges.advance_to(3)
        worker.step()
        numbers.close()
        assert [repr(each) for each in held] == [
            "InputSession(Input('edges', time=(3,)))",
            "UpsertSession(Input('names', time=(0,)))",
            "Input('input', closed)",
            "Probe(frontier=Antichain([(3,)]))",
            "Output('sink', frontier=Antichain([(3,)]))",
        ]

    execute_directly(program)


def test_a_handle_of_an_operator_names_it() -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow("links") as scope:
            numbers, stream = new_unordered_input(scope, name="numbers")
            assert repr(numbers) == "UnorderedInput('numbers', not built)"
            builder = OperatorBuilder(scope, "own")
            input = builder.add_input(stream, Pipeline())
            output, _ = builder.add_output()
            builder.build_from(lambda: None)
            held = CapabilitySet(output)
        own = str(builder.operator)
        assert repr(scope.dataflow) == "<dataflow 0 ('links')>"
        assert repr(builder.operator) == f"<{own}>"
        assert repr(builder) == f"<builder of {own}>"
        assert [repr(input), repr(output)] == [f"<input 0 of {own}>", f"<output 0 of {own}>"]
        assert repr(held) == f"CapabilitySet([], on {output})"
        assert repr(worker.activator(builder.operator)) == f"<activator of {own}>"
        later = numbers.capability.delayed(3)
        assert repr(numbers) == "UnorderedInput('numbers', capabilities held: 2)"
        later.drop()
        numbers.close()
        assert repr(numbers) == "UnorderedInput('numbers', closed)"

    execute_directly(program)


def test_barriers_and_sequencers_show_their_state() -> None:
    def program(worker: Worker) -> None:
        with Barrier(worker) as barrier:
            barrier.wait()
            assert repr(barrier) == "Barrier(round 1)"
        assert repr(barrier) == "Barrier(closed)"
        sequencer = Sequencer(worker)
        sequencer.push("build")
        worker.step_while(lambda: not sequencer.has_arrived)
        assert repr(sequencer) == "Sequencer(open, commands to yield: 1)"
        sequencer.close()
        assert repr(sequencer) == "Sequencer(closed, commands to yield: 1)"

    execute_directly(program)


def test_pacts_show_how_they_are_made() -> None:
    def route(x: int) -> int:
        return x

    assert [repr(pact) for pact in (Pipeline(), Exchange(), Broadcast(), Gather(2))] == [
        "Pipeline()",
        "Exchange()",
        "Broadcast()",
        "Gather(2)",
    ]
    assert repr(Exchange(route)) == f"Exchange({route!r})"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_handle_is_neither_copied_nor_pickled(duplicate: Callable[[Any], Any]) -> None:
    def program(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = timely.new_input(scope)
            probe = stream.probe()
            others, _ = new_unordered_input(scope)
            builder = OperatorBuilder(scope, "own")
            input = builder.add_input(stream, Pipeline())
            output, _ = builder.add_output()
            builder.build_from(lambda: None)
            edges, graph = new_input(scope)
            names, _ = new_upsert_input(scope)
            index = graph.arrange_by_key()
            trace, answers = index.trace(), graph.output()
        handles = {
            "a Worker": worker,
            "a Dataflow": scope.dataflow,
            "a Scope": scope,
            "a Stream": stream,
            "a Probe": probe,
            "an Input": numbers,
            "an UnorderedInput": others,
            "a Capability": others.capability,
            "a CapabilitySet": CapabilitySet(output),
            "an OperatorBuilder": builder,
            "an Operator": builder.operator,
            "an InputPort": input,
            "an OutputPort": output,
            "an Activator": worker.activator(builder.operator),
            "a Barrier": Barrier(worker),
            "a Sequencer": Sequencer(worker),
            "a Collection": graph,
            "an Arrangement": index,
            "an InputSession": edges,
            "an UpsertSession": names,
            "an Output": answers,
            "a Trace": trace,
        }
        for name, handle in handles.items():
            with pytest.raises(TypeError, match=f"^{name} belongs to its worker, and cannot be copied or pickled$"):
                duplicate(handle)
        worker.close()

    execute_directly(program)
    with Session() as session, pytest.raises(TypeError, match=r"^a Session belongs to its worker"):
        duplicate(session)
