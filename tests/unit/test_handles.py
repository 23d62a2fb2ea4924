"""How a notebook shows the handles that a program holds."""

from __future__ import annotations

import timely
from differential import new_input, new_upsert_input
from timely import Probe, Worker, execute_directly


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
