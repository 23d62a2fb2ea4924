"""Run a program on the workers of this process.

The program is a function of the worker: it builds dataflows, and may step the worker itself. When it returns, inputs it
left open are closed, and the worker keeps stepping until its dataflows are complete, then says goodbye and waits for
the farewells of its peers, so that no process leaves while another needs it.

A process with one worker runs it in the calling thread. With several, each has a thread and the caller waits; Ctrl-C
reaches all of them. When any worker anywhere raises, all others end with `PeerFailed`; the process where it happened
raises the error itself, with a note of the worker where it has several.

A program may call `sys.exit`. With a status other than 0 that fails the run, and is its status. With 0 the worker
leaves early: the run ends normally if all others end, or leave, within `LEAVING_SECONDS`. Otherwise their results would
lack this worker's share, so the run fails and names the worker.

>>> execute_directly(lambda worker: (worker.index, worker.peers))
(0, 1)
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread
from traceback import walk_tb
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from timely.closing import close_all
from timely.communication.allocator import Allocator, broadcast
from timely.communication.message import Failure, Goodbye
from timely.communication.thread import thread_allocators
from timely.config import Config
from timely.data.container import records
from timely.errors import BuildError, ConfigError, OperatorError, PeerFailed, ShapeError, TransportError
from timely.interruption import interruption, no_interrupt_lost
from timely.observe.activity import CONNECTING, PARTING
from timely.observe.notices import notify
from timely.run.environment import report_unknown_variables
from timely.run.failure import THREADS_SECONDS, describe, install_hook
from timely.run.heap import keep_pieces
from timely.run.signals import report_on_signal, was_asked_to_end
from timely.worker.standstill import SECONDS, engaged
from timely.worker.status import running

if TYPE_CHECKING:
    from timely.dataflow.scope import Scope
    from timely.dataflow.stream import Stream
    from timely.worker.worker import Worker

Result = TypeVar("Result")
Build = TypeVar("Build", bound=Callable[..., Any])

LEAVING_SECONDS = 2.0
"""How long a worker whose program called `sys.exit(0)` waits for the others to end too."""

_NAMING = (OperatorError, PeerFailed, ShapeError, TransportError)
"""Errors that say which worker or process they are about."""

_runs = count()


def execute(build: Callable[[Worker], Result], config: Config | None = None) -> list[Result]:
    """Run `build` on every worker of this process and return what it returned, in order of the workers.

    Without a configuration the environment decides, which `timely run` sets; with nothing set there is one worker. The
    processes of a cluster must call this equally often. Raises ConfigError where it is given what is
    no configuration.

    >>> execute(lambda worker: worker.index, Config(workers=3))
    [0, 1, 2]
    """
    if not (config is None or isinstance(config, Config)):
        raise ConfigError(f"execute() takes a Config, such as Config(workers=2), and not {config!r:.80}")
    install_hook()
    report_on_signal()
    keep_pieces()
    settled = Config.from_environ() if config is None else config
    if config is None:
        report_unknown_variables(settled)
    settled = replace(settled, generation=f"{settled.generation}.{next(_runs)}")
    allocators = local_allocators(settled)
    with no_interrupt_lost(), _stall_watch(settled), _profile(settled) as accounted:
        if len(allocators) == 1:
            return [run(allocators[0], accounted(build), settled)]
        return _run_threads(allocators, accounted(build), settled)


def execute_from_args(arguments: Sequence[str], build: Callable[[Worker], Result]) -> list[Result]:
    """Run `build` as the options `-w`, `-n`, `-p` and `-h` among `arguments` say, and return what `execute` does.

    What the options leave open comes from the environment; see `Config.from_args`.

    >>> execute_from_args(["-w", "2"], lambda worker: f"worker {worker.index} of {worker.peers}")
    ['worker 0 of 2', 'worker 1 of 2']
    """
    config, _ = Config.from_args(arguments)
    report_unknown_variables(config)
    return execute(build, config)


def execute_directly(build: Callable[[Worker], Result]) -> Result:
    """Run `build` on one worker in this thread, whatever the environment says, and return what it returned.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         doubled = scope.to_stream(range(3)).map(lambda x: 2 * x).inspect(print).probe()
    ...     worker.step_while(lambda: not doubled.done())
    ...     return "complete"
    >>> execute_directly(program)
    0
    2
    4
    'complete'
    """
    return execute(build, Config())[0]


def example(program: Callable[[Scope], Stream]) -> list[Any]:
    """Return the records on the stream that `program(scope)` makes, run to completion by one worker in this thread.

    For doctests and first steps.

    >>> example(lambda scope: scope.to_stream(range(3)).map(lambda x: 10 * x))
    [0, 10, 20]
    """
    found: list[Any] = []

    def build(worker: Worker) -> None:
        with worker.dataflow("example") as scope:
            made = program(scope)
            if not hasattr(made, "inspect_batch"):
                raise BuildError(f"the program of an example must return a stream, and returned {made!r:.80}")
            made.inspect_batch(lambda time, batch: found.extend(records(batch)))

    execute_directly(build)
    return found


def local_allocators(config: Config) -> Sequence[Allocator]:
    """Return an allocator for each worker of this process."""
    if config.processes == 1:
        return thread_allocators(config.workers, config.queue_bytes)
    from timely.communication.sockets import socket_allocators

    begun = clock.monotonic()
    return socket_allocators(config, lambda: was_asked_to_end(begun))


def _stall_watch(config: Config) -> AbstractContextManager[object]:
    if not config.stall_seconds:
        return nullcontext()
    from timely.worker.stall import StallWatch

    return StallWatch(config.stall_seconds)


@contextmanager
def _profile(config: Config) -> Iterator[Callable[[Build], Build]]:
    """Yield a function that has a program's workers keep accounts, if asked for, and print them at the end."""
    if not config.profile:
        yield lambda build: build
        return
    from timely.observe.accounts import Account, table

    accounts: list[Account] = []

    def accounted(build: Any) -> Any:
        def program(worker: Worker) -> Any:
            accounts.append(Account(worker))
            return build(worker)

        return program

    try:
        yield accounted
    finally:
        if accounts:
            notify(f"process {config.process}: {table(accounts)}")


