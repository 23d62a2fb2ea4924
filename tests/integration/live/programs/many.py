"""500 operators, on as many workers as asked, that pass on records for as many seconds as asked."""

import sys
import time as clock

from timely import execute, new_input
from timely.dataflow.pact import Pipeline

CHAINS, LENGTH = 10, 50


def forward(input, output):
    for capability, batch in input:
        output.give(capability, batch)


def program(worker):
    with worker.dataflow("many") as scope:
        numbers, stream = new_input(scope, name="numbers")
        probes = []
        for chain in range(CHAINS):
            with scope.region(f"chain {chain}") as region:
                each = stream.enter(region)
                for step in range(LENGTH - 1):
                    each = each.unary(Pipeline(), forward, name=f"step {step}")
                probes.append(each.leave().exchange(name=f"exchange {chain}").probe())
    end = clock.monotonic() + float(sys.argv[1])
    epoch = 0
    while clock.monotonic() < end:
        epoch += 1
        numbers.send(epoch)
        numbers.advance_to(epoch)
        worker.step_while(lambda: any(probe.less_than(numbers.epoch) for probe in probes))
        clock.sleep(0.02)


execute(program)
