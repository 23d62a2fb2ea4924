"""Where the progress of a plan is counted: the plain layout, which tracks every place.

A *location* is a place at which the tracker keeps counts and a frontier. In the plain layout each place is a location,
each operator runs on its own, and each input is its own location, at which queued messages count. This is the model as
the theory states it. `compose` makes a smaller layout of it, of the same meaning.
"""

from __future__ import annotations

from typing import NamedTuple

from timely.dataflow.plan import Inlet, Place, Plan
from timely.dataflow.sections import Section
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary


class RegionLayout(NamedTuple):
    """How a section runs as one operator (see `timely.dataflow.region`)."""

    section: Section
    hub: int
    """The place at which it is tracked, which the plan does not have."""
    place: Place
    """What there is to know of the hub."""
    sources: list[tuple[int, PathSummary | None]]
    """The places from whose frontiers what may come in follows, each with a summary, or None where times stay as they
    are."""
    partial: dict[Inlet, list[int]]
    """For an input that not all of these sources lead to: the places from which something may arrive there."""


class Layout(NamedTuple):
    """What is tracked of a plan, and how."""

    places: list[int]
    """The places that are tracked, in the order of their locations: the plan's, and the hubs of regions."""
    edges: list[Edge]
    """The edges between them, by place; along these, could-result-in between tracked places is what it is in the
    plan."""
    counted_at: dict[int, int]
    """For an input whose messages are counted elsewhere: the place where."""
    followed: dict[int, list[tuple[int, PathSummary | None]]]
    """For an input whose frontier follows from that at other places: these, each with a summary, or None where times
    stay as they are."""
    in_line: set[int]
    """The operators that run in line with the producers of what they receive."""
    regions: list[RegionLayout]
    """The sections that run as one operator each."""


def plain(plan: Plan) -> Layout:
    """Return the layout that tracks every place and lets every operator run on its own."""
    return Layout(list(range(len(plan.places))), list(plan.edges), {}, {}, set(), [])
