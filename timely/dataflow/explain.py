"""Who holds a frontier back: the first question of everybody whose dataflow does not finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.order import Time

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow


def explain(dataflow: Dataflow, location: int, time: Time) -> str:
    """Return one line for each live pointstamp that could result in something at or before `time` at `location`.

    A line names the operator and port, the time, and whether it is a capability (with the line that made it) or a
    queued message, on this worker or on another.
    """
    holders = dataflow.tracker.holders(location, time)
    if not holders:
        return "nothing holds this frontier back"
    lines = []
    for holder, held, count in holders:
        lines.extend(_describe(dataflow, holder, held, count))
    return f"held back at {time} by:\n" + "\n".join(f"  {line}" for line in lines)


def _describe(dataflow: Dataflow, location: int, time: Time, count: int) -> list[str]:
    lines = []
    for operator in dataflow.operators:
        for output in operator.outputs:
            if output.location == location:
                lines += [
                    f"a capability for {time} on {output}, made at {capability.origin}, worker {dataflow.worker_index}"
                    for capability in output.live
                    if capability.time == time
                ]
        for port in operator.inputs:
            if port.location == location:
                queued = sum(1 for queued_time, _ in port.queue if queued_time == time)
                if queued:
                    lines.append(f"{queued} queued message(s) at {time} on {port}, worker {dataflow.worker_index}")
                    count -= queued - 1
    elsewhere = count - len(lines)
    if elsewhere > 0:
        lines.append(
            f"{elsewhere} capability(ies) or message(s) at {time} on other workers, {dataflow.describe(location)}"
        )
    return lines


def explain_all(dataflow: Dataflow) -> str:
    """Return all live pointstamps of a dataflow, a line each."""
    lines = [line for holder in dataflow.tracker.pointstamps() for line in _describe(dataflow, *holder)]
    return f"{dataflow} is kept from completing by:\n" + "\n".join(f"  {line}" for line in lines)
