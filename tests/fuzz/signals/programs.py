"""Programs that the fuzzer of signals runs: each works for about a second, then prints that it is done."""

from __future__ import annotations

from textwrap import indent

_WORKS = """
import os, sys, time
import timely
from timely import execute

def program(worker):
    with worker.dataflow() as scope:
        numbers, stream = timely.new_input(scope)
        probe = stream.exchange().probe()
    end = time.monotonic() + 0.8
    epoch = 0
    while worker.index or time.monotonic() < end:
        if worker.index == 0:
            numbers.send(*range(100))
            epoch += 1
            numbers.advance_to(epoch)
            worker.step_while(lambda: probe.less_than(epoch))
        else:
            numbers.close()
            return worker.step_while(lambda: not probe.done())
"""

_RUNS = """
execute(program)
print("done", flush=True)
"""

_COUNTS = """
import os, sys, time
import numpy as np
from differential import new_input
from timely import execute

def program(worker):
    with worker.dataflow() as scope:
        session, collection = new_input(scope)
        probe = collection.count().probe()
    for epoch in range(1, 40):
        session.insert(np.arange(100) % 7, np.arange(100) + epoch)
        session.advance_to(epoch)
        worker.step_while(lambda: probe.less_than(epoch))
        time.sleep(0.02)
"""

PROGRAMS = {
    "works": _WORKS + _RUNS,
    "counts": _COUNTS + _RUNS,
    "comes late": _WORKS + "time.sleep(0.3 * int(os.environ.get('TIMELY_PROCESS', 0)))\n" + _RUNS,
    "meets twice": _WORKS + "execute(program)\n" + _RUNS,
    "meets nobody": "import time\ntime.sleep(1)\nprint('done', flush=True)\n",
    "cleans up": f"import time\ntry:\n{indent(_WORKS + _RUNS, '    ')}\nfinally:\n    time.sleep(0.3)\n",
}
