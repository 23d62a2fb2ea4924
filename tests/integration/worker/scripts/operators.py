"""Every operator in a small program whose records do not depend on how many workers share its input.

Run as a script, it prints what comes out of each program, on all workers together: name, time and record a line.
"""

import sys
import time as clock
from collections import Counter

import numpy as np

from timely import (
    Barrier,
    Broadcast,
    Exchange,
    Gather,
    Pipeline,
    Probe,
    execute,
    log_stream,
    new_input,
    new_unordered_input,
    source,
)
from timely.data.container import records
from timely.dataflow.operators.concat import concatenate
from timely.observe.events import OperatorBuilt

EPOCHS, SIZE = 3, 40


def own_share(scope, size):
    """The numbers below `size` that this worker has."""
    return np.arange(scope.index, size, scope.peers)


def by_notification(stream):
    counts = Counter()

    def logic(input, output, notificator):
        for right, batch in input:
            counts[right.time] += len(batch)
            notificator.notify_at(right)
        for time, right in notificator:
            output.give(right, [counts.pop(time)])

    return stream.unary_notify(Gather(1), logic)


def by_frontier(stream):
    def constructor(capability):
        capability.drop()
        counts = {}

        def logic(input, output):
            for right, batch in input:
                if right.time not in counts:
                    counts[right.time] = [right.retain(), 0]
                counts[right.time][1] += len(batch)
            for time in sorted(counts):
                if not input.frontier.less_equal(time):
                    held, number = counts.pop(time)
                    with held:
                        output.give(held, [number])

        return logic

    return stream.unary_frontier(Gather(0), constructor)


def same_on_both_sides(left, right, output):
    for input in (left, right):
        for capability, batch in input:
            output.give(capability, batch)


def both_counts(left, right):
    counts = {}

    def logic(left, right, output, notificator):
        for side, input in enumerate((left, right)):
            for capability, batch in input:
                counts.setdefault(capability.time, [0, 0])[side] += len(batch)
                notificator.notify_at(capability)
        for time, capability in notificator:
            output.give(capability, [tuple(counts.pop(time))])

    return left.binary_notify(right, Gather(0), Gather(0), logic)


def both_frontiers(left, right):
    def constructor(capability):
        seen = []

        def logic(left, right, output):
            seen.extend(batch for input in (left, right) for _, batch in input)
            if not left.frontier and not right.frontier and capability.output is not None:
                with capability:
                    output.give(capability, [sum(map(len, seen))] if seen else [])

        return logic

    return left.binary_frontier(right, Gather(0), Gather(0), constructor)


def counted_up(scope):
    def constructor(capability, activate):
        remaining = own_share(scope, 7).tolist()

        def logic(output):
            if remaining:
                output.give(capability, [remaining.pop()])
                activate.activate_after(1e-4)
            else:
                capability.drop()

        return logic

    return source(scope, constructor)


