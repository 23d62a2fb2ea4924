"""Run a program on the workers of this process.

A program is a function of the worker: it builds dataflows, and may step the worker itself. When it returns, inputs that
it has left open are closed, and the worker steps until its dataflows are complete (`Worker.complete`). It then sends
its farewell and waits for those of its peers, so that no process ends while another still needs it.

A process with one worker runs it in the calling thread. With several workers, each has its own thread and the caller
waits; Ctrl-C reaches all of them. When any worker raises, all others end with `PeerFailed`. The process in which it
happened raises the error itself, with a note of the worker if the process has several.

A program may call `sys.exit`. With a status other than 0 the run fails with this status. With 0 the worker leaves
early: the run succeeds if all other workers end within `LEAVING_SECONDS` and the program had closed its inputs, or if
they leave, too. Otherwise their results lack this worker's share, so the run fails and names the worker.

>>> execute_directly(lambda worker: (worker.index, worker.peers))
(0, 1)
"""

from __future__ import annotations

import time as clock
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread
from traceback import walk_tb
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from timely.arguments import check_functions
from timely.closing import close_all
from timely.communication.allocator import Allocator, broadcast
from timely.communication.message import Failure, Goodbye
from timely.communication.thread import thread_allocators
from timely.config import Config
from timely.data.container import records
from timely.errors import BuildError, ConfigError, OperatorError, PeerFailed, ShapeError, TransportError
from timely.interruption import interruption, no_interrupt_lost
from timely.observe.activity import CONNECTING, PARTING
from timely.observe.notices import notify, numbered
from timely.run.answering import answer_looks
from timely.run.environment import report_unknown_variables
from timely.run.failure import THREADS_SECONDS, describe, install_hook
from timely.run.memory import keep_pieces
from timely.run.signals import report_on_signal, was_asked_to_end
from timely.run.waiting import progress_line
from timely.worker.standstill import SECONDS, engaged
from timely.worker.status import running

if TYPE_CHECKING:
    from timely.dataflow.stream import Scope, Stream
    from timely.worker.worker import Worker

Result = TypeVar("Result")
Build = TypeVar("Build", bound=Callable[..., Any])

LEAVING_SECONDS = 2.0
"""How long a worker whose program called `sys.exit(0)` waits for the others to end."""

_NAMING = (OperatorError, PeerFailed, ShapeError, TransportError)
"""Errors that name the worker or process that they are about."""

_runs: defaultdict[str, count[int]] = defaultdict(count)
"""How often the workers of a run have been started, so that messages of an earlier start are refused."""

around: Callable[[Any], Any] = lambda build: build  # noqa: E731
"""A function that every program passes through before it runs; `timely.run.drawing` replaces it to draw dataflows."""


def execute(build: Callable[[Worker], Result], config: Config | None = None) -> list[Result]:
    """Run `build` on every worker of this process; return its results in order of the workers.

    By default the configuration comes from the environment, which `timely run` sets; otherwise there is one worker. All
    processes of a cluster must call this function equally often. Raises ConfigError if `config` is not a configuration.

    >>> execute(lambda worker: worker.index, Config(workers=3))
    [0, 1, 2]
    """
    install_hook()
    check_functions("execute", build=build)
    if not (config is None or isinstance(config, Config)):
        raise ConfigError(f"execute() takes a Config, such as Config(workers=2), not {config!r:.80}")
    report_on_signal()
    keep_pieces()
    settled = Config.from_environ() if config is None else config
    if config is None:
        report_unknown_variables(settled)
    build = around(build)
    if settled.processes > 1:
        settled = replace(settled, generation=f"{settled.generation}.{next(_runs[settled.generation])}")
    else:
        settled = replace(settled)  # the workers of one run are those that have one configuration (`run_of`)
    # Before the workers connect, which may take long: one can look at what they wait for.
    answer_looks(settled)
    if any(each is not None for each in (settled.live, settled.metrics, settled.telemetry)):
        from timely.run.live import begin_live

        begin_live(settled)  # before the workers listen, for this may fail
    allocators = local_allocators(settled)
    with no_interrupt_lost(), _stall_watch(settled), progress_line(settled, build), _profile(settled) as accounted:
        if len(allocators) == 1:
            return [run(allocators[0], accounted(build), settled)]
        return _run_threads(allocators, accounted(build), settled)


def execute_from_args(arguments: Sequence[str], build: Callable[[Worker], Result]) -> list[Result]:
    """Run `build` as configured by the options `-w`, `-n`, `-p` and `-h` in `arguments`; return what `execute` returns.

    The environment supplies the rest; see `Config.from_args`. Raises ConfigError as that does, and if the program is
    given first.

    >>> execute_from_args(["-w", "2"], lambda worker: f"worker {worker.index} of {worker.peers}")
    ['worker 0 of 2', 'worker 1 of 2']
    """
    install_hook()
    if callable(arguments):
        raise ConfigError("execute_from_args() takes the arguments first: execute_from_args(sys.argv[1:], program)")
    config, _ = Config.from_args(arguments)
    report_unknown_variables(config)
    return execute(build, config)


