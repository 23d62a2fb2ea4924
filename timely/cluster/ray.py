"""Ray: `timely run --on ray -n 8 script.py`, and `run(program, processes=8)` from a program that uses Ray.

Each process of the run is an actor, and a placement group reserves processors for all actors together. `run` sends the
program to the actors, which run it. `timely run` has each actor start the script as a child, as on one machine. All
connections of the run are its own and encrypted with keys that are made for it and sent with Ray's messages.

**Restarts.** If an actor dies, so does the run: its peers notice and end. With `restarts`, Ray starts the actor again
(`max_restarts`), perhaps on another machine, and all processes begin again with a new generation. Programs with durable
collections then go on where they stopped. Only a directory that all machines share, or an object store, can hold them.
"""

from __future__ import annotations

import os
import sys
import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import uuid4

from timely.cluster.actor import Actor, Ended, Orders
from timely.communication.curve import new_keys
from timely.config import Config, bracketed
from timely.errors import ConfigError, PeerFailed, TransportError
from timely.observe.notices import notify
from timely.run.failure import USAGE_ERROR
from timely.run.restart import FIRST_PAUSE, LONGEST_PAUSE
from timely.run.state import reserved

ECHO_SECONDS = 10.0
"""How long processes have to notice that one of them has died, beyond the peer timeout."""
UNAVAILABLE_SECONDS = 0.1
"""After how long an actor that Ray starts again is asked once more."""
STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


class Fleet:
    """The actors of a run, and what each attempt passes to them."""

    def __init__(self, ray: Any, actors: Sequence[Any], config: Config, state: str | None) -> None:
        self.ray = ray
        self.actors = actors
        self.config = config
        self._state = None if state is None else os.path.abspath(state)

    def orders(self) -> list[Orders]:
        """Return the orders for each actor in a new attempt, once all of them run."""
        config, found = self.config, self._places()
        is_one_machine = len({host for host, _ in found}) == 1
        hosts = ["127.0.0.1" if is_one_machine else bracketed(host) for host, _ in found]
        public, secret = new_keys()
        addresses = tuple(f"tcp://{host}:{port}" for host, (_, port) in zip(hosts, found))
        # The configuration of more than one process needs keys, which each actor has in a directory of its own.
        settled = replace(
            config, curve_dir="keys", processes=len(found), addresses=addresses, generation=uuid4().hex[:16]
        )
        return [Orders(replace(settled, process=each), public, secret, self._state) for each in range(len(found))]

    def _places(self) -> list[tuple[str, int]]:
        """Return what `_where` returns in each actor, once all of them run."""
        ray, workers, seconds = self.ray, self.config.workers, self.config.rendezvous_seconds
        end = clock.monotonic() + seconds
        while True:
            try:
                calls = [actor.__ray_call__.remote(_where, workers) for actor in self.actors]
                found: list[tuple[str, int]] = ray.get(calls, timeout=max(0.0, end - clock.monotonic()))
                return found
            except ray.exceptions.GetTimeoutError:
                raise TransportError(
                    f"Ray has not started all of the {len(self.actors)} actors within {seconds:g} s; look at "
                    "'ray status', or allow more time (TIMELY_RENDEZVOUS_SECONDS)"
                ) from None
            except ray.exceptions.RayActorError as error:
                is_starting = isinstance(error, ray.exceptions.ActorUnavailableError)
                if not is_starting or clock.monotonic() >= end:
                    raise TransportError(f"Ray does not start an actor again that has died: {error}") from None
                clock.sleep(UNAVAILABLE_SECONDS)


def _where(actor: Actor, workers: int) -> tuple[str, int]:
    """Return the address of an actor's machine and a port for its workers."""
    import ray

    return ray.util.get_node_ip_address(), actor.reserve(workers)[0]


def run(
    program: Callable[..., Any],
    *,
    processes: int,
    workers: int = 1,
    restarts: int = 0,
    state: str | None = None,
    strategy: str = "PACK",
    config: Config | None = None,
) -> list[Any]:
    """Run `program(worker)` on actors of Ray; return what the workers return, in their order.

    Each of the `processes` actors has as many processors as `workers`. The placement group has the given `strategy`,
    one of Ray's. If a process fails, all are started again, `restarts` times at most. `state` is the directory of the
    program's durable collections. Other settings are those of `config`.

    Raises the error of the process that failed last, and TransportError if an actor has died or Ray has no room.
    """
    settled = replace(config or Config.from_environ({}), processes=1, process=0, addresses=(), workers=workers)
    with reserved(state, restarts), fleet(processes, settled, restarts, state, strategy) as ships:
        for attempt in count():
            calls = [actor.run.remote(orders, program) for actor, orders in zip(ships.actors, ships.orders())]
            error = _first_cause(ships, calls)
            if error is None:
                break
            if attempt >= restarts:
                raise error
            _pause(attempt, restarts, str(error))
        return [result for part in ships.ray.get(calls) for result in part]


