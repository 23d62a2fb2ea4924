"""Short searches for garbage, in the processes that `timely run` starts.

Python finds garbage in cycles by searching. A full search looks at every object there is, those of all modules and
dataflows too, which takes 10 to 100 ms, and no change is answered meanwhile. `keep_short` has what survives a long
full search *frozen*: the searches after it look at newer objects alone.

What is frozen is never found, though it may become garbage later: a dataflow that was dropped, a capability that an
operator forgot. So everything is searched again

- when that takes at most as long as all searches since the last time together, so that what is frozen is at most about
  twice what was alive then, and such searches become rarer as it grows;
- after a dataflow was dropped, whose operators are in cycles;
- when a worker finds that everything stands still, for which a forgotten capability may be the reason.

Nothing is ever frozen that was garbage, for a full search has just removed that. Other processes than those of `timely
run`, such as a notebook's, keep Python's own way unless they call `keep_short`.

The collector of Python 3.14.0 to 3.14.4 searches a part at a time, and never everything by itself: there nothing is
frozen unless the program calls `gc.collect`. Python 3.14.5 and 3.15 have that of 3.13 again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

LONG = 0.002
"""A full search of so many seconds is long."""

_FULL = 2


class Searches:
    """What the searches of this process have cost, which decides what is frozen. `seconds` is a clock."""

    def __init__(self, seconds: Callable[[], float] = perf_counter) -> None:
        self._seconds = seconds
        self._begun = 0.0
        self._of_everything = True
        # How long the last search of everything took, and all long ones since together.
        self._everything = 0.0
        self._since = 0.0
        self.are_short = False
        """Whether this decides anything."""

    def keep_short(self) -> None:
        """Decide from now on."""
        if not self.are_short:
            self.are_short = True
            gc.callbacks.append(self.observe)

    def observe(self, phase: str, info: Mapping[str, int]) -> None:
        """Take note of a search that begins or ends (see `gc.callbacks`)."""
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._of_everything = self._since >= self._everything
            if self._of_everything:
                gc.unfreeze()
            self._begun = self._seconds()
            return
        took = self._seconds() - self._begun
        if took < LONG:
            return
        if self._of_everything:
            self._everything, self._since = took, 0.0
        else:
            self._since += took
        gc.freeze()

    def thaw(self) -> None:
        """Have the next full search look at everything."""
        if self.are_short:
            self._everything = self._since = 0.0
            gc.unfreeze()

    def search_everything(self) -> None:
        """Search everything now, if searches are kept short."""
        if self.are_short:
            self.thaw()
            gc.collect()


_searches = Searches()
keep_short, thaw, search_everything = _searches.keep_short, _searches.thaw, _searches.search_everything


@contextmanager
def paused() -> Iterator[None]:
    """Pause Python's searches for garbage inside the `with` block, in which a dataflow is built.

    What is built stays. To search all of it again and again, while it grows, takes several times as long as to build a
    dataflow of thousands of operators. If several threads build, the first that is done resumes the searches.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
