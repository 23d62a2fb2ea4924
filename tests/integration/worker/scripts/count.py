"""Every worker sends numbers; equal ones meet on one worker, which counts them and prints the count of each epoch."""

import sys

import numpy as np

from timely import Exchange, execute, new_input

epochs, size = int(sys.argv[1]), int(sys.argv[2])


def counting(capability):
    capability.drop()
    epochs = {}

    def logic(input, output):
        for right, batch in input:
            if right.time not in epochs:
                epochs[right.time] = right.retain(), []
            epochs[right.time][1].append(batch.columns[0])
        for time in sorted(epochs):
            if not input.frontier.less_equal(time):
                held, parts = epochs.pop(time)
                numbers = np.concatenate(parts)
                with held:
                    output.give(held, [(len(numbers), int(numbers.sum()))])

    return logic


def program(worker):
    counted = []
    with worker.dataflow("count") as scope:
        session, stream = new_input(scope)
        counts = stream.unary_frontier(Exchange(), counting).inspect_batch(
            lambda time, batch: counted.append((time, *batch))
        )
        probe = counts.probe()
    for epoch in range(epochs):
        session.send(np.arange(size) * worker.peers + worker.index)
        session.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(session.epoch))
    session.close()
    while worker.step_or_park():
        pass
    return counted


if __name__ == "__main__":
    for counted in execute(program):
        assert [time for time, _ in counted] == [(epoch,) for epoch in range(epochs)]
        for _, (number, total) in counted:
            sys.stdout.write(f"counted {number} {total}\n")
