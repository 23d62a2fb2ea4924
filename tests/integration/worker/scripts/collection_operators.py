"""Every operator of collections in a small program, over columns of several kinds, and what each program means.

Run as a script, it prints the changes of each program's answer, on all workers together: kind, program, epoch, diff and
record a line. `expected` computes the same lines from definitions in Python that know nothing of dataflows.

Two tables (key, value) change in some epochs. Their keys and values are small numbers, which each kind spells in its
own way and in the same order. A definition takes the tables as of an epoch, as multisets of pairs of numbers.
"""

import datetime as dt
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from random import Random

import numpy as np

from differential import Collection, Variable, innermost, new_input, new_upsert_input, replay_into
from differential.delta import AltNeu, CollectionIndex, Prefixes, extend
from differential.graphs import triangles
from timely import execute
from timely.capture import EventQueue
from timely.lowlevel import typed

KEYS, VALUES, EPOCHS = 5, 8, 4
LAST = 14
"""The last epoch at which an answer may change: windows end after the last change of the input."""


# The kinds: what a key and a value are in Python, and as columns.


class Kind:
    """How keys and values are spelled."""

    def __init__(self, key, value, key_type=None, value_type=None):
        self.key, self.value, self.types = key, value, (key_type, value_type)

    def columns(self, records):
        """Return records of numbers as columns."""
        return tuple(
            np.array(items) if name is None else typed(items, name)
            for items, name in zip(([self.key(k) for k, _ in records], [self.value(v) for _, v in records]), self.types)
        )

    def spelled(self, record):
        return tuple(self.key(x) if type(x) is Key else self.value(x) if type(x) is Value else x for x in record)


KINDS = {
    "integers": Kind(int, int),
    "floats": Kind(lambda k: k * 0.5 - 1, lambda v: v * 0.25),
    "text": Kind(lambda k: f"key {k}", lambda v: f"the value with number {v}", "text", "text"),
    "nulls": Kind(lambda k: k if k < KEYS - 1 else None, lambda v: v if v < VALUES - 1 else None, "int64?", "int64?"),
    "times and decimals": Kind(
        lambda k: dt.datetime(2026, 1, 1 + k, 12),
        lambda v: Decimal(v) + Decimal("0.25"),
        "timestamp[us]",
        "decimal(9, 2)",
    ),
}


class Key(int):
    """A number that stands for a key."""


class Value(int):
    """A number that stands for a value."""


