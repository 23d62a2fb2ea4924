"""What the parts of one dataflow on one worker share: its plan, its schedule and its progress.

Ports, operators and builders know a dataflow as this; `Dataflow` adds what makes it run: the protocol that exchanges
progress with other workers, and the step.
"""

from __future__ import annotations

from collections.abc import Callable

from timely.closing import close_all
from timely.communication.message import Data
from timely.data.container import Batch
from timely.dataflow.host import Host
from timely.dataflow.outstanding import Outstanding
from timely.dataflow.plan import Place, Plan, Surroundings
from timely.dataflow.recorder import Counts, Recorder
from timely.dataflow.schedule import Schedulable, Schedule
from timely.dataflow.tee import Tee
from timely.errors import BuildError, DataflowFailed, TimelyError
from timely.order import Time
from timely.origin import user_origin
from timely.progress.due import Due
from timely.progress.reachability import Tracker


class DataflowCore:
    """A dataflow as its parts know it.

    `update(location, time, change)` changes a count; all changes of one step reach the tracker, and other workers,
    together.
    """

    tracker: Tracker
    update: Callable[[int, Time, int], None]

    def __init__(self, host: Host, index: int, name: str) -> None:
        self.host = host
        self.worker_index = host.index
        self.peers = host.peers
        self.index = index
        self.name = name
        self.is_plain: bool = host.config.plain
        """Whether the optimisation pass is left out (see `timely.dataflow.compose`)."""
        self.outstanding: Outstanding = host.outstanding
        self.plan = Plan()
        self.due = Due(host.agenda, index)
        self.schedule = Schedule(self.outstanding, lambda: host.is_congested, self.due)
        self.recorder: Recorder | None = None
        self.counts: Counts | None = None
        """What operators have done while they were counted (`Log.count`)."""
        self.running: Schedulable | None = None
        """The operator that runs, while a step of this dataflow is under way."""
        self.sending: Schedulable | None = None
        """The input on which the program sends, while functions that run in line receive a batch of it."""
        self.emitted = 0
        """How many messages have gone into queues here, or to other workers."""
        self.is_logged = True
        """Whether the worker's log records what happens here."""
        self.is_closed = False
        """Whether this was dropped, complete or not."""
        self.is_abandoned = False
        """Whether an error has ended the building of this."""
        self._places: list[Place] = []
        self._locations: dict[int, int] = {}
        self._listeners: list[list[Schedulable]] = []
        self._tees: list[Tee] = []
        self._constructors: list[Callable[[], None]] = []
        self._on_complete: list[Callable[[], None]] = []
        self._inputs: list[tuple[Callable[[], None], Callable[[], bool] | None]] = []
        self._activated: set[Schedulable] = set()
        self._followers: dict[int, list[Callable[[list[int]], None]]] = {}
        self.loss = ""
        """What has ended a step before its time, or an empty text."""

    def __str__(self) -> str:
        return f"dataflow {self.index} ({self.name!r})"

    def __repr__(self) -> str:
        return f"<{self}>"

    # Building

    @property
    def built(self) -> bool:
        """Whether the plan is complete, so that nothing can be added, and could be laid out."""
        return self.plan.is_frozen and not self.is_abandoned

    def until_built(self, what: str) -> str:
        """Return, for people, that they can do something once this is complete, such as "data can be sent", and how."""
        if self.is_abandoned:
            return f"{what} once the dataflow is complete, but building {self} failed with an error: build it again"
        return f"{what} once the dataflow is complete: leave its `with` block first"

    def refuse_if_built(self) -> None:
        """Raise BuildError once this is complete, or could not be built."""
        if self.is_abandoned:
            raise BuildError(
                f"building {self} failed with an error: build it again; nothing can be added to it (at {user_origin()})"
            )
        if self.plan.is_frozen:
            raise BuildError(
                f"{self} is complete: nothing can be added to it (at {user_origin()}). Another dataflow has what is in "
                "this one by its trace (Arrangement.trace, taken inside the `with` block, and Trace.import_into), or "
                "by capture and replay"
            )

    def add_place(self, scope: Surroundings, named: object) -> int:
        """Return a new place of the plan whose times are those of `scope`, and which `str(named)` names."""
        self.refuse_if_built()
        return self.plan.add_place(scope, named)

    def add_tee(self, depth: int = 0) -> Tee:
        """Return a tee whose consumers are looked up when the dataflow is built."""
        tee = Tee(depth)
        self._tees.append(tee)
        return tee

    def add_operator(self, operator: Schedulable) -> None:
        """Add an operator of the plan's last node."""
        raise NotImplementedError

    def add_channel(self, port: object) -> int:
        """Add an operator's input; return the number of its channel."""
        raise NotImplementedError

    def add_function(self, function: object) -> int:
        """Add a function that runs in line; return its number."""
        raise NotImplementedError

    def when_built(self, constructor: Callable[[], None]) -> None:
        """Call `constructor` as soon as capabilities can be made."""
        self._constructors.append(constructor)

    def when_complete(self, callback: Callable[[], None]) -> None:
        """Call `callback` when nothing can happen in this dataflow any more, or when it is dropped."""
        self._on_complete.append(callback)

    def when_program_ends(self, close: Callable[[], None], is_open: Callable[[], bool] | None = None) -> None:
        """Call `close` when the user's program has returned and can send no more; `is_open` returns if it could."""
        self._inputs.append((close, is_open))

    def close_inputs(self) -> bool:
        """Close the inputs, the last first: one may emit into those made before it. Return whether one was open."""
        was_open = any(is_open is not None and is_open() for _, is_open in self._inputs)
        for close, _ in reversed(self._inputs):
            close()
        return was_open

    # Running

    def lose(self, error: BaseException) -> None:
        """Run nothing any more: an error has ended a step between taking something and answering it."""
        what = "it was interrupted" if isinstance(error, KeyboardInterrupt) else f"it met {error!r:.200}"
        self.loss = str(error).partition("\n")[0] if isinstance(error, TimelyError) else what
        # The program may have met the error outside of a step. With peers, the next step raises DataflowFailed.
        if not self.due.is_set:
            self.due.set()

    def refuse_if_failed(self) -> None:
        """Raise DataflowFailed if an error or an interrupt has ended a step."""
        if self.loss:
            raise DataflowFailed(
                f"{self} has lost what it was computing when {self.loss}, so its answers would lack a part: drop it "
                "with worker.drop_dataflow(), and build it again"
            )

    def abandon(self) -> None:
        """Close this, of which an error has ended the building."""
        self.is_abandoned = True
        self.close()

    def close(self) -> None:
        """Release what operators hold outside this dataflow (traces, files).

        Called by one of its operators, it waits for that one to return, since all changes of a run are one batch.
        Called by a function in line, it waits until what the program sends is queued, which would be owed for ever.
        """
        self.is_closed = True
        if self.running is not None or self.sending is not None:
            return
        self.schedule.close()
        callbacks, self._on_complete = self._on_complete, []  # so each is called once, whatever they call
        close_all(callbacks)

    def activate(self, operator: Schedulable) -> None:
        """Let an operator run in this step or the next."""
        self.schedule.activate(operator)

    def may_activate(self, operator: Schedulable) -> None:
        """Expect that something outside this dataflow activates an operator."""
        self._activated.add(operator)

    def observe(self, place: int) -> None:
        """Keep track of the frontier at a place though no operator asks for it (a probe)."""
        self.plan.observed.add(place)

    def location(self, place: int) -> int:
        """Return the tracked location of an observed place."""
        return self._locations[place]

    def listen(self, location: int, operator: Schedulable) -> None:
        """Schedule `operator`, once this is built, whenever the frontier at a tracked location moves."""
        self._listeners[location].append(operator)

    def follow(self, location: int, callback: Callable[[list[int]], None]) -> None:
        """Call `callback` when the frontier at a tracked location has moved; for what is outside this dataflow.

        It is called once for all locations at which it follows a frontier that the same changes have moved, with these.
        """
        self._followers.setdefault(location, []).append(callback)

    def unfollow(self, location: int, callback: Callable[[list[int]], None]) -> None:
        """Revoke `follow`."""
        # Compared by value: each access to a method makes a new object.
        left = [each for each in self._followers.pop(location, ()) if each != callback]
        if left:
            self._followers[location] = left

    def send(self, worker: int, channel: int, time: Time, batch: Batch) -> None:
        """Send a batch to an input of this dataflow on another worker."""
        if self.recorder is not None:
            self.recorder.sent(channel, batch, worker)
        self.host.allocator.send(worker, Data(self.index, channel, time, batch))

    def describe(self, location: int) -> str:
        """Return the name of a tracked location."""
        return str(self._places[location].named)

    def scope_of(self, location: int) -> Surroundings:
        """Return the scope whose times a tracked location has."""
        return self._places[location].scope
