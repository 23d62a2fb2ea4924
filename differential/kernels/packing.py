"""What a wheel has inside: all kernels of this package, compiled for several processors by several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from differential.kernels.compile import largest_first
from differential.kernels.processor import Processor
from differential.kernels.shipped import Shipped, name_of


def made_for(processors: list[Processor], processes: int) -> Iterator[Shipped]:
    """Yield the kernels of the modules imported so far for each processor, compiled by this many processes.

    What is compiled for this processor is taken from the user's directory of compiled kernels, and kept there.
    """
    # The processes are copies of this one, so they have imported the kernels and compile what they are asked for.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context) as pool:
        made = list(pool.map(_made, range(len(largest_first())), [processors] * len(largest_first())))
    for number, processor in enumerate(processors):
        yield Shipped(processor, dict(each[number] for each in made))


def _made(number: int, processors: list[Processor]) -> list[tuple[str, bytes]]:
    """Return the name and the object code of a kernel for each processor."""
    kernel = largest_first()[number]
    entry = kernel.entry()
    if processors == [Processor.of_host()]:
        payload = entry.kept()
        if payload is None:
            [payload] = kernel.object_codes(processors)
            entry.write(payload)
        payloads = [payload]
    else:
        payloads = kernel.object_codes(processors)
    return [(name_of(entry.key(one)), code) for one, code in zip(processors, payloads, strict=True)]
