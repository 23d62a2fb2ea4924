"""Start the processes of a cluster on this machine, show what they print, and end them together.

The launcher is one loop over the children's output, their exits and its own signals. The first child that fails ends
the rest: they get SIGTERM, and SIGKILL if they are still there `GRACE_SECONDS` later. A child that ends with
`PEER_FAILED` is an echo: its peer is the one to tell, so the launcher waits for that one, which first gives its own
threads time to end.

A run that is asked to end has `CLEANUP_SECONDS` for what programs do then: after SIGINT nothing else is sent meanwhile,
unless it comes again. SIGQUIT leaves `TERMINATE_SECONDS`, like a SIGINT that comes again.

Signals are noted from before the directory of the sockets is made until after it is removed: whichever ends a run, it
does so in order.

Children never outlive it. It ends those it started, by process id, and holds a pipe that they watch, for the case that
the launcher itself is killed.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TextIO
from uuid import uuid4

from timely.config import Config, check_address, is_loopback, split_tcp
from timely.errors import ConfigError, TransportError
from timely.failure import FAILED, PEER_FAILED, REPORT_VARIABLE, THREADS_SECONDS
from timely.large_pages import with_large_pages
from timely.launched import LIFELINE_VARIABLE
from timely.terminal import Lines, Terminal

GRACE_SECONDS = 3.0
ECHO_SECONDS = THREADS_SECONDS + 2.0
TERMINATE_SECONDS = 1.0
CLEANUP_SECONDS = 10.0
DRAIN_SECONDS = 0.5
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_BLOCKED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1)
_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""How many threads of their own libraries start; NumPy's linear algebra does so when it is imported."""


class Child:
    """A process of the cluster."""

    def __init__(self, index: int, process: subprocess.Popen[bytes], report: Path) -> None:
        self.index = index
        self.process = process
        self.report = report
        self.status: int | None = None

    def send(self, signum: int) -> None:
        """Send a signal, unless the child has ended."""
        if self.status is None:
            self.process.send_signal(signum)


