"""What the C library does with memory that is given back, in processes that run workers.

Columns of some hundred thousand rows come and go all the time, and so do the frames they arrive in. By default the C
library takes each from the operating system and gives it back at once, and every new page costs a fault: several times
what filling it costs. So pieces of up to `LARGE` bytes are kept on the heap, and up to `KEPT` bytes that are free at
its end. Larger arrays still come from the system and go back to it, in large pages (see
`differential.kernels.memory.empty`).

Joining two collections of ten million rows, with a hundred million results, took 1.6 to 5.7 s before, and 0.4 s after.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

LARGE = 32 << 20
KEPT = 256 << 20

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


@functools.cache
def keep_pieces() -> bool:
    """Have the C library keep pieces of memory, once and for all; return whether it does.

    It is left as it is where it is not glibc's, and where the environment says what it should do.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    told = "_threshold" in tunables or any(name.startswith("MALLOC_") for name in os.environ)
    if not sys.platform.startswith("linux") or told:
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(set_option(_MMAP_THRESHOLD, LARGE) and set_option(_TRIM_THRESHOLD, KEPT))
