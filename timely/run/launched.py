"""Run the user's script as the main program, in a process that `timely run` supervises.

The launcher starts `python -P -m timely.run.launched SCRIPT ARGS...`. Signals are blocked until their handlers are
installed, so Ctrl-C in the first moments leaves no traceback. A terminal sends Ctrl-C to all processes and the launcher
passes it on, so a second one that follows at once counts as the same.

When a handler runs, the process has begun to end in order, and leaves a note of this for the launcher (`notes`). The
interpreter runs handlers between two instructions, so a process that is stopped, or inside compiled code, leaves none.

The launcher holds the other end of the pipe `TIMELY_LIFELINE`. When that closes, the launcher is dead, and this process
ends too. If this process is stopped then, the system continues it (on Linux), so that it notices.
"""

from __future__ import annotations

import io
import os
import runpy
import shutil
import signal
import sys
import time as clock
from math import inf
from pathlib import Path
from threading import Thread
from types import FrameType, ModuleType, TracebackType

from timely.communication.notes import REPORT_VARIABLE, begin_to_end, declare_prefixes
from timely.interruption import send_again
from timely.live.output import empty_standard_output, has_no_reader
from timely.origin import is_ours
from timely.run.failure import fail, install_hook
from timely.run.signals import report_on_signal
from timely.worker.garbage import keep_short

LIFELINE_VARIABLE = "TIMELY_LIFELINE"
PREFIX_VARIABLE = "TIMELY_PREFIX"
"""Present if the launcher puts the number of the process in front of each line of its standard output."""
INTERRUPTED = 128 + signal.SIGINT
LOST_READER = 141
"""The exit status if whoever read standard output has ended: that of a program which SIGPIPE has ended."""
_SAME_INTERRUPT_SECONDS = 1.0
_ORPHAN_SECONDS = 3.0
_ENDING = (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
_WITHOUT_LAUNCHER = (signal.SIGTERM, signal.SIGHUP)
_SET_SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG


def run_target(target: list[str], is_module: bool, safe_path: bool) -> int:
    """Run a script or module with its arguments as `python` would; return the exit status.

    `target` is the path or module name, followed by the arguments. Unless `safe_path`, imports also search the
    directory of the script, or the current directory for a module. `SystemExit` passes through.
    """
    sys.argv = list(target)
    if not safe_path:
        sys.path.insert(0, os.getcwd() if is_module else str(Path(target[0]).resolve().parent))
    install_hook()
    report_on_signal()
    if hasattr(signal, "SIGUSR1"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})  # the command blocks it while it starts
    try:
        if is_module:
            runpy.run_module(target[0], run_name="__main__", alter_sys=True)
        else:
            _run_script(target[0])
    except BaseException as raised:
        error = _of_a_handler(raised)
        if isinstance(error, KeyboardInterrupt):
            return INTERRUPTED
        if isinstance(error, SystemExit):
            raise error from None
        if _is_for_want_of_a_reader(error):
            empty_standard_output()
            return LOST_READER
        error.__traceback__ = _from_user_code(error.__traceback__)
        if isinstance(error, ImportError) and error.__traceback__ is None:
            return fail(f"timely: {error}")  # there is no such program, such as a package without `__main__`
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _of_a_handler(error: BaseException) -> BaseException:
    """Return what a signal handler has raised, if that is why there is an error, or else the error.

    Python 3.11 raises RuntimeError when a descriptor's `__set_name__` has raised anything, while a class is made.
    """
    cause = error.__cause__
    is_wrapped = isinstance(error, RuntimeError) and isinstance(cause, (KeyboardInterrupt, SystemExit))
    return cause if is_wrapped and cause is not None else error


def _is_for_want_of_a_reader(error: BaseException) -> bool:
    """Return whether a program has ended because nobody reads its standard output."""
    return isinstance(error.__cause__ or error, BrokenPipeError) and has_no_reader(sys.stdout)


