"""Start the processes of a cluster on this machine, show their output, and end them together.

The launcher is one loop over the output of its children, their exits, and its own signals. The first child that fails
ends the others: they receive SIGTERM, and SIGKILL if they still exist `GRACE_SECONDS` later. A child that ends because
of a peer is an echo: the peer reports the cause. So the launcher waits for that peer, which first gives its own threads
time to end.

When a run is asked to end, programs have `CLEANUP_SECONDS` to clean up. After SIGINT nothing else is sent in that time,
unless SIGINT comes again. SIGQUIT, or a second SIGINT, leaves `TERMINATE_SECONDS`.

Only children that use this time have it. A child reports when it begins to end in order (`notes`). One that has not
done so `ANSWER_SECONDS` after the request is stopped or inside compiled code, and is ended by SIGTERM, and a second
later by SIGKILL. So a run ends within 5 s unless Python code of the program is cleaning up. Stopped children are
continued, so that they can react.

The launcher notes the fate of a child that has ended with status 0, or has been stopped for `STOPPED_OF_TIMEOUT` of the
peer timeout. So peers that wait to meet it can report it at once. When all remaining children are stopped, nobody
waits for them, and the launcher ends the run itself.

While nobody reads an output, the launcher waits, and the children wait in their own pipes. Once the run has been asked
to end, an output that has accepted nothing for `UNREAD_SECONDS` is given up: the rest of the text is discarded.

Signals are recorded from before the directory of the sockets is created until after it is removed, so every signal that
ends a run does so in order.

Children never outlive the launcher. It ends the children that it started, by process id, and holds a pipe that they
watch in case the launcher itself is killed.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import socket
import sys
import time as clock
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple, TextIO
from uuid import uuid4

from timely.communication.notes import Notes
from timely.config import Config
from timely.errors import TransportError
from timely.observe.notices import QUIET_SECONDS, is_terminal
from timely.run.child import STOPPED, Child
from timely.run.directory import run_directory
from timely.run.failure import FAILED, THREADS_SECONDS
from timely.run.restart import RunOutcome, with_restarts
from timely.run.terminal import Lines, Raw, Terminal

GRACE_SECONDS = 3.0
ECHO_SECONDS = THREADS_SECONDS + 2.0
ECHO_OF_STOPPED_SECONDS = 1.0
"""The same if a child is stopped, since it cannot report anything."""
TERMINATE_SECONDS = 1.0
CLEANUP_SECONDS = 10.0
ANSWER_SECONDS = 2.0
DRAIN_SECONDS = 0.5
UNREAD_SECONDS = 1.0
STOPPED_OF_TIMEOUT = 0.3
_LONGEST_TURN = 1.0
"""If a turn took longer, the launcher itself was stopped, and cannot know for how long children were."""
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_BLOCKED = (*_FORWARDED, signal.SIGUSR1)
_LEFT_EARLY = "has ended with status 0 before it met the others; all processes must call execute equally often"


class Deadline(NamedTuple):
    """When to send a signal to the children: to all, or only to those that have not begun to end in order."""

    at: float
    signum: int
    spares_those_ending: bool


class Launcher:
    """Runs `config.processes` children with the given Python arguments and a `directory` for their sockets.

    It reads the numbers of the signals that it receives from the socket `signals`. If `raw`, it passes on their
    standard output byte for byte.
    """

    def __init__(
        self, config: Config, arguments: Sequence[str], directory: Path, signals: socket.socket, raw: bool
    ) -> None:
        self._config = config
        self._arguments = arguments
        self._notes = Notes(directory)
        self._signals = signals
        self._raw = raw
        self._children: list[Child] = []
        self._lines: list[Lines | Raw] = []
        self._selector = selectors.DefaultSelector()
        self._outputs = tuple(Terminal(_unbuffered(stream), self._is_read) for stream in (sys.stdout, sys.stderr))
        self._status: int | None = None
        self._was_asked_to_end = False
        self._has_died = False
        self._echo: tuple[Child, float] | None = None
        self._deadlines: list[Deadline] = []
        self._turned_at = 0.0

    def run(self) -> RunOutcome:
        """Start the children and supervise them until all have ended; return how they did."""
        self._selector.register(self._signals, selectors.EVENT_READ)
        try:
            # Signals may have come before there was anything to end.
            self._read(0.0)
            if self._status is None:
                self._start()
                while any(child.status is None for child in self._children):
                    self._turn()
                self._drain()
        finally:
            # However the loop ended, by an error or an interrupt, no child outlives the launcher.
            for child in self._children:
                child.send(signal.SIGKILL)
                child.process.wait()
            self._selector.close()
        return RunOutcome(self._status or 0, self._has_died)

    def _start(self) -> None:
        # Children inherit blocked signals, and unblock them when they are ready to end in order.
        signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            # Children inherit the end that they read. The launcher alone has the other end, so it closes when the
            # launcher dies, however that happens.
            lifeline, self._held = os.pipe()
            for index in range(self._config.processes):
                self._start_child(replace(self._config, process=index), lifeline)
            os.close(lifeline)
        except OSError as error:
            raise TransportError(
                f"cannot start process {len(self._children)} of {self._config.processes}: {error.strerror}; start "
                "fewer, or allow more files and processes ('ulimit -n', 'ulimit -u')"
            ) from None
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)

    def _start_child(self, config: Config, lifeline: int) -> None:
        child = Child(config, self._arguments, self._notes, lifeline, has_prefixes=not self._raw)
        self._children.append(child)
        output, errors = self._outputs
        prefix = b"[%d] " % child.index
        for source, lines in (
            (child.process.stdout, Raw(output) if self._raw else Lines(prefix, output)),
            (child.process.stderr, Lines(prefix, errors)),
        ):
            assert source is not None
            self._lines.append(lines)
            self._selector.register(source, selectors.EVENT_READ, (lines, source))

    def _turn(self) -> None:
        """Wait for something to happen, and act on it."""
        self._read(0.1)
        now = clock.monotonic()
        ended = [child for child in self._children if child.status is None and child.process.poll() is not None]
        for child in ended:
            child.status = child.process.returncode
        # Only for a while: another process that holds the pipe may go on writing.
        while ended and self._read(0.0) and clock.monotonic() < now + DRAIN_SECONDS:
            pass  # a child's own output comes before the launcher's message about it
        for child in ended:
            self._ended(child, now)
        self._look_for_stopped(now)
        if self._echo is not None and self._status is None:
            child, since = self._echo
            if now >= since + (ECHO_OF_STOPPED_SECONDS if self._stopped() else ECHO_SECONDS):
                self._fail(child, now)
        for deadline in [deadline for deadline in self._deadlines if now >= deadline.at]:
            self._deadlines.remove(deadline)
            for child in self._children:
                if not (deadline.spares_those_ending and child.has_begun_to_end()):
                    child.ask_to_end(deadline.signum)

    def _look_for_stopped(self, now: float) -> None:
        """Record which children have been stopped for long; end a run whose remaining children are all stopped.

        In a run that is ending, stopped children are continued, so that they end.
        """
        was_away = now > self._turned_at + _LONGEST_TURN
        self._turned_at = now
        for child in self._children:
            if not child.is_stopped():
                if child.stopped_at is not None and child.status is None:
                    self._notes.write_fate(child.index, "")
                child.stopped_at = None
            elif child.stopped_at is None or was_away:
                child.stopped_at = now
        running = [child for child in self._children if child.status is None]
        patience = STOPPED_OF_TIMEOUT * self._config.peer_timeout
        stopped = [each for each in running if each.stopped_at is not None and now > each.stopped_at + patience]
        for child in stopped:
            if self._status is None:
                self._notes.write_fate(child.index, f"{STOPPED} and has not met the others")
            else:
                child.ask_to_end(signal.SIGTERM)
        if stopped and stopped == running and self._status is None:
            if self._echo is not None:
                self._fail(self._echo[0], now)
            else:
                self._end_for(FAILED, ["every process that has not ended is stopped"], now)

    def _read(self, timeout: float) -> bool:
        """Process output and signals; return whether there were any."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            if key.fileobj is self._signals:
                self._receive_signals()
                continue
            lines, source = key.data
            data = os.read(key.fd, 1 << 16)
            if data:
                lines.feed(data, clock.monotonic())
            else:
                lines.release(clock.monotonic(), 0.0)
                self._selector.unregister(source)
                source.close()
        now = clock.monotonic()
        for lines in self._lines:
            lines.release(now)
        for terminal in self._outputs:
            if terminal.trouble is not None and self._status is None:
                self._unwritable(terminal.trouble, now)
        return bool(ready)

    def _receive_signals(self) -> None:
        """Act on the signals that have arrived."""
        with suppress(BlockingIOError):  # they were received while an output was not read
            for signum in self._signals.recv(256):
                if signum in _FORWARDED:
                    self._signalled(signum)
                elif signum == signal.SIGUSR1:
                    for child in self._children:
                        child.send(signum)

    def _is_read(self, output: IO[bytes]) -> bool:
        """Wait until an output accepts bytes; return False if nobody reads it and the run has been asked to end."""
        while True:
            patience = UNREAD_SECONDS if self._was_asked_to_end else None
            signals, outputs, _ = select.select([self._signals], [output], [], patience)
            if outputs:
                return True
            if not signals:
                return False
            self._receive_signals()

    def _drain(self) -> None:
        """Read what the children left in their pipes, without waiting for other processes that hold the pipes open.

        Reads at least twice: one read takes all that is left, and the next one finds the end.
        """
        end = clock.monotonic() + DRAIN_SECONDS
        reads = 0
        # The selector keeps the socket of signals, and the outputs that have not ended.
        while len(self._selector.get_map()) > 1 and (reads < 2 or clock.monotonic() < end):
            self._read(0.05)
            reads += 1
        if self._status is None and self._echo is not None:
            self._fail(self._echo[0], end)
        # Last: children take its end for that of the launcher.
        os.close(self._held)

    def _ended(self, child: Child, now: float) -> None:
        if child.status == 0:
            self._notes.write_fate(child.index, _LEFT_EARLY)
        elif self._status is not None:
            return
        elif child.is_echo():
            # Not yet the outcome of the run: the peer that failed has the cause, and ends soon.
            self._echo = self._echo or (child, now)
        else:
            self._fail(child, now)

    def _fail(self, child: Child, now: float) -> None:
        """Make this child's failure the outcome of the run, and end the others."""
        assert child.status is not None
        self._echo = None
        self._has_died = True
        self._end_for(child.status if child.status > 0 else 128 - child.status, [child.describe()], now)

    def _end_for(self, status: int, why: list[str], now: float) -> None:
        """End a run that has failed; print why, and which children are stopped."""
        self._status = status
        self._print("; ".join([*why, *(f"process {each.index} {STOPPED}" for each in self._stopped())]))
        self._ask_to_end(signal.SIGTERM, GRACE_SECONDS, now)

    def _stopped(self) -> list[Child]:
        """Return the children that are stopped, and so cannot report why others miss them."""
        return [child for child in self._children if child.is_stopped()]

    def _signalled(self, signum: int) -> None:
        """Pass a signal on to the children and make sure that they end: at once, if the run was ending already."""
        now = clock.monotonic()
        self._was_asked_to_end = True
        if self._status is None:
            self._status = 128 + signum  # the first cause decides; what happens while a run ends does not change it
        if signum == signal.SIGINT and not self._deadlines:
            self._ask_to_end(signal.SIGINT, CLEANUP_SECONDS, now)
        elif signum in (signal.SIGINT, signal.SIGQUIT):
            self._ask_to_end(signal.SIGTERM, TERMINATE_SECONDS, now)
        elif not self._deadlines:
            self._ask_to_end(signal.SIGTERM, CLEANUP_SECONDS, now)
        else:
            for child in self._children:
                child.ask_to_end(signal.SIGTERM)

    def _ask_to_end(self, signum: int, seconds: float, now: float) -> None:
        """Ask the children to end within `seconds`, or earlier if they do not begin to."""
        for child in self._children:
            # A terminal sends SIGINT to children as well; one that has begun to clean up must not be interrupted.
            if signum != signal.SIGINT or not child.has_begun_to_end():
                child.ask_to_end(signum)
        stronger = [signal.SIGKILL] if signum == signal.SIGTERM else [signal.SIGTERM, signal.SIGKILL]
        # Two rounds: an early one that spares children that have begun to clean up, and a last one that spares none.
        self._deadlines = [
            Deadline(now + wait + TERMINATE_SECONDS * step, each, spares)
            for wait, spares in ((min(ANSWER_SECONDS, seconds), True), (seconds, False))
            for step, each in enumerate(stronger)
        ]

    def _unwritable(self, trouble: OSError, now: float) -> None:
        """End the children, because their output is lost."""
        if isinstance(trouble, BrokenPipeError):
            self._signalled(signal.SIGPIPE)
            return
        self._end_for(FAILED, [f"cannot write output: {trouble.strerror}"], now)

    def _print(self, text: str) -> None:
        """Print a line of the launcher, after what the children have printed so far."""
        self._outputs[1].write(Lines(b"", self._outputs[1]), f"timely: {text}\n".encode(errors="backslashreplace"))


