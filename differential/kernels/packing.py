"""What a wheel has inside: all kernels of this package, compiled for several processors by several processes."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from types import FunctionType

from differential.kernels.compile import Kernel, largest_first
from differential.kernels.digest import reached
from differential.kernels.processor import Processor
from differential.kernels.shipped import Shipped, name_of

NEW = 5
"""To compile a function takes this many times as long as to optimise it within one of the kernels that contain it."""


def made_for(processors: list[Processor], processes: int) -> Iterator[Shipped]:
    """Yield the kernels of the modules imported so far for each processor, compiled by this many processes.

    What is compiled for this processor is taken from the user's directory of compiled kernels, and kept there.
    """
    importlib.import_module("differential.kernels.codegen")  # once, with Numba: the processes are copies of this one
    groups = divided(largest_first(), processes)
    with ProcessPoolExecutor(len(groups), multiprocessing.get_context("fork")) as pool:
        parts = pool.map(_made, groups, [processors] * len(groups))
        made = [each for part in parts for each in part]
    for number, processor in enumerate(processors):
        yield Shipped(processor, dict(each[number] for each in made))


def divided(kernels: list[Kernel], processes: int) -> list[list[int]]:
    """Return which of the kernels each process compiles, by their places in the list.

    A process compiles a function once for all of its kernels. So a kernel goes to the process that will then have the
    least to do. For what another process compiles as well, three times its size is added for each process: it takes
    time from all of them, and kernels that follow may need it, too.
    """
    groups: list[list[int]] = [[] for _ in range(min(processes, len(kernels)))]
    known: list[set[FunctionType]] = [set() for _ in groups]
    loads = [0] * len(groups)
    sources = [one.source for one in kernels]
    for place, source in enumerate(sources):
        parts = set(reached(source, ends=sources))
        anywhere = parts & set().union(*known)
        loads_then = [load + _size(parts) + NEW * _size(parts - own) for load, own in zip(loads, known)]
        again = [NEW * _size(anywhere - own) for own in known]
        least = min(range(len(groups)), key=lambda group: loads_then[group] + 3 * len(groups) * again[group])
        groups[least].append(place)
        known[least] |= parts
        loads[least] = loads_then[least]
    return groups


def _size(parts: set[FunctionType]) -> int:
    return sum(len(part.__code__.co_code) for part in parts)


def _made(places: list[int], processors: list[Processor]) -> list[list[tuple[str, bytes]]]:
    """Return for each of these kernels its name and object code for each processor. The process then ends."""
    gc.disable()  # for all kernels: searching after each one, among all that Numba keeps, takes a second in all
    kernels = largest_first()
    return [_one(kernels[place], processors) for place in places]


def _one(kernel: Kernel, processors: list[Processor]) -> list[tuple[str, bytes]]:
    """Return the name and the object code of a kernel for each processor."""
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