def _first_cause(ships: Fleet, calls: Sequence[Any]) -> Exception | None:
    """Wait until all calls have ended; return the error of the first one that did not fail because of a peer."""
    ray = ships.ray
    waiting = list(calls)
    errors: dict[int, Exception] = {}
    deadline: float | None = None
    while waiting:
        left = None if deadline is None else max(0.0, deadline - clock.monotonic())
        done, waiting = ray.wait(waiting, num_returns=1, timeout=left)
        if not done:
            for call in waiting:  # it does not notice, as inside compiled code: have Ray start it again
                ray.kill(ships.actors[calls.index(call)], no_restart=False)
            deadline = None
        for call in done:
            try:
                ray.get(call)
            except Exception as error:
                errors[calls.index(call)] = error
                deadline = deadline or clock.monotonic() + ships.config.peer_timeout + ECHO_SECONDS
    causes = [_cause(ray, process, error) for process, error in sorted(errors.items())]
    return next((error for error in causes if not isinstance(error, PeerFailed)), causes[0] if causes else None)


def _cause(ray: Any, process: int, error: Exception) -> Exception:
    """Return the error of a program that Ray has wrapped, or one that names the process whose actor died."""
    if isinstance(error, ray.exceptions.RayTaskError):
        return error.cause if isinstance(error.cause, Exception) else error
    if isinstance(error, ray.exceptions.RayActorError):
        return TransportError(f"process {process} is gone: its actor has died ({str(error).strip().splitlines()[-1]})")
    return error


def _pause(attempt: int, restarts: int, why: str) -> None:
    pause = min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE)
    notify(why)
    notify(f"restart {attempt + 1} of {restarts} in {pause:g} s")
    clock.sleep(pause)


def launch(config: Config, processes: int, arguments: Sequence[str], restarts: int, state: str | None) -> int:
    """Run Python with `arguments` as the child of each actor; return the exit status."""
    with fleet(processes, config, restarts, state, "PACK") as ships:
        for attempt in range(restarts + 1):
            try:
                ended = _watch(ships, arguments)
            except ships.ray.exceptions.RayActorError as error:
                ended = Ended(1, False, f"an actor has died: {str(error).strip().splitlines()[-1]}")
            if ended.status in (0, USAGE_ERROR):
                return ended.status
            if attempt < restarts:
                _pause(attempt, restarts, ended.description)
        notify(ended.description)
    return ended.status if ended.status > 0 else 128 - ended.status


def _watch(ships: Fleet, arguments: Sequence[str]) -> Ended:
    """Start a child of each actor, and print what they print until all have ended; return how the run ended."""
    ray, directory = ships.ray, os.getcwd()
    try:
        ray.get([a.start.remote(orders, arguments, directory) for a, orders in zip(ships.actors, ships.orders())])
        polls = {actor.poll.remote(): process for process, actor in enumerate(ships.actors)}
        failed: dict[int, Ended] = {}
        deadline = None
        while polls:
            done, _ = ray.wait(list(polls), num_returns=1, timeout=1.0)
            for poll in done:
                process = polls.pop(poll)
                lines, ended = ray.get(poll)
                for is_error, line in lines:
                    output = sys.stderr if is_error else sys.stdout
                    output.write(f"[{process}] {line.decode(errors='replace')}")
                    output.flush()
                if ended is None:
                    polls[ships.actors[process].poll.remote()] = process
                elif ended.status != 0:
                    failed[process] = ended
                    deadline = deadline or clock.monotonic() + ships.config.peer_timeout + ECHO_SECONDS
            if deadline is not None and clock.monotonic() > deadline:
                break
        causes = [ended for ended in failed.values() if not ended.is_echo]
        return next(iter([*causes, *failed.values()]), Ended(0, False, ""))
    finally:
        with suppress(Exception):  # an actor has died
            ray.get([actor.end.remote() for actor in ships.actors], timeout=ECHO_SECONDS)


@contextmanager
def fleet(processes: int, config: Config, restarts: int, state: str | None, strategy: str) -> Iterator[Fleet]:
    """Yield an actor for each process; they end with the context."""
    if strategy not in STRATEGIES:
        raise ConfigError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
    if processes < 1:
        raise ConfigError(f"there must be at least one process, not {processes}")
    if restarts < 0:
        raise ConfigError(f"restarts is how often to start all processes again, at least 0, not {restarts}")
    ray = _connected(processes * config.workers)
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = placement_group([{"CPU": config.workers}] * processes, strategy=strategy)
    try:
        if not group.wait(config.rendezvous_seconds):
            free = ray.available_resources().get("CPU", 0)
            raise TransportError(
                f"Ray has no room for {processes} processes with {config.workers} processors each: {free:g} are free; "
                "start fewer, or wait for more machines ('ray status')"
            )
        actor = ray.remote(Actor)
        actors = [
            actor.options(
                num_cpus=config.workers,
                max_restarts=restarts,
                max_concurrency=2,
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index),
            ).remote()
            for index in range(processes)
        ]
        yield Fleet(ray, actors, config, state)
    finally:
        remove_placement_group(group)  # Ray ends the actors in it


def _connected(cpus: int) -> Any:
    """Return Ray, connected to the cluster of RAY_ADDRESS or of this machine, or to one started here and now."""
    try:
        import ray
    except ImportError:
        raise ConfigError("--on ray needs Ray: pip install 'timely-dataflow[ray]'") from None
    if not ray.is_initialized():
        settings = {"log_to_driver": False, "logging_level": "warning"}
        try:
            ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), **settings)
        except ConnectionError as error:
            if "RAY_ADDRESS" in os.environ:
                raise ConfigError(f"no cluster of Ray at {os.environ['RAY_ADDRESS']}: {error}") from None
            ray.init(address="local", num_cpus=max(cpus, os.cpu_count() or 1), include_dashboard=False, **settings)
    return ray