def run(
    allocator: Allocator,
    build: Callable[[Worker], Result],
    config: Config,
    failed: Callable[[BaseException], object] = lambda error: None,
) -> Result:
    """Run one worker to its end, in this thread. Its peers learn how it ended in any case.

    `failed` is called with the error of a program that fails, before the worker's connections are closed, which may
    take long.
    """
    from timely.worker.worker import Worker

    worker = Worker(allocator, config)
    worker.standstill.report_after(SECONDS if config.stall_seconds is None else config.stall_seconds)
    try:
        with running(worker):
            with worker.activity.during(CONNECTING):
                allocator.connect()
            try:
                result = build(worker)
            except SystemExit as error:
                if error.code not in (None, 0) or worker.peers == 1:
                    raise
                _leave(worker, allocator, error)
                left = error
            else:
                worker.close_inputs()
                while worker.step_or_park():
                    pass
                with worker.activity.during(PARTING):
                    _part(worker, allocator)
                return result
    except PeerFailed:
        raise
    except BaseException as error:
        stop = interruption(error)
        failed(stop or error)
        # The cause is `error`; whatever prevents the peers from learning it must not hide it.
        with suppress(Exception):
            broadcast(allocator, Failure(allocator.index, describe(stop or error)))
        if stop is not None:
            raise stop from None
        raise
    finally:
        close_all([worker.close, allocator.close])
    raise left


def _leave(worker: Worker, allocator: Allocator, left: SystemExit) -> None:
    """Wait for the others to end after `sys.exit(0)`; raise `SystemExit` with a message where they do not.

    Meanwhile this worker goes on with its dataflows, unless the exit came out of one: others may need its progress.
    """
    end = clock.monotonic() + LEAVING_SECONDS
    if not any(_is_of_a_dataflow(frame) for frame, _ in walk_tb(left.__traceback__)):
        worker.close_inputs()
        broadcast(allocator, Goodbye(allocator.index, worker.built))
        while clock.monotonic() < end:
            if not worker.step_or_park(0.05):
                worker.standstill.park(0.05)
            if len(allocator.farewells) == allocator.peers - 1 and not allocator.holds_back:
                return
    others = [peer for peer in range(worker.peers) if peer != worker.index and peer not in allocator.farewells]
    raise SystemExit(
        f"timely: worker {worker.index} called sys.exit(0) before {_workers(others)} had ended, so the results lack "
        "its share; return from the program instead, or have all workers exit"
    ) from left


