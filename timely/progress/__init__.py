"""Progress tracking: which times may still arrive where, and how workers agree on it.

An operator that must see all messages of a time before it acts asks one question: can a message at this time, or an
earlier one, still arrive? Progress tracking answers it for every input of a dataflow. Murray et al., "Naiad: a timely
dataflow system" (SOSP 2013), sections 2.3 and 3.3, introduce the ideas; here they are in the order of the modules.

**Times** (`timely.order`) are tuples of integers under the product order, a partial one. Entering a loop appends a
counter.

**Path summaries** (`summary`). A message at time t at one place may cause messages at another place, at times that
depend on the path between them: a loop's entrance appends a counter, its feedback adds one, its exit drops it. The
summary s of the path is that function; s(t) is the least time at which an effect can appear. Where several paths
connect two places, only the minimal summaries matter.

**Locations and edges** (`graph`). A location is a port of an operator. Edges carry summaries; `cycles` checks that
every cycle advances time, so that no time waits for itself.

**Pointstamps** (`reachability`). A pointstamp is a pair (location, time). It is *live* while a message with this time
is queued at this input, or an operator holds a capability to send at this time from this output. Pointstamps are
partially ordered by *could-result-in*:

    (l1, t1) could-result-in (l2, t2)  if some path from l1 to l2 has a summary s with s(t1) ≤ t2

**Frontiers** (`antichain`). The frontier of a location is the set of minimal times t such that a live pointstamp
could-result-in (location, t). A time that is not at or after an element of the frontier is complete: nothing at this
time can arrive. `Tracker` keeps the frontiers up to date as pointstamps come and go.

**Counts** (`change_batch`, `accumulation`, `protocol`). Live pointstamps are spread over all workers, and no worker
ever sees all of them at one moment. Each worker keeps a count per pointstamp, and adds the changes (+1 for a message
sent, -1 for one received) that other workers broadcast. These sums lag behind the truth and may even be negative for a
while, when a message's receipt is counted before its sending. They are safe all the same: a worker announces what it
does in order, and what it creates no later than the end of what entitled it to create it. So whatever is live anywhere,
every worker counts at least one pointstamp that could-result-in it, and no computed frontier is ahead of the true one.
`protocol` has the proof, and shows that the frontiers catch up.

Everything in this package is pure: no clock, no socket, no thread, no worker. Changes go in, frontiers come out.
So it can be used by itself, to see what a dataflow would do: `Tracker` keeps frontiers, `could_result_in` compares two
pointstamps, `summaries_to` returns the antichain of path summaries from each location, and `ChangeBatch` and
`MutableAntichain` keep counts.

Two operators in a row: an output (location 0) and the input it leads to (location 1).

>>> tracker = Tracker([1, 1], [Edge(0, 1, PathSummary.identity(1))])
>>> tracker.update(0, (3,), 1)  # the first operator may send at time 3
>>> tracker.propagate(), tracker.frontier(1)
([0, 1], Antichain([(3,)]))
>>> tracker.update_all([(1, (3,), 1), (0, (3,), -1)])  # it has sent a message and given up its capability
>>> tracker.propagate(), tracker.frontier(1)
([0], Antichain([(3,)]))
>>> tracker.update(1, (3,), -1)  # the message has been received: time 3 is complete
>>> tracker.propagate(), tracker.frontier(1)
([1], Antichain([]))
"""

from timely.progress.antichain import Antichain, MutableAntichain
from timely.progress.change_batch import ChangeBatch
from timely.progress.graph import Edge, could_result_in, insert_minimal, summaries_to
from timely.progress.reachability import Tracker
from timely.progress.summary import PathSummary

__all__ = [
    "Antichain",
    "ChangeBatch",
    "Edge",
    "MutableAntichain",
    "PathSummary",
    "Tracker",
    "could_result_in",
    "insert_minimal",
    "summaries_to",
]
