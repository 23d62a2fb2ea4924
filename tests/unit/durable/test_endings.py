"""However a program ends, the positions of its sources are durable together with the changes from before them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from differential.durable import Directory, DurableSession, Shard, State, durable_input
from timely import Config, Worker, execute
from timely.errors import CapabilityError

ENDS: dict[str, Callable[[DurableSession], object]] = {
    "returns": lambda session: None,
    "flushes": lambda session: session.flush(),
    "advances": lambda session: session.advance_to(session.epoch + 1),
    "closes": lambda session: session.close(),
}


def read_a_line(worker: Worker, directory: str, end: Callable[[DurableSession], object]) -> int:
    """Insert the next line of this worker's file, and end; return the epoch in which that was."""
    state = State.open(worker, directory)
    with worker.dataflow() as scope:
        lines, _ = durable_input(scope, state.shard("lines", fields=["file", "line"]))
    first, file = lines.epoch, f"file {worker.index}"
    position = lines.offsets.get(file, 0)
    lines.insert(file, position)
    lines.at(file, int(position) + 1)
    end(lines)
    return first


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("workers", [1, 2])
def test_each_line_is_read_once_however_a_program_ends(tmp_path: Path, workers: int, end: str) -> None:
    for epoch in range(3):
        firsts = execute(lambda worker: read_a_line(worker, str(tmp_path), ENDS[end]), Config(workers=workers))
        assert firsts == [epoch] * workers
    found = Shard("lines", Directory(str(tmp_path)).store("lines"))
    assert found.read() == {(f"file {worker}", line): 1 for worker in range(workers) for line in range(3)}
    assert found.manifest().offsets == {f"file {worker}": 3 for worker in range(workers)}


def test_a_program_that_returns_has_made_the_epochs_that_are_over(tmp_path: Path) -> None:
    ends = iter([5, 5])
    advance: Callable[[DurableSession], object] = lambda session: session.advance_to(next(ends))  # noqa: E731
    assert execute(lambda worker: read_a_line(worker, str(tmp_path), advance)) == [0]
    assert execute(lambda worker: read_a_line(worker, str(tmp_path), ENDS["returns"])) == [5]


def test_a_position_after_the_end_is_refused_like_a_change(tmp_path: Path) -> None:
    def end(session: DurableSession) -> None:
        session.close()
        with pytest.raises(CapabilityError, match="input 'lines' was closed"):
            session.insert("file", 7)
        with pytest.raises(CapabilityError, match="input 'lines' was closed"):
            session.at("file", 7)

    execute(lambda worker: read_a_line(worker, str(tmp_path), end))
