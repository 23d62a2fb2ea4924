"""Fold everything of one time into one record."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from timely.arguments import check_functions
from timely.data.container import Batch, of_columns
from timely.data.user_functions import consult
from timely.dataflow.operators.each_time import fold_each_time
from timely.dataflow.pact import Pipeline
from timely.dataflow.streams import S
from timely.errors import DataError


def accumulate(stream: S, initial: Any, fold: Callable[..., Any], *, name: str = "accumulate") -> S:
    """Return, for each time and worker that has records, `fold` over all of them, when the time is complete.

    `fold(state, *columns)` returns the next state, from a copy of `initial` on, for each batch; for list batches it
    receives the list. It may write to the state, and returns it. The result is a list batch of one record.

    >>> example(lambda scope: scope.to_stream(range(5)).accumulate(0, lambda total, x: total + int(x.sum())))
    [10]
    """
    check_functions(name, fold=fold)

    def include(state: Any, batch: Batch) -> Any:
        later = fold(state, batch) if isinstance(batch, list) else consult(fold, of_columns(batch), state)
        if later is None and state is not None:
            raise DataError("the fold returned None: it returns the next state, also where it has written to it")
        return later

    return fold_each_time(stream, Pipeline(), lambda: deepcopy(initial), include, lambda state: [state], name=name)
