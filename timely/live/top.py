"""`timely top`: the live view of a job in a terminal, by its page, or without one if it runs on this machine."""

from __future__ import annotations

import sys
import time as clock
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from timely.errors import ConfigError
from timely.live.client import JobView, Mirror, events, looks
from timely.live.jobs import LiveJob, job_of
from timely.live.looking import BYTES, NANOSECONDS, QUEUED, RECEIVED, ROWS, RUNS, SENT
from timely.live.output import printing

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

OPERATORS, HELD, NOTES = 14, 6, 5
"""How many lines of each are shown."""
_FIRST_TICKS = 4
"""After this many ticks there are rates: the first ones only begin to count."""
_TEXTS = ("operator", "does", "frontier", "")
"""The columns that are cut off where a terminal is narrow: numbers and lines of code keep their width."""
_UNITS = ("", "k", "M", "G", "T")


def top(name: str | None, is_once: bool) -> int:
    """Show the job that a process's number or an address names until it ends or Ctrl-C; or once. Return the status."""
    if find_spec("rich") is None:
        raise ConfigError("timely top needs rich: pip install 'timely-dataflow[live]'")
    from rich.console import Console, Group
    from rich.live import Live

    job = job_of(name)
    stream = events(job) if isinstance(job, LiveJob) else looks(job)
    with printing(errors="replace"):
        view, console = JobView(), Console()
        if is_once or not sys.stdout.isatty():
            for event, data in stream:
                if view.take(event, data) and view.ticks >= _FIRST_TICKS and is_once:
                    break
            for part in parts(view):
                console.print(part)
            return 0
        with Live(console=console, screen=True, auto_refresh=False) as shown:
            for event, data in stream:
                if view.take(event, data):
                    shown.update(Group(*parts(view)), refresh=True)
        for part in parts(view):
            console.print(part)
        print("the job has ended")
    return 0


def parts(view: JobView) -> list[RenderableType]:
    """Return what is shown of a job, from top to bottom."""
    from rich.text import Text

    busy = sum(worker[3] for worker in view.workers) / max(1, len(view.workers))
    count = len(view.workers)
    heading = f"{count} worker{'' if count == 1 else 's'}, {_share(busy)} busy, seen for {view.seconds:.0f} s"
    found: list[RenderableType] = [Text(heading, style="bold"), _workers(view)]
    running = {index: flow for index, flow in view.dataflows.items() if not flow.is_over} or view.dataflows
    for index, flow in running.items():
        found.append(Text(_heading(index, flow), style="bold"))
        found.append(_operators(flow, count))
        found += [Text(f"  held by {line}", style="yellow") for line in flow.held[:HELD]]
    for at, process, kind, text in view.notes[-NOTES:]:
        moment = clock.strftime("%H:%M:%S", clock.localtime(at))
        found.append(Text(f"{moment} {kind} (process {process}): {text}", style="yellow"))
    return found


def _heading(index: int, flow: Mirror) -> str:
    latency = ""
    if flow.epochs is not None:
        _, median, most, _ = flow.epochs
        latency = f", epochs: median {_lasting(median)}, 99 % within {_lasting(most)}"
    return f"dataflow {index} {flow.name!r}{' (complete)' if flow.is_over else ''}{latency}"


def _workers(view: JobView) -> Table:
    table = _table("worker", "process", "pid", "busy", "", "records/s", "queued", "does")
    for index, process, pid, busy, records, queued, doing, line, silent in view.workers:
        does = f"no answer for {silent:.0f} s" if silent else f"{doing}, at {line}" if line else doing
        bar = "█" * round(10 * busy)
        _row(table, str(index), str(process), str(pid), _share(busy), bar, _short(records), str(queued), does)
    return table


def _operators(flow: Mirror, workers: int) -> Table:
    table = _table("operator", "time", "in/s", "out/s", "runs/s", "queued", "rows", "bytes", "frontier", "built at")
    numbers = [number for number in range(len(flow.nodes)) if any(flow.totals[number])]
    numbers.sort(key=lambda number: (-flow.rates[number][NANOSECONDS], -flow.totals[number][NANOSECONDS], number))
    for number in numbers[:OPERATORS]:
        node, rates, totals = flow.nodes[number], flow.rates[number], flow.totals[number]
        share = _share(rates[NANOSECONDS] / 1e9 / max(1, workers)) if node["kind"] == "operator" else ""
        moving = [_short(rates[column]) for column in (RECEIVED, SENT, RUNS)]
        kept = [_short(totals[column]) for column in (QUEUED, ROWS, BYTES)]
        line = node["origin"].rpartition("/")[2]
        _row(table, node["name"], share, *moving, *kept, flow.frontiers.get(number, ""), line)
    if len(numbers) > OPERATORS:
        _row(table, f"and {len(numbers) - OPERATORS} more", *[""] * 9)
    return table


def _table(*names: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        is_text = name in _TEXTS
        justify: Literal["left", "right"] = "left" if is_text or name == "built at" else "right"
        table.add_column(name, justify=justify, no_wrap=not is_text, overflow="ellipsis")
    return table


def _row(table: Table, *cells: str) -> None:
    """Add a row of one line to a table."""
    from rich.text import Text

    table.add_row(*[Text(cell, no_wrap=True) for cell in cells])


def _short(number: float) -> str:
    """Return a number of at most five letters.

    >>> _short(0), _short(0.25), _short(9), _short(1234), _short(99_960), _short(2_500_000)
    ('0', '0.2', '9', '1.2k', '100k', '2.5M')
    """
    if 0 < number < 1:
        return f"{number:.1f}"
    unit = 0
    while number >= 999.5 and unit < len(_UNITS) - 1:
        number /= 1000
        unit += 1
    return f"{number:.1f}{_UNITS[unit]}" if unit and number < 99.95 else f"{number:.0f}{_UNITS[unit]}"


def _share(part: float) -> str:
    return f"{100 * part:.1f} %" if 0 < part < 0.0995 else f"{100 * part:.0f} %"


def _lasting(nanoseconds: float) -> str:
    """Return a span of time for people.

    >>> _lasting(1500), _lasting(2_500_000), _lasting(3e9)
    ('2 µs', '2.5 ms', '3.0 s')
    """
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.0f} µs"
    return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.1f} s"
