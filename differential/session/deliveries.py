"""The sinks of a session, as its commits write to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from differential.session.changes import Changes
from differential.session.interrupt import Deferral
from differential.session.item import Item
from differential.session.rows import Rows
from differential.session.sinks.delivery import Delivery
from differential.session.sinks.history import Left, Reach
from timely.errors import SessionError, StateError
from timely.lowlevel import notify, user_origin

if TYPE_CHECKING:
    from differential.session.storage import SessionStorage


def show_ended(what: str, ended: list[str]) -> None:
    """Print what has ended together with a view, if anything has."""
    if ended:
        notify(
            f"{what} (at {user_origin()}), which ends {', '.join(ended)}: to continue, call write_to(), changes() or "
            "watch() of the view that takes its place"
        )


class Deliveries:
    """The deliveries of a session. Use under the lock of its catalog."""

    def __init__(self) -> None:
        self.all: tuple[tuple[Delivery, Changes | None], ...] = ()
        """Each delivery with the changes of its table or view, or None if it is a durable view."""
        self.publications: WeakSet[Any] = WeakSet()
        """Those that are not closed. Each waits for an answer, which may wait for the workers: these end first."""
        self._left: dict[tuple[str, str], Left] = {}
        """What sinks have of views that were replaced, by the names of the view and the sink."""

    def add(self, delivery: Delivery, changes: Changes | None, number: int) -> None:
        """Add a delivery after commit `number`. Raises SessionError if its view writes to a sink of this name."""
        same = [each for each, _ in self.all if (each.item, each.name) == (delivery.item, delivery.name)]
        if any(not each.is_over for each in same):
            raise SessionError(
                f"{delivery.item} is already written to {delivery.name!r}: name=... gives the sink another name"
            )
        # Replaced, never modified: `status` reads it without the lock.
        self.all = (*(each for each in self.all if each[0] not in same), (delivery, changes))
        left = None if changes is None else self._left.pop((delivery.item.name, delivery.name), None)
        if left is not None:
            delivery.succeed(left, number)

    def forget(self, delivery: Delivery) -> None:
        delivery.close()
        self.all = tuple(each for each in self.all if each[0] is not delivery)

    def gather(self, storage: SessionStorage | None, number: int) -> SessionError | None:
        """Append the changes of a commit to the durable views, and collect them for sinks.

        Return the error of the store. Sinks then have the commit once the session is opened again.
        """
        if storage is None and not self.all:
            return None
        with Deferral():  # what is read of the changes is taken by the sinks
            try:
                published = {} if storage is None else storage.publish(number)
                for delivery, changes in self.all:
                    delivery.take(published.get(delivery.item, []) if changes is None else changes.read_nowait())
            except StateError as error:
                failure = SessionError(f"durable views may lack changes until the session is opened again: {error}")
                failure.__cause__ = error
                return failure
        return None

    def deliver(self, number: int, is_closing: Callable[[], bool]) -> SessionError | None:
        """Write what was taken to the sinks; return the error of the first sink that does not have it."""
        errors = [delivery.deliver(number, is_closing) for delivery, _ in self.all if delivery.item.error is None]
        return next((error for error in errors if error is not None), None)

    def leave_to_successor(self, item: Item, number: int) -> None:
        """Record what the sinks of a view have when it is replaced after commit `number`, unless it is durable."""
        for delivery, changes in self.all:
            if delivery.item is item and changes is not None and (left := delivery.left(number)) is not None:
                self._left[item.name, delivery.name] = left

    def close_for(self, item: Item) -> None:
        """Close the deliveries of a view that is dropped or replaced."""
        for delivery, _ in self.all:
            if delivery.item is item:
                self.forget(delivery)

    def ended(self, item: Item) -> list[str]:
        """Return, for people, what ends together with a view: its sinks, and what the program follows it with."""
        sinks = [f"its sink {each.name!r}" for each, _ in self.all if each.item is item and not each.is_over]
        made_by = Counter(each.made_by for each in item.followed())
        made = [
            f"what {method} has returned" + f" ({number} times)" * (number > 1) for method, number in made_by.items()
        ]
        return [*sinks, *made]

    def end(self) -> None:
        """End all publications, and close all deliveries."""
        for publication in tuple(self.publications):
            publication.close()
        for delivery, _ in self.all:
            delivery.close()

    def rows(self, reaches: Mapping[str, Mapping[str, Reach]]) -> Rows:
        """Return a row for each sink, for people; `reaches` has those of the sinks of each durable view."""
        found = [(each.name, each.item.name, each.commit or 0, each.rows, each.state) for each, _ in self.all]
        known = {(sink, view) for sink, view, *_ in found}
        found += [
            (sink, view, reach.through, 0, "is not attached: what it does not have is retained")
            for view, each in reaches.items()
            for sink, reach in each.items()
            if (sink, view) not in known
        ]
        return Rows.of({"sink": str, "view": str, "commit": int, "rows": int, "state": str}, found)
