"""The option `--live [PORT]` of `timely run`, and the commands that look at jobs and dataflows.

Its port may be left out, and then the next argument is the script. `argparse` cannot tell these apart, so the port is
filled in before it sees the arguments.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any

DEFAULT = "auto"

FLAGS = ("--profile", "--raw")
"""The other options of `timely run` that take no value."""

_PORT = re.compile(r"(\S*:)?\d+")


def add_option(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--telemetry", metavar="URL", help="send metrics and the spans of epochs to an OTLP collector (HTTP) there"
    )
    run.add_argument(
        "--metrics", metavar="PORT", help="serve the metrics of process I to Prometheus, at PORT + I of its machine"
    )
    run.add_argument(
        "--live",
        metavar="PORT",
        help="serve a page that shows what the workers do, to this machine (default port: 8400, or the next free one)",
    )


def checked(text: str) -> str:
    """Return the value of `--live`; raise ConfigError if no page can be served there."""
    from timely.live.address import address_of

    address_of(text)
    return text


def add_commands(commands: Any, draw: Callable[[argparse.Namespace], int]) -> None:
    """Add the commands to those of `timely`; `draw` draws a script."""
    top = commands.add_parser(
        "top",
        help="show in the terminal what a running job does",
        description="Show in the terminal what a job of yours on this machine does, from a second after its workers "
        "have begun until it ends or Ctrl-C; or a job with a page (timely run --live), at the address of that. Jobs of "
        "other users are not found, and their pages show nothing without their token.",
    )
    top.add_argument("--once", action="store_true", help="print once and exit")
    top.add_argument("job", metavar="PID|ADDRESS", nargs="?", help="a process of the job, or the address of its page")
    top.set_defaults(action=_top)

    viz = commands.add_parser(
        "viz",
        help="draw the dataflows of a script without running them",
        description="Draw the dataflows that a script builds before it first steps its worker; there it ends. SVG, PNG "
        "and PDF take Graphviz (dot); SVG is drawn by Node.js where there is no dot. Text for dot takes neither.",
        usage="timely viz [-o FILE] (SCRIPT | -m MODULE) [ARGUMENTS...]",
        allow_abbrev=False,
    )
    viz.add_argument("-o", "--output", metavar="FILE", help="a .svg, .png, .pdf, .dot or .json (default: dot, printed)")
    viz.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="draw those of a module")
    viz.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    viz.set_defaults(action=draw)


def _top(options: argparse.Namespace) -> int:
    from timely.live.top import top

    return top(options.job, options.once)


def completed(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `timely` with the port of `--live`, where it was left out.

    >>> completed(["run", "-n", "2", "--live", "script.py", "--live"])
    ['run', '-n', '2', '--live', 'auto', 'script.py', '--live']
    >>> completed(["run", "--live", "8500", "script.py"])
    ['run', '--live', '8500', 'script.py']
    """
    found = list(arguments)
    place = 1
    while (
        found[:1] == ["run"]
        and place < len(found)
        and found[place].startswith("-")
        and found[place] not in ("-m", "--")
    ):
        option = found[place]
        place += 1
        if option == "--live" and not (place < len(found) and _PORT.fullmatch(found[place])):
            found.insert(place, DEFAULT)
        # `-n2` and `--on=slurm` have theirs in them.
        takes_value = len(option) == 2 or (option.startswith("--") and "=" not in option and option not in FLAGS)
        place += takes_value
    return found