def changes_of(seed, keys):
    """Return the changes (record, diff) of a table in each epoch: some are inserted, then some of these deleted."""
    dice, held, epochs = Random(seed), list[tuple[Key, Value]](), []
    for epoch in range(EPOCHS):
        dice.shuffle(held)
        going = [held.pop() for _ in range(len(held) // 2)] if epoch else []
        coming = [(Key(dice.choice(keys)), Value(dice.randrange(VALUES))) for _ in range(6 if epoch else 14)]
        held += coming
        epochs.append([(record, -1) for record in going] + [(record, 1) for record in coming])
    return epochs


LEFT, RIGHT = changes_of(1, range(KEYS)), changes_of(2, range(0, KEYS, 2))


def history_of(table):
    """Return a table as of each epoch."""
    now, history = Counter(), []
    for epoch in range(LAST + 1):
        for record, diff in table[epoch] if epoch < EPOCHS else ():
            now[record] += diff
        history.append(+now)
    return history


# The programs, and what they mean. A definition gets the left and the right table as of an epoch.


def values_by_key(table):
    groups = defaultdict(Counter)
    for (key, value), count in table.items():
        groups[key][value] += count
    return groups


def by_key(reduction):
    """Return the definition of a reduction of the left table: `reduction` returns the values of a key."""
    return lambda left, right: Counter(
        (key, *result) for key, values in values_by_key(left).items() for result in reduction(values)
    )


def mapped(function):
    def definition(left, right=None):
        found = Counter()
        for record, count in left.items():
            found[function(*record)] += count
        return found

    return definition


def joined(function):
    def definition(left, right):
        found = Counter()
        for (key, value), count in left.items():
            for (other, second), number in right.items():
                if key == other:
                    found[function(key, value, second)] += count * number
        return found

    return definition


def components(left, right):
    """Return (key, least key) of the keys that have values in common, directly or by others."""
    least = {key: key for key, _ in left}
    for _ in least:
        for key, value in left:
            least[key] = min([least[key], *(least[other] for other, same in left if same == value)])
    return Counter(least.items())


def least_keys(left):
    """Return the collection and the body of a loop for the components."""
    swapped = left.map(lambda k, v: (v, k))

    def body(labels):
        of_values = labels.join_map(left, lambda k, least, v: (v, least))
        return of_values.join_map(swapped, lambda v, least, k: (k, least)).min()

    return left.map(lambda k, v: (k, k)).distinct(), body


def loop_by_iterate(scope, left, right):
    start, body = least_keys(left)
    return start.iterate(body)


def loop_by_variable(scope, left, right):
    start, body = least_keys(left)
    with scope.iterative() as loop:
        value = Variable(loop, start.enter(loop))
        result = body(value.collection)
        value.set(result)
        return result.leave(scope)


def entered_late(scope, left, right):
    with scope.iterative() as loop:
        return left.enter_at(loop, lambda k, v: np.full(len(k), 3)).distinct().leave(scope)


def entered_by_innermost(scope, left, right):
    with scope.iterative() as loop:
        first, second = innermost(left, right.enter(loop))
        return first.join(second).leave(scope)


def numbers_of_groups(groups):
    return np.arange(len(groups)), np.add.reduceat(groups.counts, groups.offsets[:-1])


def more_on_the_left(groups):
    left, right = (np.bincount(side.index, side.counts, len(groups)).astype(np.int64) for side in groups)
    return np.arange(len(groups)), left - right


def difference_of_counts(left, right):
    lefts, rights = values_by_key(left), values_by_key(right)
    return Counter((key, lefts[key].total() - rights[key].total()) for key in {key for key, _ in (*left, *right)})


def paths_by_half_joins(scope, left, right):
    first = Prefixes.of(left).half_join(right.arrange_by_key(), lambda k, v, w: (k, v, w), AltNeu.of(1, changing=0))
    second = Prefixes.of(right).half_join(left.arrange_by_key(), lambda k, w, v: (k, v, w), AltNeu.of(0, changing=1))
    return first.concat(second).results()


def paths_by_extension(scope, left, right):
    lefts, rights = CollectionIndex(left), CollectionIndex(right)
    first = extend(Prefixes.of(left), [rights.extension(0, AltNeu.of(1, changing=0))])
    second = extend(Prefixes.of(right), [lefts.extension(0, AltNeu.of(0, changing=1))])
    return first.concat(second.map(lambda k, w, v: (k, v, w))).results()


def corners(left, right):
    edges = {(k, v % KEYS) for k, v in left}
    return Counter((a, b, c) for a, b in edges for same, c in edges if same == b and (a, c) in edges)


def first(values):
    return [(min(values),)]


def last_places(values):
    return [(each,) for each in sorted(values.elements())[-2:]]


ANY = {
    "map": (lambda scope, left, right: left.map(lambda k, v: (v, k)), mapped(lambda k, v: (v, k))),
    "flat_map": (
        lambda scope, left, right: left.flat_map(
            lambda k, v: (np.repeat(np.arange(len(k)), 2), k[np.repeat(np.arange(len(k)), 2)])
        ),
        lambda left, right: Counter({(k,): 2 * n for (k,), n in mapped(lambda k, v: (k,))(left).items()}),
    ),
    "filter": (
        lambda scope, left, right: left.filter(lambda k, v: np.full(len(k), True)),
        lambda left, right: left,
    ),
    "explode": (
        lambda scope, left, right: left.explode(lambda k, v: ((k, v), 3)),
        lambda left, right: Counter({record: 3 * count for record, count in left.items()}),
    ),
    "attempt": (lambda scope, left, right: left.attempt(lambda k, v: (v, k)).results, mapped(lambda k, v: (v, k))),
    "inspect": (lambda scope, left, right: left.inspect(lambda *_: None), lambda left, right: left),
    "inspect_batch": (lambda scope, left, right: left.inspect_batch(lambda _: None), lambda left, right: left),
    "concat, negate": (
        lambda scope, left, right: left.concat(right, right.negate(), left),
        lambda left, right: left + left,
    ),
    "consolidate": (lambda scope, left, right: left.concat(right).consolidate(), lambda left, right: left + right),
    "distinct": (lambda scope, left, right: left.distinct(), lambda left, right: Counter(set(left))),
    "threshold": (
        lambda scope, left, right: left.concat(left).threshold(lambda n: np.minimum(n, 3)),
        lambda left, right: Counter({record: min(2 * count, 3) for record, count in left.items()}),
    ),
    "union": (lambda scope, left, right: left.union(right), lambda left, right: left | right),
    "intersect": (lambda scope, left, right: left.intersect(right), lambda left, right: left & right),
    "except_": (lambda scope, left, right: left.except_(right), lambda left, right: left - right),
    "symmetric_difference": (
        lambda scope, left, right: left.symmetric_difference(right),
        lambda left, right: (left - right) + (right - left),
    ),
    "identifiers": (
        lambda scope, left, right: left.identifiers().map(lambda k, v, number: (k, v)),
        lambda left, right: Counter(set(left)),
    ),
    "assert_empty": (
        lambda scope, left, right: left.concat(left.negate()).assert_empty().concat(right),
        lambda left, right: right,
    ),
    "assert_eq": (
        lambda scope, left, right: left.distinct().assert_eq(left.consolidate().distinct()),
        lambda left, right: Counter(set(left)),
    ),
    "join": (lambda scope, left, right: left.join(right), joined(lambda k, v, w: (k, v, w))),
    "join_map": (
        lambda scope, left, right: left.join_map(right, lambda k, v, w: (w, v)),
        joined(lambda k, v, w: (w, v)),
    ),
    "semijoin": (
        lambda scope, left, right: left.semijoin(right.map(lambda k, w: k).distinct()),
        lambda left, right: Counter({(k, v): n for (k, v), n in left.items() if k in values_by_key(right)}),
    ),
    "antijoin": (
        lambda scope, left, right: left.antijoin(right.map(lambda k, w: k).distinct()),
        lambda left, right: Counter({(k, v): n for (k, v), n in left.items() if k not in values_by_key(right)}),
    ),
    "cogroup": (lambda scope, left, right: left.cogroup(right, more_on_the_left), difference_of_counts),
    "reduce": (lambda scope, left, right: left.reduce(numbers_of_groups), by_key(lambda values: [(values.total(),)])),
    "reduce_each": (lambda scope, left, right: left.reduce_each(lambda key, values: [values[0][0]]), by_key(first)),
    "count": (lambda scope, left, right: left.map(lambda k, v: k).count(), by_key(lambda values: [(values.total(),)])),
    "min": (lambda scope, left, right: left.min(), by_key(first)),
    "max": (lambda scope, left, right: left.max(), by_key(lambda values: [(max(values),)])),
    "argmin": (lambda scope, left, right: left.argmin(lambda k, v: v), by_key(first)),
    "argmax": (lambda scope, left, right: left.argmax(lambda k, v: v), by_key(lambda values: [(max(values),)])),
    "top_k": (lambda scope, left, right: left.top_k(2), by_key(last_places)),
    "totals": (
        lambda scope, left, right: left.totals(lambda k, v: 1, lambda k, v: np.full(len(k), 5)),
        by_key(lambda values: [(values.total(), 5 * values.total())]),
    ),
    "iterate": (loop_by_iterate, components),
    "variable, enter, leave": (loop_by_variable, components),
    "enter_at": (entered_late, lambda left, right: Counter(set(left))),
    "innermost": (entered_by_innermost, joined(lambda k, v, w: (k, v, w))),
    "arrange_by_key": (
        lambda scope, left, right: left.arrange_by_key().join(right.arrange_by_key()),
        joined(lambda k, v, w: (k, v, w)),
    ),
    "arrange_by_self": (
        lambda scope, left, right: left.arrange_by_self().count(),
        lambda left, right: Counter((*record, count) for record, count in left.items()),
    ),
    "arrange_by": (lambda scope, left, right: left.arrange_by(2).distinct(), lambda left, right: Counter(set(left))),
    "as_collection": (lambda scope, left, right: left.arrange_by_key().as_collection(), lambda left, right: left),
    "half_join": (paths_by_half_joins, joined(lambda k, v, w: (k, v, w))),
    "extend": (paths_by_extension, joined(lambda k, v, w: (k, v, w))),
    "prefixes": (
        lambda scope, left, right: (
            Prefixes.of(left).filter(lambda k, v: np.full(len(k), True)).map(lambda k, v: (v, k)).results()
        ),
        mapped(lambda k, v: (v, k)),
    ),
}
"""Programs over columns of any kind."""


def even(numbers):
    return numbers % 2 == 0


def refuse_zero(k, v):
    if (v == 0).any():
        raise ValueError("zero")
    return k, v


def running_sums(values):
    return [(Value(place), sum((v + 1) * n for v, n in values.items() if v <= place)) for place in values]


NUMBERS = {
    "extend, to triangles": (
        lambda scope, left, right: triangles(left.map(lambda k, v: (k, v % KEYS)).distinct()),
        corners,
    ),
    "filter numbers": (
        lambda scope, left, right: left.filter(lambda k, v: even(v)),
        lambda left, right: Counter({(k, v): n for (k, v), n in left.items() if even(v)}),
    ),
    "flat_map numbers": (
        lambda scope, left, right: left.flat_map(
            lambda k, v: (np.repeat(np.arange(len(k)), v % 3), np.repeat(v, v % 3))
        ),
        lambda left, right: sum((Counter({(v,): n * (v % 3)}) for (_, v), n in left.items() if v % 3), Counter()),
    ),
    "explode numbers": (
        lambda scope, left, right: left.explode(lambda k, v: (k, v)).count(),
        by_key(lambda values: [(total,)] if (total := sum(v * n for v, n in values.items())) else []),
    ),
    "attempt, results": (
        lambda scope, left, right: left.attempt(refuse_zero).results,
        lambda left, right: Counter({(k, v): n for (k, v), n in left.items() if v}),
    ),
    "attempt, rejects": (
        lambda scope, left, right: left.attempt(refuse_zero).rejects.map(lambda record, error, line: (record, error)),
        lambda left, right: Counter({(f"({k}, {v})", "ValueError: zero"): n for (k, v), n in left.items() if not v}),
    ),
    "sum": (
        lambda scope, left, right: left.sum(),
        by_key(lambda values: [(sum(v * n for v, n in values.items()),)]),
    ),
    "totals of numbers": (
        lambda scope, left, right: left.totals(lambda k, v: v, lambda k, v: 1),
        by_key(lambda values: [(sum(v * n for v, n in values.items()), values.total())]),
    ),
    "prefix_sum": (
        lambda scope, left, right: left.map(lambda k, v: (k, v, v + 1)).prefix_sum(bits=4),
        by_key(running_sums),
    ),
    "enter_at numbers": (
        lambda scope, left, right: rounds_by_value(scope, left),
        lambda left, right: Counter(set(left)),
    ),
    "passed": (
        lambda scope, left, right: left.map(lambda k, v: v).passed(
            Collection.of(scope, np.array(["a", "b"]), np.array([6, 4])), 2
        ),
        lambda left, right: Counter({(v,): n for (v,), n in mapped(lambda k, v: (v,))(left).items() if v <= 4}),
    ),
    "of": (
        lambda scope, left, right: Collection.of(scope, np.arange(KEYS)).semijoin(left.map(lambda k, v: k).distinct()),
        lambda left, right: Counter({(k,) for k, _ in left}),
    ),
}
"""Programs over integers."""


def rounds_by_value(scope, left):
    with scope.iterative() as loop:
        return left.enter_at(loop, lambda k, v: v % 3).distinct().leave(scope)


def in_time(definition):
    """Return a definition that takes histories and an epoch, from one that takes tables."""
    return lambda lefts, rights, epoch: definition(lefts[epoch], rights[epoch])


IN_TIME = {
    "delay": (
        lambda scope, left, right: left.delay(lambda time: (time[0] + 2,)),
        lambda lefts, rights, epoch: lefts[epoch - 2] if epoch > 1 else Counter(),
    ),
    "window": (
        lambda scope, left, right: left.window(3, at=lambda k, v: v, late=lambda _: None),
        lambda lefts, rights, epoch: Counter({(k, v): n for (k, v), n in lefts[epoch].items() if v <= epoch < v + 3}),
    ),
}
"""Programs over integers that move changes to other epochs."""


def programs_of(kind):
    """Return the programs over a kind of columns, each with a definition that takes histories and an epoch."""
    found = {name: (program, in_time(definition)) for name, (program, definition) in ANY.items()}
    if kind == "integers":
        found |= {name: (program, in_time(definition)) for name, (program, definition) in NUMBERS.items()} | IN_TIME
    return found


def add_changes(worker, session, kind, table, epoch):
    """Make this worker's share of the changes of an epoch: an insertion and its deletion are on any two workers."""
    changes = [each for place, each in enumerate(table[epoch]) if (place + epoch) % worker.peers == worker.index]
    if changes:
        session.update(*kind.columns([record for record, _ in changes]), diff=np.array([diff for _, diff in changes]))
    session.advance_to(epoch + 1)


def run(worker, name, kind):
    """Run all programs over a kind of columns, in one dataflow; return lines."""
    with worker.dataflow(name) as scope:
        sessions = [(new_input(scope, name=side), table) for side, table in (("left", LEFT), ("right", RIGHT))]
        (_, left), (_, right) = [pair for pair, _ in sessions]
        outputs = {
            title: program(scope, left, right).output(signed=True) for title, (program, _) in programs_of(name).items()
        }
        probe = left.concat(right).probe()
    for epoch in range(EPOCHS):
        for (session, _), table in sessions:
            add_changes(worker, session, kind, table, epoch)
        worker.step_while(lambda least=epoch + 1: probe.less_than(least))
    return lines_of(worker, name, outputs, [session for (session, _), _ in sessions])


def lines_of(worker, name, outputs, sessions):
    """Close the inputs and return the changes of all outputs as lines."""
    for session in sessions:
        session.close()
    worker.step_while(lambda: not all(output.done() for output in outputs.values()))
    return [
        f"{name}, {title}: {time[0]} {diff:+d} {record!r}"
        for title, output in outputs.items()
        for record, time, diff in output.changes()
    ]


def imported(worker, name, kind):
    """Import the trace of one dataflow into another one, halfway, and compute there."""
    with worker.dataflow("exporting") as scope:
        session, left = new_input(scope)
        trace = left.arrange_by_key().trace()
    add_changes(worker, session, kind, LEFT, 0)
    with worker.dataflow("importing") as scope:
        arranged = trace.import_into(scope)
        keyed = arranged.as_collection()
        outputs = {
            "trace, count": arranged.count().output(),
            "trace, reduce": arranged.reduce(numbers_of_groups).output(),
            "trace, join": arranged.join_map(keyed, lambda k, v, w: (k, v, w)).output(),
        }
    for epoch in range(1, EPOCHS):
        add_changes(worker, session, kind, LEFT, epoch)
        worker.step()
    return lines_of(worker, name, outputs, [session])


def replayed(worker, name, kind):
    """Capture a collection, and replay it: each worker reads what it wrote, as its share of a list of queues."""
    queue = EventQueue()
    with worker.dataflow("captured") as scope:
        session, left = new_input(scope)
        left.distinct().capture_into(queue)
        probe = left.probe()
    for epoch in range(EPOCHS):
        add_changes(worker, session, kind, LEFT, epoch)
    session.close()
    worker.step_while(lambda: not probe.done())
    with worker.dataflow("replaying") as scope:
        outputs = {"capture_into, replay_into": replay_into(scope, [queue] * worker.peers).output()}
    return lines_of(worker, name, outputs, [])


def upserted(worker, name, kind):
    """Set the value of each key to the last one that the left table receives, on one worker; unset a key."""
    with worker.dataflow("upserted") as scope:
        session, values = new_upsert_input(scope)
        outputs = {"new_upsert_input": values.output()}
    for epoch in range(EPOCHS):
        present = latest(epoch)
        if worker.index == epoch % worker.peers:
            session.set(*kind.columns(list(present.items())))
        session.advance_to(epoch + 1)
    return lines_of(worker, name, outputs, [session])


def latest(epoch):
    """Return the last value that the left table has received for each key in an epoch."""
    return dict(record for record, diff in LEFT[epoch] if diff > 0)


def last_values(lefts, rights, epoch):
    values = {}
    for each in range(min(epoch, EPOCHS - 1) + 1):
        values |= latest(each)
    return Counter(values.items())


SELF_JOIN = joined(lambda k, v, w: (k, v, w))
NUMBER_BY_KEY = in_time(by_key(lambda values: [(values.total(),)]))
APART = {
    imported: {
        "trace, count": NUMBER_BY_KEY,
        "trace, reduce": NUMBER_BY_KEY,
        "trace, join": lambda lefts, rights, epoch: SELF_JOIN(lefts[epoch], lefts[epoch]),
    },
    replayed: {"capture_into, replay_into": in_time(lambda left, right: Counter(set(left)))},
    upserted: {"new_upsert_input": last_values},
}
"""Programs of several dataflows, or with another input, and what each answer means."""


def everything(worker):
    """Return the lines of all programs that this worker has."""
    return [line for name, kind in KINDS.items() for program in (run, *APART) for line in program(worker, name, kind)]


def expected():
    """Return the lines that all workers are to print together, from the definitions."""
    lines, lefts, rights = Counter(), history_of(LEFT), history_of(RIGHT)
    for name, kind in KINDS.items():
        definitions = {title: definition for title, (_, definition) in programs_of(name).items()}
        for more in APART.values():
            definitions |= more
        for title, definition in definitions.items():
            before = Counter()
            for epoch in range(LAST + 1):
                now = +Counter(definition(lefts, rights, epoch))
                for record in {*now, *before}:
                    if diff := now[record] - before[record]:
                        lines[f"{name}, {title}: {epoch} {diff:+d} {kind.spelled(record)!r}"] += 1
                before = now
    return lines


if __name__ == "__main__":
    for lines in execute(everything):
        sys.stdout.write("".join(f"{line}\n" for line in lines))
