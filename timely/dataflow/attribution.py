"""Which operator, time, worker and line of the program an error belongs to."""

from __future__ import annotations

from timely.dataflow.core import DataflowCore
from timely.errors import DataError, OperatorError
from timely.interruption import interruption
from timely.order import Time
from timely.origin import Origin, raised_at


def operator_error(
    dataflow: DataflowCore, name: str, origin: Origin, error: Exception, time: Time | None, sender: int | None = None
) -> OperatorError:
    """Return an error naming the operator, the time, the worker and the user's line; raise an interrupt as such.

    It also names the `sender` of the batch that was handled if that is another worker.
    """
    if isinstance(error, OperatorError):
        return error
    stop = interruption(error)
    if stop is not None:
        raise stop from None
    if isinstance(error, DataError) and error.time is not None:
        time = error.time
    line = raised_at(error.__traceback__)
    at = "" if time is None else f" at time {time}"
    after = "" if sender in (None, dataflow.worker_index) else f", after a batch from worker {sender}"
    where = f"built at {origin}" if line is None else f"{line}" if line == origin else f"{line}, built at {origin}"
    failure = OperatorError(
        f"operator {name!r} failed{at} on worker {dataflow.worker_index} of {dataflow.peers}{after} "
        f"({where}): {type(error).__name__}: {error}{_noted(error)}"
    )
    failure.dataflow = dataflow.index
    failure.__cause__ = error  # compiled, `raise ... from` forgets it
    return failure


def _noted(error: Exception) -> str:
    """Return the notes of an error, which `timely.data.user_functions` adds to those of functions of columns."""
    notes = getattr(error, "__notes__", ())
    return f" ({'; '.join(notes)})" if notes else ""
