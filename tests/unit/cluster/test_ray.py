"""What a run does when Ray reports that an actor does not answer, with a stand-in for Ray."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from timely import Config
from timely.cluster.ray import Fleet
from timely.errors import TransportError


class RayActorError(Exception):
    """An actor has died, or does not answer."""


class ActorUnavailableError(RayActorError):
    """An actor does not answer, because Ray starts it again."""


class GetTimeoutError(Exception):
    """There is no result yet."""


ERRORS = SimpleNamespace(
    RayActorError=RayActorError, ActorUnavailableError=ActorUnavailableError, GetTimeoutError=GetTimeoutError
)


def fleet(*outcomes: Any) -> Fleet:
    """Return a fleet of two actors; the first calls of all have these outcomes, one after the other."""
    left = list(outcomes)

    def get(calls: list[None], timeout: float) -> Any:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    actor = SimpleNamespace(__ray_call__=SimpleNamespace(remote=lambda *_: None))
    return Fleet(SimpleNamespace(get=get, exceptions=ERRORS), [actor, actor], Config(), None)


def test_an_actor_that_ray_is_starting_again_is_waited_for() -> None:
    restarting = ActorUnavailableError("The actor is restarting.")
    orders = fleet(restarting, restarting, [("host", 1), ("host", 2)]).orders()
    assert orders[0].config.addresses == ("tcp://127.0.0.1:1", "tcp://127.0.0.1:2")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RayActorError("no restart is left"), "does not start an actor again that has died: no restart is left"),
        (GetTimeoutError(), r"has not started all of the 2 actors within \d+ s; look at 'ray status'"),
    ],
)
def test_an_actor_that_does_not_come_is_an_error(error: Exception, message: str) -> None:
    with pytest.raises(TransportError, match=message):
        fleet(ActorUnavailableError(), error).orders()
