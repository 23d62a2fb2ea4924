"""Short searches for garbage, in the processes that `timely run` starts.

Python finds garbage in cycles by searching. A full search visits every object, including those of all modules and
dataflows. It takes 10 to 100 ms, during which no change is answered. After `keep_short`, objects that survive a long
full search are *frozen*: later searches visit newer objects only.

A search never finds frozen objects, though they may become garbage later, such as a dropped dataflow, or a capability
that an operator forgot. So everything is searched again

- when that takes at most as long as all long searches since the last such search together: what is frozen then remains
  below about twice what was alive, and searches of everything become rarer as it grows;
- after a dataflow was dropped, since its operators are in cycles;
- when a worker finds that everything stands still, since a forgotten capability may be the reason.

No garbage is ever frozen, because a full search has just removed it. Other processes than those of `timely run`, such
as a notebook's, search as Python does by itself unless they call `keep_short`.

The collector of Python 3.14.0 to 3.14.4 searches a part at a time, and never everything by itself: there nothing is
frozen unless the program calls `gc.collect`. Python 3.14.5 and 3.15 use the collector of 3.13 again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

LONG = 0.002
"""A full search is long from this many seconds on."""

_FULL = 2


class Searches:
    """What the searches of this process cost, which decides what is frozen. `seconds` is a clock."""

    def __init__(self, seconds: Callable[[], float] = perf_counter) -> None:
        self._seconds = seconds
        self._begun = 0.0
        self._of_everything = True
        # The seconds that the last search of everything took, and the sum of all long ones since.
        self._everything = 0.0
        self._since = 0.0
        self.are_short = False
        """Whether survivors of long searches are frozen."""

    def keep_short(self) -> None:
        """Freeze the survivors of long searches from now on."""
        if not self.are_short:
            self.are_short = True
            gc.callbacks.append(self.observe)

    def observe(self, phase: str, info: Mapping[str, int]) -> None:
        """Take note of a search that begins or ends (see `gc.callbacks`)."""
        if info["generation"] != _FULL:
            return
        # Python runs one search at a time, whichever thread triggers it, so a start and its end follow each other.
        if phase == "start":
            self._of_everything = self._since >= self._everything
            if self._of_everything:
                # The search that begins now visits the oldest generation, which these objects join.
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