class Launcher:
    """Runs `config.processes` children with the given Python arguments, in `directory` for their sockets.

    The numbers of the signals that it heeds come from `ear`.
    """

    def __init__(self, config: Config, arguments: Sequence[str], directory: Path, ear: socket.socket) -> None:
        self._config = config
        self._arguments = arguments
        self._directory = directory
        self._ear = ear
        self._children: list[Child] = []
        self._lines: list[Lines] = []
        self._selector = selectors.DefaultSelector()
        self._outputs = (Terminal(_unbuffered(sys.stdout)), Terminal(_unbuffered(sys.stderr)))
        self._status: int | None = None
        self._echo: tuple[Child, float] | None = None
        self._deadlines: list[tuple[float, int]] = []

    def run(self) -> int:
        """Start the children and look after them until all have ended; return the exit status."""
        self._selector.register(self._ear, selectors.EVENT_READ)
        try:
            self._read(0.0)
            if self._status is None:
                self._start()
                while any(child.status is None for child in self._children):
                    self._turn()
                self._drain()
        finally:
            for child in self._children:
                child.send(signal.SIGKILL)
                child.process.wait()
            self._selector.close()
        return self._status or 0

    def _start(self) -> None:
        # Blocked signals are inherited: a child takes them when it is ready to end in order.
        signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            lifeline, self._held = os.pipe()
            for index in range(self._config.processes):
                self._start_child(index, lifeline)
            os.close(lifeline)
        except OSError as error:
            raise TransportError(
                f"cannot start process {len(self._children)} of {self._config.processes}: {error.strerror}; start "
                "fewer, or allow more files and processes ('ulimit -n', 'ulimit -u')"
            ) from None
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)

    def _start_child(self, index: int, lifeline: int) -> None:
        report = self._directory / f"report.{index}"
        environ = with_share_of_cores(with_large_pages(_with_our_packages(os.environ)), self._config.processes)
        environ |= replace(self._config, process=index).to_environ()
        environ |= {LIFELINE_VARIABLE: str(lifeline), REPORT_VARIABLE: str(report), "PYTHONUNBUFFERED": ""}
        process = subprocess.Popen(
            [sys.executable, "-P", *self._arguments],
            env=environ,
            stdin=None if index == 0 else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline,),
        )
        self._children.append(Child(index, process, report))
        for source, terminal in zip((process.stdout, process.stderr), self._outputs):
            assert source is not None
            lines = Lines(b"[%d] " % index, terminal)
            self._lines.append(lines)
            self._selector.register(source, selectors.EVENT_READ, (lines, source))

    def _turn(self) -> None:
        """Wait for something to happen, and act on it."""
        self._read(0.1)
        now = clock.monotonic()
        ended = [child for child in self._children if child.status is None and child.process.poll() is not None]
        for child in ended:
            child.status = child.process.returncode
        while ended and self._read(0.0) and clock.monotonic() < now + DRAIN_SECONDS:
            pass  # what a child said comes before what is said about it
        for child in ended:
            self._ended(child, now)
        if self._echo is not None and (now >= self._echo[1] or self._stopped()):
            self._fail(self._echo[0], now)
        for deadline in [deadline for deadline in self._deadlines if now >= deadline[0]]:
            self._deadlines.remove(deadline)
            self._signal_all(deadline[1])

    def _read(self, timeout: float) -> bool:
        """Take in output and signals; return whether there were any."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            if key.fileobj is self._ear:
                for signum in self._ear.recv(256):
                    if signum in _FORWARDED:
                        self._signalled(signum)
                    elif signum == signal.SIGUSR1:
                        self._signal_all(signum)
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

    def _drain(self) -> None:
        """Read what the children left in their pipes; whatever else holds these open is not waited for.

        At least twice: all that is left is read at once, and then the end.
        """
        end = clock.monotonic() + DRAIN_SECONDS
        reads = 0
        while len(self._selector.get_map()) > 1 and (reads < 2 or clock.monotonic() < end):
            self._read(0.05)
            reads += 1
        if self._status is None and self._echo is not None:
            self._fail(self._echo[0], end)
        os.close(self._held)

    def _ended(self, child: Child, now: float) -> None:
        if child.status == 0 or self._status is not None:
            return
        if child.status == PEER_FAILED:
            self._echo = self._echo or (child, now + ECHO_SECONDS)
        else:
            self._fail(child, now)

    def _fail(self, child: Child, now: float) -> None:
        """Make this child's failure the outcome, and end the others."""
        assert child.status is not None
        self._echo = None
        self._status = child.status if child.status > 0 else 128 - child.status
        stopped = self._stopped()
        told = [f"process {each.index} is stopped (SIGSTOP or SIGTSTP)" for each in stopped]
        self._say("; ".join([self._explain(child, child.status), *told]))
        self._signal_all(signal.SIGTERM)
        for each in stopped:
            each.send(signal.SIGCONT)
        self._deadlines = [(now + GRACE_SECONDS, signal.SIGKILL)]

    def _stopped(self) -> list[Child]:
        """Return the children that were stopped, and so cannot tell why others miss them."""
        return [child for child in self._children if child.status is None and _is_stopped(child.process.pid)]

    def _explain(self, child: Child, status: int) -> str:
        if status < 0:
            return f"process {child.index} was killed by {_signal_name(-status)}"
        if status == PEER_FAILED and child.report.exists():
            return f"process {child.index}: {child.report.read_text()}"
        return f"process {child.index} ended with status {status}"

    def _signalled(self, signum: int) -> None:
        """Pass a signal on to the children, and see that they heed it: at once, if it interrupts what ends already."""
        now = clock.monotonic()
        end = now + CLEANUP_SECONDS
        if self._status is None:
            self._status = 128 + signum
        if signum == signal.SIGINT and not self._deadlines:
            self._signal_all(signal.SIGINT)
            self._deadlines = [(end, signal.SIGTERM), (end + TERMINATE_SECONDS, signal.SIGKILL)]
        elif signum in (signal.SIGINT, signal.SIGQUIT):
            self._signal_all(signal.SIGTERM)
            self._deadlines = [(now + TERMINATE_SECONDS, signal.SIGKILL)]
        else:
            self._signal_all(signal.SIGTERM)
            self._deadlines = self._deadlines or [(end, signal.SIGKILL)]

    def _unwritable(self, trouble: OSError, now: float) -> None:
        """End the children, for what they print is lost."""
        if isinstance(trouble, BrokenPipeError):
            self._signalled(signal.SIGPIPE)
            return
        self._status = FAILED
        self._say(f"cannot write output: {trouble.strerror}")
        self._signal_all(signal.SIGTERM)
        self._deadlines = [(now + GRACE_SECONDS, signal.SIGKILL)]

    def _signal_all(self, signum: int) -> None:
        for child in self._children:
            child.send(signum)

    def _say(self, text: str) -> None:
        """Print a line of the launcher's own, after what the children have printed so far."""
        self._outputs[1].write(Lines(b"", self._outputs[1]), f"timely: {text}\n".encode(errors="backslashreplace"))


