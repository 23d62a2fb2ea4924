"""Services that wait for something outside, which the first argument names. They end after two seconds."""

import sys
import time as clock
from threading import Thread, Timer

from timely import execute, new_input, source

why, END = sys.argv[1], clock.monotonic() + 2.0


def waiting(capability, activate):
    """Return the logic of a source that another thread may activate."""
    done = []
    if why == "activator":
        Timer(2.0, lambda: (done.append(True), activate())).start()

    def logic(output):
        if done:
            capability.drop()
        elif why == "poll":
            capability.drop() if clock.monotonic() > END else activate.activate_after(0.7)

    return logic


def program(worker):
    with worker.dataflow("idle") as scope:
        if why in ("activator", "poll"):
            probe = source(scope, waiting).exchange().probe()
        else:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.exchange().probe()
    if why == "fed":
        Thread(target=lambda: (clock.sleep(2.0), worker.call(numbers.close))).start()
    elif why == "timer":
        worker.call_after(2.0, numbers.close)
    elif why == "serving":
        while worker.index and clock.monotonic() < END:
            worker.step_or_park(0.3)
        return  # worker 0 has ended at once, and waits for the others
    elif why == "program":
        if worker.index:
            clock.sleep(2.0)
        numbers.close()
    worker.step_while(lambda: not probe.done())


execute(program)