def _is_of_a_dataflow(frame: FrameType) -> bool:
    """Return whether a frame of a traceback is of an operator, or of what runs operators."""
    return str(frame.f_globals.get("__name__")).startswith(("timely.dataflow.", "differential."))


def _workers(indices: Sequence[int]) -> str:
    """Return the names of some workers, of many only the first few.

    >>> _workers([1]), _workers([1, 2]), _workers(range(1, 9))
    ('worker 1', 'workers 1, 2', 'workers 1, 2, 3, 4 and 4 more')
    """
    shown = ", ".join(map(str, indices[:4]))
    more = f" and {len(indices) - 4} more" if len(indices) > 4 else ""
    return f"worker{'s' if len(indices) > 1 else ''} {shown}{more}"


def _part(worker: Worker, allocator: Allocator) -> None:
    """Say goodbye to all peers and wait until all have, and have room for it, so that nobody's messages are cut off.

    A peer that has built more dataflows will never complete them without this worker, so that is an error here.
    """
    _refuse_more(worker, enumerate(worker.shapes.announced))
    broadcast(allocator, Goodbye(allocator.index, worker.built))
    while True:
        worker.take_in()
        _refuse_more(worker, enumerate(worker.shapes.announced))
        if len(allocator.farewells) == allocator.peers - 1 and not allocator.holds_back:
            break
        worker.standstill.park(None)
    _refuse_more(worker, [(peer, goodbye.dataflows) for peer, goodbye in allocator.farewells.items()])


def _refuse_more(worker: Worker, built: Iterable[tuple[int, int]]) -> None:
    """Raise `ShapeError` where one of the peers has built more dataflows than this worker, which builds no more."""
    ours = worker.built
    for peer, theirs in built:
        if theirs > ours:
            raise ShapeError(
                f"worker {worker.index} ended after building {ours} dataflows, but worker {peer} built {theirs}; "
                "every worker must build the same dataflows in the same order"
            )


Outcome = tuple[int, Result | None, BaseException | None]


def _run_threads(allocators: Sequence[Allocator], build: Callable[[Worker], Result], config: Config) -> list[Result]:
    ended: SimpleQueue[Outcome[Result]] = SimpleQueue()
    causes: list[BaseException] = []

    def body(position: int) -> None:
        try:
            ended.put((position, run(allocators[position], build, config, causes.append), None))
        except BaseException as error:
            _note_worker(error, allocators[position])
            ended.put((position, None, error))

    threads = [
        Thread(target=body, args=(position,), name=f"timely worker {allocator.index}", daemon=True)
        for position, allocator in enumerate(allocators)
    ]
    outcomes: list[Outcome[Result]] = []
    try:
        with engaged():
            for thread in threads:
                thread.start()
            _collect(ended, outcomes, len(allocators))
    except BaseException:
        for allocator in allocators:
            allocator.interrupt()
        deadline = clock.monotonic() + THREADS_SECONDS
        for thread in threads:  # by thread: an outcome is lost where the signal came between its arrival and its note
            if thread.ident is not None:
                thread.join(max(0.0, deadline - clock.monotonic()))
        raise
    errors = [error for _, _, error in outcomes if error is not None]
    if errors:
        # A thread that failed may still be closing its connections, while others that ended because of it are done.
        raise next((error for error in [*errors, *causes] if not isinstance(error, PeerFailed)), errors[0])
    return [result for _, result, _ in sorted(outcomes, key=lambda outcome: outcome[0])]  # type: ignore[misc]


def _note_worker(error: BaseException, allocator: Allocator) -> None:
    """Add to an error of the program on which worker it was, unless it says so."""
    if isinstance(error, Exception) and not isinstance(error, _NAMING):
        error.add_note(f"the program failed on worker {allocator.index} of {allocator.peers}")


def _collect(ended: SimpleQueue[Outcome[Result]], outcomes: list[Outcome[Result]], expected: int) -> None:
    """Wait for the threads; from the first error on, not for ever."""
    deadline: float | None = None
    while len(outcomes) < expected:
        try:
            outcome = ended.get(timeout=None if deadline is None else max(0.0, deadline - clock.monotonic()))
        except Empty:
            return
        outcomes.append(outcome)
        if outcome[2] is not None and deadline is None:
            deadline = clock.monotonic() + THREADS_SECONDS
