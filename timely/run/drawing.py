"""Draw the dataflows of a script without running them: `timely viz`.

The script runs until its first worker is first stepped, or the program returns. By then it has built its
dataflows, and may have sent to their inputs, but no operator has run. A script that calls `execute` several times is
drawn as far as the first call.

A session builds a dataflow for each of its definitions while it runs. So a script with a session runs to its end, with
all that it reads and writes, and the dataflows that its first worker had are drawn.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from timely.errors import ConfigError
from timely.live.output import printing
from timely.live.picture import dot, save
from timely.live.shape import Diagram, shape_of
from timely.observe.notices import notify
from timely.run import execute
from timely.run.launched import run_target

if TYPE_CHECKING:
    from timely.worker.worker import Worker


SESSIONS = "differential.session"
"""The package whose programs build dataflows while they run."""


class _HasBuilt(SystemExit):
    """Ends the program, as `sys.exit(0)` does."""


def draw(output: str | None, target: list[str], is_module: bool) -> int:
    """Draw what a script or module builds, to a file or as text to stdout; return the exit status."""
    shapes: list[Diagram] = []
    stopped = threading.Event()
    if output is None:
        _note_output(target, is_module)

    def around(build: Callable[[Worker], Any]) -> Callable[[Worker], Any]:
        if (build.__module__ or "").startswith(SESSIONS):
            return _watched(build, shapes)

        def program(worker: Worker) -> None:
            def stop() -> NoReturn:
                stopped.set()
                if worker.index == 0 and not shapes:  # others have the same, and are stepped again
                    shapes.extend(map(shape_of, worker.dataflows))
                raise _HasBuilt(0)

            # `step`, `step_while` and `step_or_park` all come here.
            worker._step = stop  # type: ignore[method-assign]
            build(worker)
            stop()

        return program

    before, execute.around = execute.around, around
    try:
        with nullcontext() if output is not None else redirect_stdout(sys.stderr):  # the drawing alone is printed there
            status = run_target(target, is_module, bool(sys.flags.safe_path))
    except SystemExit:  # ours, or what the script makes of it
        if not stopped.is_set() and not shapes:
            raise
        status = 0
    finally:
        execute.around = before
    if status and not shapes:
        return status
    if not shapes:
        raise ConfigError(f"{target[0]} builds no dataflow before it steps a worker, so there is nothing to draw")
    if output is None:
        with printing(encoding="utf-8", errors="surrogateescape"):
            print(dot(shapes))
    else:
        save(shapes, Path(output))
    return 0


def _note_output(target: list[str], is_module: bool) -> None:
    """Print a note about an option `-o FILE` that follows the script, to which it goes."""
    given = next((at for at, text in enumerate(target) if at and text in ("-o", "--output")), None)
    if given is None:
        return
    option = " ".join(target[given : given + 2])
    program = f"-m {target[0]}" if is_module else target[0]
    notify(f"{option} is passed to the script; to draw into this file: timely viz {option} {program}")


def _watched(build: Callable[[Worker], Any], shapes: list[Diagram]) -> Callable[[Worker], Any]:
    """Return a program that does the same, and adds the shapes of the first worker's dataflows before each step."""

    def program(worker: Worker) -> Any:
        step, drawn = worker._step, {-1}

        def drawn_step() -> Any:
            for dataflow in worker.dataflows:
                if dataflow.index not in drawn:
                    drawn.add(dataflow.index)
                    shapes.append(shape_of(dataflow))
            return step()

        if worker.index == 0:
            worker._step = drawn_step  # type: ignore[method-assign]
        return build(worker)

    return program