def _run_script(path: str) -> None:
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    module = ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _from_user_code(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames through which the script was started."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not is_ours(file) and not file.startswith("<frozen runpy"):
            return trace
        trace = trace.tb_next
    return None


def write_lines() -> None:
    """Flush the program's output after each line, so that lines leave whole even if they are printed in pieces."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(line_buffering=True)


def handle_signals(*, is_supervised: bool = True) -> None:
    """Make SIGINT raise `KeyboardInterrupt` once, `_ENDING` end the program in order, and SIGUSR1 print a report.

    Signals that are ignored when the process starts, as under `nohup`, stay ignored. Where no launcher supervises this
    process, SIGQUIT and any later signal end it at once, because nothing else does.
    """
    interrupts = Interrupts(is_supervised)
    for signum in (signal.SIGINT, *(_ENDING if is_supervised else _WITHOUT_LAUNCHER)):
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, interrupts.interrupt if signum == signal.SIGINT else interrupts.terminate)
    sys.unraisablehook = interrupts.send_ignored_again
    report_on_signal()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, *_ENDING, signal.SIGUSR1})


class Interrupts:
    """Turns signals into exceptions; several that arrive together raise one.

    If Python handles a signal inside a destructor, such as that of a received frame, it ignores the exception. The
    signal is then sent again, a moment later. What comes until then does nothing: the function that starts to send it
    must not raise either.
    """

    def __init__(self, is_supervised: bool = True) -> None:
        self._is_supervised = is_supervised
        self._last = -inf
        self._is_starting = False
        self._report_ignored = sys.unraisablehook

    def interrupt(self, signum: int, frame: FrameType | None) -> None:
        """Raise `KeyboardInterrupt`, unless the signal follows another at once."""
        if self._is_starting:
            return
        begin_to_end()
        now = clock.monotonic()
        repeated = now < self._last + _SAME_INTERRUPT_SECONDS
        self._last = now
        if not repeated:
            raise KeyboardInterrupt

    def send_ignored_again(self, ignored: sys.UnraisableHookArgs) -> None:
        """Send the signal again whose exception was ignored; report all other ignored exceptions."""
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            self._is_starting = True
            self._last = -inf
            send_again(signal.SIGINT, self._may_raise)
        elif issubclass(ignored.exc_type, SystemExit):
            self._is_starting = True
            signal.signal(signal.SIGTERM, self.terminate)
            send_again(signal.SIGTERM, self._may_raise)
        else:
            self._report_ignored(ignored)
        self._is_starting = False

    def _may_raise(self) -> bool:
        return not self._is_starting

    def terminate(self, signum: int, frame: FrameType | None) -> None:
        """Raise `SystemExit`. Later signals of this kind do nothing if a launcher supervises this process.

        They are not ignored (SIG_IGN), because Python complains about a signal that came before and finds no handler.
        """
        if self._is_starting:
            return
        begin_to_end()
        self._last = clock.monotonic()
        for ending in _ENDING if self._is_supervised else _WITHOUT_LAUNCHER:
            if signal.getsignal(ending) is not signal.SIG_IGN:
                signal.signal(ending, self._end_at_once)
        raise SystemExit(128 + signum)

    def _end_at_once(self, signum: int, frame: FrameType | None) -> None:
        """Do nothing, as the process is ending already; without a launcher, end it unless the signal is an echo."""
        if not self._is_supervised and clock.monotonic() >= self._last + _SAME_INTERRUPT_SECONDS:
            signal.signal(signum, signal.SIG_DFL)
            os.kill(os.getpid(), signum)


def wake_when_orphaned() -> None:
    """Make the system continue this process when the launcher dies; otherwise a stopped process would stay forever."""
    if sys.platform == "linux":
        import ctypes  # not at the top: the command imports this module too, and must start quickly

        ctypes.CDLL(None).prctl(_SET_SIGNAL_OF_PARENTS_DEATH, int(signal.SIGCONT))


def watch_lifeline(descriptor: int, directory: Path) -> None:
    """End this process when the other end of the pipe is closed, and remove the launcher's directory in its place."""

    def watch() -> None:
        os.read(descriptor, 1)
        shutil.rmtree(directory, ignore_errors=True)
        os.kill(os.getpid(), signal.SIGTERM)
        clock.sleep(_ORPHAN_SECONDS)
        os._exit(128 + signal.SIGTERM)

    Thread(target=watch, name="timely lifeline", daemon=True).start()


def main() -> int:
    """Run the program that the launcher names in `sys.argv`."""
    try:
        wake_when_orphaned()
        watch_lifeline(int(os.environ.pop(LIFELINE_VARIABLE)), Path(os.environ[REPORT_VARIABLE]).parent)
        if os.environ.pop(PREFIX_VARIABLE, None):
            declare_prefixes()
        handle_signals()
        write_lines()
        keep_short()
        is_module = sys.argv[1] == "-m"
        safe_path = bool(os.environ.get("PYTHONSAFEPATH"))  # not `sys.flags`: the launcher always passes -P
        return run_target(sys.argv[2:] if is_module else sys.argv[1:], is_module, safe_path)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
