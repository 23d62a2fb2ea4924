"""Build tables, views and questions on all workers of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from differential.session.call import Call
from differential.session.engine import Engine
from differential.session.item import Item, failure
from differential.session.site import Definition, Site
from timely.errors import OperatorError, SessionError

R = TypeVar("R")


def install(
    engine: Engine,
    item: Item,
    build: Callable[..., R],
    arguments: tuple[Any, ...],
    elsewhere: tuple[Any, ...] | None = None,
) -> list[R]:
    """Build an item on all workers, and return the results. Raises SessionError, with its line, if that fails."""
    call = Call(build, arguments, engine.workers, elsewhere=elsewhere)
    try:
        engine.submit(call)
        engine.wait(call, str(item))
    except BaseException as stop:
        engine.fail(item, stop)
        engine.release(item, call)
        if call.is_begun and not call.is_over:
            stop.add_note(f"a function of {item} is in a call into C, for whose end the session waits")
        raise
    results = engine.result(call)
    if item.error is not None:
        raise failure(item, item.error)
    item.size = sum(item.totals)  # `publish` does this after commits alone
    return results


def built(
    engine: Engine, item: Item, build: Callable[..., R], definition: Definition, items: Mapping[str, Item]
) -> tuple[Item, list[R]]:
    """Build a view or question; return it, and what all workers return.

    If a function fails, the cause may be a removed row that the indexes still hold: then the item is built again.
    """
    while True:
        try:
            return item, install(engine, item, build, (item, definition, dict(items)))
        except BaseException as error:
            engine.fail(item, SessionError(f"{item} was dropped"))  # an error that it has already stays
            has_failed = isinstance(error, SessionError) and isinstance(item.error, OperatorError)
            # Each further attempt needs rows that are removed here, so there is a last one.
            if not has_failed or not any(engine.call(Site.consolidate, [*item.reads.values()])):
                raise
        item = item.again()
