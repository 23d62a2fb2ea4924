"""After every call of a reduction, its output is right at every time that is closed."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import differential.kernels.reduce_rounds as rounds
from differential.data.strings import TEXT, StringTable, packed
from differential.kernels import reduce_fold
from differential.kernels.reduce_layers import PENDING_TIME
from tests.oracle.blocks import columns_in, reduced
from tests.oracle.layers import Layers, Update, advanced, consolidated, rows_of
from tests.oracle.reduce import REDUCTIONS, Reduction, accumulate, encode_float, reduce_by_replay, text_of
from tests.thorough import examples
from timely.order import Time, join
from timely.progress.antichain import Antichain

EXTENT = 4
"""Coordinates are 0 to EXTENT - 1."""
LINEAR = ("COUNT", "SUM")
"""The kinds that can be reduced from the output and the new rows."""
EMPTY = np.empty(0, np.int64)
STRINGS = StringTable()
STRINGS.add(packed(np.array([text_of(number) for number in range(100)], TEXT)), np.arange(100))
FLOATS = [0.1, 0.2, -0.3, 1e16, -1e16, 5e-324, 1.0]


@st.composite
def histories(draw: st.DrawFn, depth: int, signed: bool, keys: int = 2, vals: int = 3) -> list[Update]:
    """Updates of which, unless `signed`, no value ever accumulates to a negative diff."""
    times = st.tuples(*[st.integers(0, EXTENT - 1)] * depth)
    row = st.tuples(st.integers(-1, keys - 2), st.integers(-1, vals - 2), times, times, st.integers(-2, 3))
    records = draw(st.lists(row, max_size=14))
    updates: list[Update] = []
    for key, val, time, later, diff in records:
        if signed or diff > 0:
            updates.append((key, val, time, diff))
        else:
            updates += [(key, val, time, 1), (key, val, join(time, later), -1)]
    return consolidated(updates)


@st.composite
def uppers(draw: st.DrawFn, depth: int) -> list[Antichain]:
    """Frontiers, each at or after the one before, the last of them empty."""
    times = st.tuples(*[st.integers(0, EXTENT)] * depth)
    result: list[Antichain] = []
    reached = Antichain([(0,) * depth])
    for step in draw(st.lists(st.lists(times, min_size=1, max_size=3), max_size=4)):
        reached = Antichain([join(left, right) for left in reached for right in step])
        result.append(reached)
    return [*result, Antichain()]


def split(updates: list[Update], random: Random, most: int) -> list[list[Update]]:
    """Return the updates dealt out to a random number of batches, now and then with a pair that cancels."""
    batches: list[list[Update]] = [[] for _ in range(random.randint(1, most))]
    for update in updates:
        random.choice(batches).append(update)
    if updates and random.random() < 0.3:
        key, val, time, diff = random.choice(updates)
        random.choice(batches).append((key, val, time, diff))
        random.choice(batches).append((key, val, time, -diff))
    return batches


def table_of(times: Antichain, depth: int) -> Any:
    return np.array([list(time) for time in times], np.int64).reshape(len(times), depth)


class Replay:
    """A reduction fed with a history call by call, checked after each."""

    def __init__(self, depth: int, random: Random, compact: bool, rank: Any = int) -> None:
        self.depth, self.random, self.compact, self.rank = depth, random, compact, rank
        self.lower = Antichain([(0,) * depth])
        self.input: list[Update] = []
        self.output: list[Update] = []
        self.seen_input: list[Update] = []
        self.seen_output: list[Update] = []

    def tables(self, updates: list[Update], upper: Antichain) -> tuple[Layers, Layers, Layers, list[Update]]:
        """Return new rows, all input and all output, as layers, and the new rows."""
        new = [row for row in updates if self.lower.less_equal(row[2]) and not upper.less_equal(row[2])]
        new_batches = split(new, self.random, 2)
        if self.compact and self.random.random() < 0.7 and self.lower:
            self.seen_input = advanced(self.seen_input, list(self.lower))
            self.seen_output = advanced(self.seen_output, list(self.lower))
        old_batches = split(self.seen_input, self.random, 3)
        self.seen_input = self.seen_input + new
        return (
            Layers(new_batches, self.depth),
            Layers(old_batches + new_batches, self.depth, self.rank),
            Layers(split(self.seen_output, self.random, 3), self.depth),
            new,
        )

    def emitted(self, rows: list[Update], new: list[Update], upper: Antichain, reduction: Reduction) -> None:
        """Check what a call emitted."""
        for row in rows:
            assert self.lower.less_equal(row[2]), f"{row} comes before {self.lower}"
            assert not upper.less_equal(row[2]), f"{row} comes at {upper} or later"
            assert row[3] != 0
        self.input += new
        self.output += rows
        self.seen_output = self.seen_output + rows
        self.lower = upper
        for time in itertools.product(range(EXTENT), repeat=self.depth):
            if not upper.less_equal(time):
                right = {
                    key: reduced
                    for key, values in accumulate(self.input, time).items()
                    if (reduced := reduction(values))
                }
                assert accumulate(self.output, time) == right, f"at {time}, after {upper}"


def run(*history: Any) -> list[Update]:
    """Return everything that a reduction emits for a history without negative diffs (see `run_until_fault`)."""
    output, fault = run_until_fault(*history)
    assert fault == ()
    return output


def run_until_fault(
    kind: str,
    parameter: int,
    depth: int,
    updates: list[Update],
    frontiers: list[Antichain],
    random: Random,
    compact: bool,
) -> tuple[list[Update], tuple[int, ...]]:
    """Return what a reduction emits, and where it finds a negative diff."""
    by_text = kind in ("FIRST", "LAST")
    replay = Replay(depth, random, compact, text_of if by_text else int)
    reduction = REDUCTIONS[kind](parameter)
    order = np.array([parameter, 1, 1, STRINGS.address, 0, 0, 0, 0, 1])
    if by_text:
        parameter = order.ctypes.data
        updates = [(key, val + 1, time, diff) for key, val, time, diff in updates]  # numbers are not negative
    pending: Any = np.empty((0, PENDING_TIME + depth), np.int64)
    for upper in frontiers:
        new, inputs, outputs, fresh = replay.tables(updates, upper)
        tables = (inputs.table, outputs.table, table_of(upper, depth))
        result = reduced(getattr(reduce_fold, kind), parameter, new.table, pending, *tables)
        if len(result[6]):
            return replay.output, tuple(result[6].tolist())
        rows = rows_of(*result[:5])
        assert rows == sorted(rows, key=lambda row: row[0])
        pending = result[5]
        postponed = [(key, tuple(time)) for key, _, *time in pending.tolist()]
        assert [key for key, _ in postponed] == sorted(key for key, _ in postponed)
        assert all(upper.less_equal(time) for _, time in postponed)
        replay.emitted(rows, fresh, upper, reduction)
    assert len(pending) == 0
    return replay.output, ()


def is_negative(kind: str, count: int, total: int) -> bool:
    """Return whether a reduction has no meaning for a value that occurs `count` times, among `total` records."""
    return total < 0 if kind == "COUNT" else count < 0


@pytest.mark.parametrize(
    ("kind", "linear"), [*[(kind, 0) for kind in REDUCTIONS], *[(kind, reduce_fold.LINEAR) for kind in LINEAR]]
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_output_is_right_at_every_closed_time_after_every_call(kind: str, linear: int, depth: int) -> None:
    signed = kind in ("COUNT", "SUM", "SUM_FLOAT")

    @settings(max_examples=examples(60), deadline=None)
    @given(histories(depth, signed), uppers(depth), st.randoms(use_true_random=False), st.booleans(), st.integers(0, 4))
    def check(updates: list[Update], frontiers: list[Antichain], random: Random, compact: bool, parameter: int) -> None:
        if kind == "SUM_FLOAT":
            updates = consolidated((key, encode_float(FLOATS[val]), time, diff) for key, val, time, diff in updates)
        if kind in LINEAR:
            parameter = reduce_fold.SIGNED | linear
        run(kind, parameter, depth, updates, frontiers, random, compact)

    check()


@settings(max_examples=examples(60), deadline=None)
@given(histories(2, False), st.randoms(use_true_random=False))
def test_one_call_emits_what_a_replay_of_the_definition_emits(updates: list[Update], random: Random) -> None:
    for kind in ("COUNT", "MIN", "LARGEST"):
        emitted = run(kind, 2, 2, updates, [Antichain()], random, False)
        assert consolidated(emitted) == sorted(reduce_by_replay(updates, REDUCTIONS[kind](2)))


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [("LARGEST", 99), ("DISTINCT", 0), ("COUNT", 0), ("COUNT", reduce_fold.LINEAR), ("LAST", 1)],
)
@given(histories(2, True, keys=1), uppers(2), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_a_negative_diff_is_reported_at_a_time_where_it_is_negative(
    kind: str, parameter: int, updates: list[Update], frontiers: list[Antichain], random: Random, compact: bool
) -> None:
    # Of `LARGEST`, only the values that are looked at are checked.
    _, fault = run_until_fault(kind, parameter, 2, updates, frontiers, random, compact)
    negative = [
        (key, val, *time) if kind == "DISTINCT" else (key, *time)
        for time in itertools.product(range(EXTENT), repeat=2)
        for key, values in accumulate(updates, time).items()
        for val, count in values.items()
        if is_negative(kind, count, sum(values.values()))
    ]
    assert bool(fault) == bool(negative)
    assert not fault or fault in negative


def reduce_in_rounds(state: rounds.ReduceState, reduction: Reduction) -> list[Update]:
    """Return what a reduction in Python emits in all rounds, with values in two halves where possible."""
    rows: list[Update] = []
    for number in range(state.rounds):
        active, offsets, vals, counts, fault = state.accumulate(number)
        assert len(fault) == 0
        assert len(active) > 0
        vals = vals if len(vals) else np.zeros(len(counts), np.int64)
        sizes, emitted_vals, emitted_counts = [0], [], []
        for group in range(len(active)):
            span = slice(offsets[group], offsets[group + 1])
            values = dict(zip(vals[span].tolist(), counts[span].tolist()))
            assert 0 not in values.values()
            emitted = list(reduction(values).items())
            emitted_vals += [val for val, _ in emitted] * 2
            emitted_counts += [diff - 1 for _, diff in emitted] + [1 for _ in emitted]
            sizes.append(len(emitted_vals))
        columns = [np.array(column, np.int64) for column in (sizes, emitted_vals, emitted_counts)]
        chunk = rows_of(*columns_in(*state.settle(*columns)))
        assert {key for key, _, _, _ in chunk} <= set(state.keys[active].tolist())
        rows += chunk
    return rows


def run_in_rounds(depth: int, updates: list[Update], frontiers: list[Antichain], random: Random, compact: bool) -> None:
    reduction = REDUCTIONS["LARGEST"](2)
    replay = Replay(depth, random, compact)
    pending: Any = np.empty((0, PENDING_TIME + depth), np.int64)
    for upper in frontiers:
        new, inputs, outputs, fresh = replay.tables(updates, upper)
        state = rounds.plan(new.table, pending, inputs.table, outputs.table, table_of(upper, depth))
        pending = state.pending
        assert all(upper.less_equal(tuple(time)) for time in pending[:, PENDING_TIME:].tolist())
        replay.emitted(reduce_in_rounds(state, reduction), fresh, upper, reduction)
    assert len(pending) == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_reduction_in_rounds_is_right_at_every_closed_time_after_every_call(depth: int) -> None:
    @settings(max_examples=examples(100), deadline=None)
    @given(histories(depth, False), uppers(depth), st.randoms(use_true_random=False), st.booleans())
    def check(updates: list[Update], frontiers: list[Antichain], random: Random, compact: bool) -> None:
        run_in_rounds(depth, updates, frontiers, random, compact)

    check()


@pytest.mark.parametrize(("depth", "extent"), [(1, 60), (2, 8), (3, 4)])
def test_many_times_of_a_key_are_reduced_in_one_call_as_the_definition_is_replayed(depth: int, extent: int) -> None:
    times = st.tuples(*[st.integers(0, extent - 1)] * depth)
    spans = st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 3), times, times), max_size=60)

    @settings(max_examples=examples(60), deadline=None)
    @given(spans, st.randoms(use_true_random=False))
    def check(present: list[tuple[int, int, Time, Time]], random: Random) -> None:
        updates = consolidated(
            row
            for key, val, time, other in present
            for row in [(key, val, time, 1), (key, val, join(time, other), -random.randrange(2))]
        )
        reduction = REDUCTIONS["LARGEST"](2)
        layers, nothing = Layers(split(updates, random, 3), depth), np.empty((0, 8), np.int64)
        pending, upper = np.empty((0, PENDING_TIME + depth), np.int64), np.empty((0, depth), np.int64)
        state = rounds.plan(layers.table, pending, layers.table, nothing, upper)
        emitted = reduce_in_rounds(state, reduction)
        assert consolidated(emitted) == sorted(reduce_by_replay(updates, reduction))

    check()


def test_pending_times_without_rows_are_visited_when_they_are_due() -> None:
    updates: list[Update] = [(1, 1, (1, 0, 0), 1), (1, 2, (0, 1, 0), 1), (1, 3, (0, 0, 1), 1)]
    joins = Antichain([(1, 1, 0), (1, 0, 1), (0, 1, 1)])
    run_in_rounds(3, updates, [joins, Antichain()], Random(0), False)


EVEN = st.builds(lambda first, step, count: [first + step * each for each in range(count)],
                 st.integers(-1000, 1000), st.integers(1, 2**40), st.integers(1, 60))  # fmt: skip
UNEVEN = st.lists(st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1)), max_size=30)


@settings(max_examples=examples(200))
@given(st.lists(EVEN | UNEVEN, min_size=1, max_size=4), st.data())
def test_groups_are_found_wherever_they_are_among_many(spread: list[list[int]], data: st.DataObject) -> None:
    """Keys spread evenly, unevenly or to the ends of the integers; few groups are touched, the others passed by."""
    keys = sorted({key for some in spread for key in some} or {0})
    past: list[Update] = [(key, val, (0,), 1) for key in keys for val in range(1 + key % 3 * 7)]
    touched = sorted(data.draw(st.sets(st.sampled_from(keys) | st.integers(-(2**63), 2**63 - 1), max_size=8)))
    new: list[Update] = [(key, 7, (1,), 1) for key in touched]
    counts: Counter[int] = Counter(key for key, *_ in past)
    emitted: list[Update] = [(key, count, (0,), 1) for key, count in sorted(counts.items())]
    pending = np.empty((0, PENDING_TIME + 1), np.int64)
    fresh, inputs, outputs = Layers([new], 1), Layers([past, new], 1), Layers([emitted], 1)
    tables = inputs.table, outputs.table, np.empty((0, 1), np.int64)
    result = reduced(reduce_fold.COUNT, 0, fresh.table, pending, *tables)
    expected = {
        row
        for key in touched
        for row in [(key, counts[key] + 1, (1,), 1), *([(key, counts[key], (1,), -1)] if counts[key] else [])]
    }
    rows = rows_of(*result[:5])
    assert set(rows) == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        ("COUNT", reduce_fold.LINEAR),
        ("SUM", 0),
        ("SUM", reduce_fold.LINEAR),
        ("MIN", 0),
        ("LAST", 30),
        ("LARGEST", 30),
        ("in rounds", 0),
    ],
)
@pytest.mark.parametrize("compact", [False, True])
def test_a_long_history_is_reduced_in_steps(kind: str, parameter: int, compact: bool) -> None:
    dice = Random(3)
    times = list(itertools.product(range(EXTENT), repeat=2))
    updates = consolidated((1, dice.randrange(40), dice.choice(times), dice.randrange(1, 3)) for _ in range(200))
    frontiers = [Antichain([(0, 2), (1, 0)]), Antichain([(1, 2), (2, 0)]), Antichain([(2, 3)]), Antichain()]
    if kind == "in rounds":
        run_in_rounds(2, updates, frontiers, dice, compact)
    else:
        run(kind, parameter, 2, updates, frontiers, dice, compact)


@pytest.mark.parametrize(
    ("kind", "parameter"), [*[(kind, 5) for kind in REDUCTIONS], *[(kind, reduce_fold.LINEAR) for kind in LINEAR]]
)
@pytest.mark.parametrize("depth", [1, 2])
def test_groups_are_reduced_even_if_room_runs_out_in_their_midst(kind: str, parameter: int, depth: int) -> None:
    """Ever more values of ever more keys, at one time first, at all times then."""
    times = list(itertools.product(range(3), repeat=depth))
    updates: list[Update] = [
        (key, encode_float(float(val)) if kind == "SUM_FLOAT" else val, times[0], 1)
        for key in range(60)
        for val in range(key % 40 + 2)
    ]
    updates += [
        (key, val, times[(key + number) % len(times)], 1)
        for key, val, _, _ in updates
        for number in range(key * 2 // 60 + 1)
    ]
    frontiers = [Antichain([(1,) + (0,) * (depth - 1)]), Antichain()]
    run(kind, parameter, depth, consolidated(updates), frontiers, Random(0), False)
