"""An actor passes on what its child prints, and how it ends."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator

import pytest

from timely.cluster.actor import POLL_SECONDS, Actor, Ended, Orders
from timely.communication.curve import new_keys
from timely.config import Config

Printed = list[tuple[bool, bytes]]


@pytest.fixture
def actor() -> Iterator[Actor]:
    actor = Actor()
    yield actor
    actor.end()


def until_ended(actor: Actor, program: str) -> tuple[list[tuple[float, Printed]], Ended]:
    """Run a program; return how long each poll took and what it returned, and how the child ended."""
    actor.start(Orders(Config(), *new_keys(), None), ["-u", "-c", program], "")
    polls: list[tuple[float, Printed]] = []
    end = clock.monotonic() + 30
    while clock.monotonic() < end:
        begun = clock.monotonic()
        lines, ended = actor.poll()
        polls.append((clock.monotonic() - begun, lines))
        if ended is not None:
            return polls, ended
    raise AssertionError("the child has not ended after 30 s")


def test_a_child_that_prints_steadily_is_shown_while_it_does(actor: Actor) -> None:
    polls, ended = until_ended(actor, "import time\nfor x in range(200): print(x); time.sleep(0.01)")
    assert ended.status == 0
    assert [line for _, lines in polls for line in lines] == [(False, b"%d\n" % x) for x in range(200)]
    assert max(seconds for seconds, _ in polls[:-1]) < 2 * POLL_SECONDS


def test_all_that_a_child_has_printed_is_there_when_it_has_ended(actor: Actor) -> None:
    program = "import sys\nfor x in range(5000): print(x)\nsys.exit('failed')"
    polls, ended = until_ended(actor, program)
    lines = [line for _, lines in polls for line in lines]
    assert [text for is_error, text in lines if not is_error] == [b"%d\n" % x for x in range(5000)]
    assert [text for is_error, text in lines if is_error] == [b"failed\n"]
    assert (ended.status, ended.is_echo) == (1, False)
