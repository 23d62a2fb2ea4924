"""What becomes of updates that enter a loop, go round in it, and leave it: the same records at other times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from differential.data.updates import Updates, updates_of
from differential.operators.rounds import Rounds
from timely.errors import DataError
from timely.lowlevel import LIMIT, Batch, Time, consult

Passage = Callable[[Time, Batch], tuple[Time, Updates]]


def entering(suffix: Time) -> Passage:
    """Return what brings updates into a scope whose times have the coordinates of `suffix`, all 0, as well."""
    more = len(suffix)

    def enter(time: Time, batch: Batch) -> tuple[Time, Updates]:
        return time + suffix, updates_of(batch).entered(more)

    return enter


def entering_at(rounds: Callable[..., Any]) -> Passage:
    """Return what brings updates into a loop, each record at the round that `rounds` returns for it."""

    def enter(time: Time, batch: Batch) -> tuple[Time, Updates]:
        outside, updates = updates_of(batch), None
        given = np.asarray(consult(rounds, outside.columns))
        if given.dtype.kind in "iub" and given.shape in ((), (len(outside),)):
            updates = outside.entered_at(given, LIMIT // 2)  # as many more rounds may follow before the limit
        if updates is None:
            raise DataError("the rounds of enter_at must be one integer, from 0 to 2 ** 61, for each record")
        return (*time, 0), updates

    return enter


def leaving(keep: int) -> Passage:
    """Return what brings updates out of a scope, to one whose times have `keep` coordinates."""

    def leave(time: Time, batch: Batch) -> tuple[Time, Updates]:
        return time[:keep], updates_of(batch).left(keep)

    return leave


def going_round(step: int, rounds: Rounds) -> Passage:
    """Return what brings updates into the round `step` rounds later, where `rounds` looks at them.

    The time of the message is that of the round that they come from: the loop is closed behind this.
    """

    def turn(time: Time, batch: Batch) -> tuple[Time, Updates]:
        updates = updates_of(batch).delayed(step)
        if time[-1] >= rounds.watched:
            rounds.look(time[-1] + step, updates)
        return time, updates

    return turn
