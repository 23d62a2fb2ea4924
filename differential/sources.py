"""Collections that begin in a scope: changed from outside of the dataflow, or read back from a capture."""

from __future__ import annotations

from collections.abc import Sequence

from differential.capture.replay import replayed
from differential.collection import Arrangement, Collection
from differential.operators.input import InputSession
from differential.operators.upsert import UpsertSession, upserted
from timely import Scope
from timely.capture import EventSource


def new_input(scope: Scope, *, keys: int = 1, name: str = "input") -> tuple[InputSession, Collection]:
    """Return a session that changes a collection, and the collection. The first `keys` columns are its key.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         edges, graph = new_input(scope)
    ...         degrees = graph.count().output()
    ...     edges.insert(np.array([0, 0, 1]), np.array([1, 2, 2]))
    ...     edges.advance_to(1)
    ...     edges.remove(0, 2)
    ...     edges.close()
    ...     worker.step_while(lambda: not degrees.done())
    ...     return degrees.changes()
    >>> for change in execute_directly(program):
    ...     print(*change)
    (0, 2) (0,) 1
    (1, 1) (0,) 1
    (0, 1) (1,) 1
    (0, 2) (1,) -1
    """
    session = InputSession(scope, name)
    return session, Collection(session.stream, keys)


def new_upsert_input(scope: Scope, *, keys: int = 1, name: str = "upsert") -> tuple[UpsertSession, Collection]:
    """Return a session that sets the value of keys, and the collection of (key, value), which is arranged by key.

    Raises BuildError where times have several coordinates, and so are not totally ordered, and for a key of no columns.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         prices, collection = new_upsert_input(scope)
    ...         output = collection.output()
    ...     prices.set(np.array(["tea", "rice"]), np.array([3, 5]))
    ...     prices.advance_to(1)
    ...     prices.set("tea", 4)
    ...     prices.unset("rice")
    ...     prices.close()
    ...     worker.step_while(lambda: not output.done())
    ...     return output.changes()
    >>> for change in execute_directly(program):
    ...     print(*change)
    ('rice', 5) (0,) 1
    ('tea', 3) (0,) 1
    ('rice', 5) (1,) -1
    ('tea', 3) (1,) -1
    ('tea', 4) (1,) 1
    """
    session, arranged = upserted(scope, keys, name)
    return session, Collection.arranged(Arrangement(*arranged))


def replay_into(scope: Scope, sources: Sequence[EventSource], *, keys: int = 1, name: str = "replay") -> Collection:
    """Return the collection that was captured, complete as far as messages have arrived from any of the sources.

    `sources` is the same list on every worker, which reads its share of them. A CaptureError ends the run where all are
    exhausted and an update is missing, or where messages contradict each other.

    >>> from timely.capture import EventQueue
    >>> queue = EventQueue()
    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         Collection.of(scope, np.array([3, 4])).capture_into(queue)
    >>> execute_directly(program)
    >>> from differential.capture import CapturedUpdates
    >>> queue.push(CapturedUpdates(Updates.at((0,), (np.array([4]),))))
    >>> example(lambda scope: replay_into(scope, [queue]))
    [((3,), 1), ((4,), 1)]
    """
    return Collection(replayed(scope, sources, name), keys)