def _is_stopped(pid: int) -> bool:
    """Return whether a child was stopped by a signal, and not continued."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def _signal_name(signum: int) -> str:
    """Return the name of a signal; those between the first and the last of the real-time ones have none."""
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"


def _unbuffered(stream: TextIO | None) -> IO[bytes] | None:
    """Return an output that keeps nothing back to be written at the end; none where it is closed."""
    if stream is None:
        return None
    stream.flush()
    return open(stream.fileno(), "wb", buffering=0, closefd=False)


def _take_closed_descriptors() -> None:
    """Take the numbers of standard input and output where these are closed, that nothing else gets them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _is_heeded(signum: int) -> bool:
    """Return whether a signal is not ignored, as it is under `nohup`: then children ignore it too."""
    return signal.getsignal(signum) is not signal.SIG_IGN


def _note(signum: int, frame: object) -> None:
    """Do nothing: the number of the signal is read from the wakeup socket."""


@contextmanager
def _signals_noted() -> Iterator[socket.socket]:
    """Yield a socket from which the numbers of the signals that come meanwhile are read; they do nothing else."""
    ear, hand = socket.socketpair()
    hand.setblocking(False)
    ear.setblocking(False)
    noted = (*filter(_is_heeded, _FORWARDED), signal.SIGUSR1, signal.SIGCHLD)
    waker = signal.set_wakeup_fd(hand.fileno(), warn_on_full_buffer=False)
    former = {signum: signal.signal(signum, _note) for signum in noted}
    try:
        yield ear
    finally:
        for signum, handler in former.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(waker)
        ear.close()
        hand.close()


def launch(config: Config, processes: int, arguments: Sequence[str], addresses: tuple[str, ...] = ()) -> int:
    """Run `processes` children on this machine, in all else as `config` says; return the exit status.

    Their sockets are in a directory that only this user can enter, removed at the end, unless they are to listen at
    `addresses`. Where one of these can be reached from other machines, and there are no keys, the children get keys
    made for this run, in a file in that directory: no list of processes shows them.
    """
    _take_closed_descriptors()
    with _signals_noted() as ear, _private_directory(config.workers) as directory:
        curve_dir = config.curve_dir
        if curve_dir is None and not all(is_loopback(split_tcp(address)[0]) for address in addresses):
            from timely.communication.curve import make_keys

            curve_dir = str(make_keys(str(directory)).parent)
        local = replace(
            config,
            processes=processes,
            process=0,
            addresses=addresses or tuple(f"ipc://{directory}/{index}" for index in range(processes)),
            generation=uuid4().hex[:16],
            curve_dir=curve_dir,
        )
        return Launcher(local, arguments, directory, ear).run()


def _with_our_packages(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which children find this package where this process did.

    They do not look where they are started (`python -P`), for another `timely` may be there, such as the sources of the
    one that is installed; `python -m timely` does.
    """
    root = str(Path(__file__).parents[1])
    changed = dict(environ)
    if root not in sys.path[0 if sys.flags.safe_path else 1 :]:
        changed["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [environ.get("PYTHONPATH")])])
    if sys.flags.safe_path:
        changed["PYTHONSAFEPATH"] = "1"
    return changed


def with_share_of_cores(environ: Mapping[str, str], processes: int, cores: int | None = None) -> dict[str, str]:
    """Return an environment in which the libraries of all processes together start as many threads as there are cores.

    It is left as it is where it says anything about these threads.

    >>> with_share_of_cores({}, processes=4, cores=8)["OPENBLAS_NUM_THREADS"]
    '2'
    >>> with_share_of_cores({"OMP_NUM_THREADS": "8"}, processes=4, cores=8)
    {'OMP_NUM_THREADS': '8'}
    """
    if any(environ.get(name) for name in _POOLS):
        return dict(environ)
    share = max(1, (cores or _usable_cores()) // processes)
    return {**environ, **dict.fromkeys(_POOLS, str(share))}


def _usable_cores() -> int:
    """Return how many cores the system lets this process run on, where it says so, else how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _private_directory(workers: int) -> Iterator[Path]:
    """Yield a new directory with a name short enough for socket paths in it, which is removed at the end."""
    try:
        directory = Path(tempfile.mkdtemp(prefix="timely-"))
        try:
            check_address(f"ipc://{directory}/0000", workers, protected=False)
        except ConfigError:
            directory.rmdir()
            directory = Path(tempfile.mkdtemp(prefix="timely-", dir="/tmp"))
    except OSError as error:
        raise TransportError(f"cannot make a directory for sockets: {error.strerror}: {error.filename}") from None
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