def _unbuffered(stream: TextIO | None) -> IO[bytes] | None:
    """Return an unbuffered output, so that nothing remains to be written at the end; None if it is closed."""
    if stream is None:
        return None
    stream.flush()
    return open(stream.fileno(), "wb", buffering=0, closefd=False)


def _take_closed_descriptors() -> None:
    """Open the standard descriptors that are closed, so that nothing else gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _do_nothing(signum: int, frame: object) -> None:
    """Do nothing: the number of the signal is read from the wakeup socket."""


@contextmanager
def _signals_recorded() -> Iterator[socket.socket]:
    """Yield a socket from which the numbers of arriving signals can be read; the signals have no other effect.

    SIGUSR1, which the command blocks from its first line on, is blocked again before its handler is removed.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    receiver.setblocking(False)
    # If a signal is ignored, as SIGHUP is under `nohup`, children ignore it too.
    wanted = [signum for signum in _FORWARDED if signal.getsignal(signum) is not signal.SIG_IGN]
    recorded = (*wanted, signal.SIGUSR1, signal.SIGCHLD)
    waker = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    former = {signum: signal.signal(signum, _do_nothing) for signum in recorded}
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    try:
        yield receiver
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for signum, handler in former.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(waker)
        receiver.close()
        sender.close()


def launch(
    config: Config,
    processes: int,
    arguments: Sequence[str],
    addresses: tuple[str, ...] = (),
    restarts: int = 0,
    raw: bool = False,
) -> int:
    """Run `processes` children on this machine, otherwise configured by `config`; return the exit status.

    If one of them dies, all end, and are started again, `restarts` times at most. Each line that they write has the
    number of the process in front, but if `raw`, what they write to standard output is passed on byte for byte.

    Unless they listen at `addresses`, their sockets are in a directory that only this user can enter and that is
    removed at the end. Every account on the machine can reach ports, even if other machines cannot. So if there are no
    keys, the children get keys made for this run, in a file in that directory, which no list of processes shows.
    """
    _take_closed_descriptors()
    if config.quiet_seconds is None and is_terminal():
        config = replace(config, quiet_seconds=QUIET_SECONDS)  # the children write into pipes
    if restarts and config.live is not None:
        from timely.live.address import keep_token  # not at the top: the command must start quickly

        keep_token()
    with _signals_recorded() as signals:

        def run() -> RunOutcome:
            with run_directory(config.workers) as directory:
                local = _local(config, processes, addresses, directory)
                return Launcher(local, arguments, directory, signals, raw).run()

        return with_restarts(run, restarts, signals, _FORWARDED)


def _local(config: Config, processes: int, addresses: tuple[str, ...], directory: Path) -> Config:
    """Return the configuration of one run of `processes`, whose sockets or keys are in a directory."""
    curve_dir = config.curve_dir
    if curve_dir is None and addresses:
        from timely.communication.curve import make_keys

        curve_dir = str(make_keys(str(directory)).parent)
    return replace(
        config,
        processes=processes,
        process=0,
        addresses=addresses or tuple(f"ipc://{directory}/{index}" for index in range(processes)),
        generation=uuid4().hex[:16],
        curve_dir=curve_dir,
    )