def execute_directly(build: Callable[[Worker], Result]) -> Result:
    """Run `build` on one worker in this thread, regardless of the environment; return its result.

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
    """Return the records of the stream that `program(scope)` returns, after one worker has run it to completion.

    For doctests and first steps.

    >>> example(lambda scope: scope.to_stream(range(3)).map(lambda x: 10 * x))
    [0, 10, 20]
    """
    check_functions("example", program=program)
    found: list[Any] = []

    def build(worker: Worker) -> None:
        with worker.dataflow("example") as scope:
            made = program(scope)
            if hasattr(made, "scope") and hasattr(made, "keys"):
                shown = "a collection: differential.example() shows its records"
                raise BuildError(f"the program of an example must return a stream, but returned {shown}")
            if not hasattr(made, "inspect_batch"):
                raise BuildError(f"the program of an example must return a stream, but returned {made!r:.80}")
            made.inspect_batch(lambda time, batch: found.extend(records(batch)))

    execute_directly(build)
    return found


def local_allocators(config: Config) -> Sequence[Allocator]:
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
    """Yield a function that makes a program's workers keep accounts, if configured, and print these at the end."""
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
    """Run one worker to its end, in this thread; its peers are notified however it ends.

    If the program fails, `failed` is called with the error before the connections are closed, which may take a while.
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
                for dataflow in worker.dataflows:
                    if dataflow.loss and worker.peers == 1:  # the program has caught its error, and nobody waits for it
                        worker.drop_dataflow(dataflow)
                worker.close_inputs()
                worker.complete()
                with worker.activity.during(PARTING):
                    _exchange_farewells(worker, allocator)
                return result
    except PeerFailed:
        raise
    except BaseException as error:
        stop = interruption(error)
        failed(stop or error)
        # The cause is `error`; an error while notifying the peers must not hide it.
        with suppress(Exception):
            broadcast(allocator, Failure(allocator.index, describe(stop or error)))
        if stop is not None:
            raise stop from None
        raise
    finally:
        close_all([worker.close, allocator.close])
    raise left


def _leave(worker: Worker, allocator: Allocator, left: SystemExit) -> None:
    """Wait for the other workers to end after `sys.exit(0)`; raise `SystemExit` with a message if this was too early.

    Meanwhile this worker continues its dataflows, since others may need its progress; unless the exit was raised inside
    one.
    """
    end = clock.monotonic() + LEAVING_SECONDS
    if not any(_is_of_a_dataflow(frame) for frame, _ in walk_tb(left.__traceback__)):
        lacks_share = worker.close_inputs()
        broadcast(allocator, Goodbye(allocator.index, worker.built, has_left=True))
        while clock.monotonic() < end:
            if not worker.step_or_park(0.05):
                worker.standstill.park(0.05)
            if len(allocator.farewells) == allocator.peers - 1 and not allocator.has_unsent:
                if lacks_share and not all(farewell.has_left for farewell in allocator.farewells.values()):
                    break
                return
    others = [peer for peer in range(worker.peers) if peer != worker.index and peer not in allocator.farewells]
    early = f"before {numbered('worker', others, 4)} had ended" if others else "without closing its inputs"
    raise SystemExit(
        f"timely: worker {worker.index} called sys.exit(0) {early}, so the results lack its share; return from the "
        "program instead, or have all workers exit"
    ) from left


def _is_of_a_dataflow(frame: FrameType) -> bool:
    """Return whether a frame of a traceback belongs to an operator or to code that runs operators."""
    return str(frame.f_globals.get("__name__")).startswith(("timely.dataflow.", "differential."))


def _exchange_farewells(worker: Worker, allocator: Allocator) -> None:
    """Send a farewell to all peers, and wait for theirs and until all messages have left, so that none is lost.

    Raises `ShapeError` if a peer has built more dataflows, since it can never complete them without this worker.
    """
    _refuse_more(worker, enumerate(worker.shapes.announced))
    broadcast(allocator, Goodbye(allocator.index, worker.built))
    while True:
        worker.take_in()
        _refuse_more(worker, enumerate(worker.shapes.announced))
        if len(allocator.farewells) == allocator.peers - 1 and not allocator.has_unsent:
            break
        worker.standstill.park(None)
    _refuse_more(worker, [(peer, goodbye.dataflows) for peer, goodbye in allocator.farewells.items()])


def _refuse_more(worker: Worker, built: Iterable[tuple[int, int]]) -> None:
    """Raise `ShapeError` if a peer has built more dataflows than this worker, which builds no more."""
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
            if isinstance(error, Exception) and not isinstance(error, _NAMING):
                allocator = allocators[position]
                error.add_note(f"the program failed on worker {allocator.index} of {allocator.peers}")
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
        for thread in threads:  # not by outcomes: a signal may have come between the arrival of one and its recording
            # Only what has been started can be joined.
            if thread.ident is not None:
                thread.join(max(0.0, deadline - clock.monotonic()))
        raise
    errors = [error for _, _, error in outcomes if error is not None]
    if errors:
        # The thread that failed may still be closing its connections while those that ended because of it are done.
        raise next((error for error in [*errors, *causes] if not isinstance(error, PeerFailed)), errors[0])
    return [result for _, result, _ in sorted(outcomes, key=lambda outcome: outcome[0])]  # type: ignore[misc]


def _collect(ended: SimpleQueue[Outcome[Result]], outcomes: list[Outcome[Result]], expected: int) -> None:
    """Wait for the threads; after the first error, only for a limited time."""
    deadline: float | None = None
    while len(outcomes) < expected:
        try:
            outcome = ended.get(timeout=None if deadline is None else max(0.0, deadline - clock.monotonic()))
        except Empty:
            return
        outcomes.append(outcome)
        if outcome[2] is not None and deadline is None:
            deadline = clock.monotonic() + THREADS_SECONDS
