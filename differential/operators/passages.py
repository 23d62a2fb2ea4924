"""What becomes of updates that enter a loop, go round in it, and leave it: the same records at other times."""

from __future__ import annotations

from collections.abc import Callable

from differential.data.updates import Updates
from differential.operators.rounds import Rounds
from timely.lowlevel import Batch, Time

Passage = Callable[[Time, Batch], tuple[Time, Updates]]


def entering(suffix: Time) -> Passage:
    """Return what brings updates into a scope whose times have the coordinates of `suffix`, all 0, as well."""
    more = len(suffix)

    def enter(time: Time, batch: Batch) -> tuple[Time, Updates]:
        assert isinstance(batch, Updates)
        return time + suffix, batch.entered(more)

    return enter


def leaving(keep: int) -> Passage:
    """Return what brings updates out of a scope, to one whose times have `keep` coordinates."""

    def leave(time: Time, batch: Batch) -> tuple[Time, Updates]:
        assert isinstance(batch, Updates)
        return time[:keep], batch.left(keep)

    return leave


def going_round(step: int, rounds: Rounds) -> Passage:
    """Return what brings updates into the round `step` rounds later, where `rounds` looks at them.

    The time of the message is that of the round that they come from: the loop is closed behind this.
    """

    def turn(time: Time, batch: Batch) -> tuple[Time, Updates]:
        assert isinstance(batch, Updates)
        updates = batch.delayed(step)
        if time[-1] >= rounds.watched:
            rounds.look(time[-1] + step, updates)
        return time, updates

    return turn