def collatz(scope, numbers):
    with scope.iterative() as loop:
        handle, again = loop.loop_variable()
        now = numbers.map(lambda x: x + 1).enter(loop).concat(again).exchange()
        going, arrived = now.branch(lambda x: x == 1)
        going.map(lambda x: np.where(x % 2 == 0, x // 2, 3 * x + 1)).connect_loop(handle)
        return arrived


def halved_in_a_region(scope, numbers):
    with scope.region() as region, region.iterative() as loop:
        handle, again = loop.feedback(2)
        now = numbers.enter(loop).concat(again)
        now.filter(lambda x: x > 3).map(lambda x: x // 2).exchange().connect_loop(handle)
        return now.filter(lambda x: x <= 3).leave(scope)


def epochs_of_an_iterator(scope, _):
    probe = Probe()
    items = [own_share(scope, 10 * epoch) for epoch in range(4)]
    return scope.iterator_source(items, probe, ahead=2).exchange().probe_with(probe)


def totals_by_key(starts, values):
    return np.add.reduceat(values, starts)


def running_total(key, state, values):
    total = (state or 0) + int(values.sum())
    return total, [(int(key), total)]


def repeated(numbers):
    rows = np.repeat(np.arange(len(numbers)), numbers % 3)
    return rows, numbers[rows]


def vector(numbers):
    return numbers.accumulate(np.zeros(4, np.int64), lambda total, x: total + np.bincount(x % 4, minlength=4))


def on_the_first(scope, stream):
    return stream.filter(lambda *_: scope.index == 0)


PROGRAMS = {
    "map": lambda scope, numbers: numbers.map(lambda x: (x % 3, x * 0.5)).exchange(),
    "flat_map": lambda scope, numbers: numbers.flat_map(repeated).exchange(),
    "map_batch": lambda scope, numbers: numbers.map_batch(lambda x: np.repeat(x, x % 3)).exchange(),
    "filter": lambda scope, numbers: numbers.filter(lambda x: x % 2 == 0).exchange(),
    "text": lambda scope, numbers: numbers.map(lambda x: x.astype(str)).exchange(),
    "concat": lambda scope, numbers: numbers.concat(numbers.exchange()),
    "concatenate": lambda scope, numbers: concatenate([numbers, numbers.exchange(), counted_up(scope)]),
    "partition": lambda scope, numbers: numbers.partition(3, lambda x: x % 3)[1].exchange(),
    "ok": lambda scope, numbers: numbers.exchange().ok_err(lambda x: (x % 2 == 0, x // 2, x))[0],
    "err": lambda scope, numbers: numbers.exchange().ok_err(lambda x: (x % 2 == 0, x // 2, x))[1],
    "branch": lambda scope, numbers: numbers.exchange().branch(lambda x: x > 20)[1],
    "branch_when": lambda scope, numbers: numbers.exchange().branch_when(lambda time: time >= (1,))[0],
    "broadcast": lambda scope, numbers: on_the_first(scope, numbers.broadcast()),
    "unary, broadcast": lambda scope, numbers: on_the_first(
        scope, numbers.unary(Broadcast(), lambda input, output: [output.give(right, batch) for right, batch in input])
    ),
    "delay": lambda scope, numbers: numbers.exchange().delay(lambda time, x: time[0] + x % 4),
    "reclock": lambda scope, numbers: numbers.exchange().reclock(
        scope.to_stream([1]).delay(lambda time, _: 1).concat(scope.to_stream([1]).delay(lambda time, _: 5))
    ),
    "accumulate": lambda scope, numbers: numbers.exchange(lambda x: 0 * x).accumulate(0, lambda n, x: n + int(x.sum())),
    "count": lambda scope, numbers: numbers.exchange(lambda x: 0 * x).count(),
    "aggregate": lambda scope, numbers: numbers.map(lambda x: (x % 7, x)).aggregate(totals_by_key),
    "combine": lambda scope, numbers: numbers.map(lambda x: (x % 7, x)).combine(totals_by_key),
    "combine_everywhere": lambda scope, numbers: on_the_first(
        scope, numbers.map(lambda x: (x % 7, x)).combine_everywhere(totals_by_key)
    ),
    "all_reduce": lambda scope, numbers: on_the_first(scope, vector(numbers).all_reduce()),
    "all_reduce_by_tree": lambda scope, numbers: on_the_first(scope, vector(numbers).all_reduce_by_tree()),
    "state_machine": lambda scope, numbers: numbers.map(lambda x: (x % 7, x)).state_machine(running_total),
    "loop_variable": collatz,
    "feedback, region": halved_in_a_region,
    "unary_notify": lambda _, numbers: by_notification(numbers),
    "unary_frontier": lambda _, numbers: by_frontier(numbers),
    "binary": lambda scope, numbers: numbers.binary(numbers, Exchange(), Pipeline(), same_on_both_sides),
    "binary_notify": lambda scope, numbers: both_counts(numbers, numbers.filter(lambda x: x < 9)),
    "binary_frontier": lambda scope, numbers: both_frontiers(numbers, numbers.filter(lambda x: x < 9)),
    "source": lambda scope, _: counted_up(scope).exchange(),
    "empty": lambda scope, numbers: scope.empty().concat(numbers).exchange(),
    "to_stream": lambda scope, _: scope.to_stream(own_share(scope, 100)).exchange(),
    "iterator_source": epochs_of_an_iterator,
}


def run(worker, program):
    """Run a program on a few epochs of numbers; return its records, and their times, as text."""
    found = []
    with worker.dataflow() as scope:
        handle, numbers = new_input(scope)
        result = program(scope, numbers)
        result.inspect_batch(lambda time, batch: found.extend(f"{time} {record!r}" for record in records(batch)))
    for epoch in range(EPOCHS):
        handle.send(own_share(worker, SIZE + epoch))
        handle.advance_to(epoch + 1)
        worker.step()
    handle.close()
    while worker.step_or_park():
        pass
    return found


def unordered(worker):
    """Send at several times at once, and count the records of each complete time."""
    found = []
    with worker.dataflow() as scope:
        handle, numbers = new_unordered_input(scope)
        counts = numbers.exchange(lambda x: 0 * x).count()
        counts.inspect_time(lambda time, record: found.append(f"{time} {record!r}"))
    rights = [handle.capability.delayed((time,)) for time in (5, 2, 9)]
    handle.capability.drop()
    for right in rights:
        handle.send(right, own_share(worker, 10 + right.time[0]))
    for right in rights:
        right.drop()
    while worker.step_or_park():
        pass
    return found


def sunk(worker):
    """Let a sink consume exchanged records."""
    found = []

    def logic(input):
        for right, batch in input:
            found.extend(f"{right.time} {record!r}" for record in records(batch))

    with worker.dataflow() as scope:
        scope.to_stream(own_share(scope, 50)).sink(Exchange(), logic)
    while worker.step_or_park():
        pass
    return found


def logged(worker):
    """Return the operators in the first worker's log."""
    found = []
    with worker.dataflow("watching") as scope:
        built = log_stream(scope, OperatorBuilt).filter(lambda time, worker, *_: worker == 0)
        built.map(lambda *fields: fields[4:6]).exchange().inspect(lambda record: found.append(f"{record!r}"))
    with worker.dataflow("watched") as scope:
        new_input(scope, name="numbers")[1].exchange().probe()
    worker.close_inputs()
    while worker.step_or_park():
        pass
    return found


def barred(worker):
    """Return for each of some barriers whether all workers arrived before any left, by the clock of the machine."""
    barrier, came, left = Barrier(worker), [], []
    for turn in range(5):
        if turn % worker.peers == worker.index:
            clock.sleep(0.002)
        came.append(clock.monotonic())
        barrier.wait()
        left.append(clock.monotonic())

    def program(scope, _):
        latest = scope.to_stream([np.array(came)]).all_reduce(np.maximum)
        earliest = scope.to_stream([np.array(left)]).all_reduce(np.minimum)
        both = latest.map(lambda all_came: (0, all_came)).concat(earliest.map(lambda first_left: (1, first_left)))
        return on_the_first(scope, both.accumulate((), lambda pairs, batch: sorted([*pairs, *batch])).map(in_order))

    worker.close_inputs()
    return run(worker, program)


def in_order(pairs):
    (_, all_came), (_, first_left) = pairs
    return (all_came <= first_left).tolist()


APART = {"unordered_input": unordered, "sink": sunk, "log_stream": logged, "barrier": barred}


def everything(worker):
    """Return lines of name, time and record, for the records on this worker."""
    found = [f"{name}: {line}" for name, program in PROGRAMS.items() for line in run(worker, program)]
    return found + [f"{name}: {line}" for name, program in APART.items() for line in program(worker)]


if __name__ == "__main__":
    for lines in execute(everything):
        sys.stdout.write("".join(f"{line}\n" for line in lines))
