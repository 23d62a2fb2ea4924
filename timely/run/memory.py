"""How the C library allocates memory in processes that run workers: it keeps what is freed, and takes large pages.

**Freed memory.** Columns of some hundred thousand rows, and the frames in which they arrive, are allocated and freed
all the time. By default the C library takes each of them from the operating system and returns it at once, and every
new page costs a fault: several times as much as filling it. So pieces of up to `LARGE` bytes are kept on the heap, with
up to `KEPT` free bytes at its end. Larger arrays still come from the system, in large pages (see
`differential.kernels.memory.empty`). Joining two collections of ten million rows, with a hundred million results, took
1.6 to 5.7 s before, and 0.4 s after.

**Large pages**, in the processes that `timely run` starts. Every page of new memory costs a page fault, and in a
virtual machine a fault on 4 KB takes several times as long as filling them. Kernels ask for large pages for the large
arrays that they make. All other memory, such as the frames that arrive from other processes, comes from the C library,
which asks for large pages only if its environment is set so when the process starts. So the launcher sets this for its
children, and a command that runs the script itself restarts. The C library uses large pages only in its first heap, not
in those that it makes for further threads, such as the one that receives; so all threads share one heap.

Nothing is changed if the environment already configures large pages. C libraries other than glibc ignore the setting.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

LARGE = 32 << 20
KEPT = 256 << 20

VARIABLE = "GLIBC_TUNABLES"
_LARGE_PAGES, _ONE_HEAP = "glibc.malloc.hugetlb", "glibc.malloc.arena_max"
_OFFER = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def with_large_pages(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the C library asks for large pages; one that configures them is unchanged.

    >>> with_large_pages({"HOME": "/root"})
    {'HOME': '/root', 'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1'}
    >>> with_large_pages({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"})
    {'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=0'}
    """
    given = environ.get(VARIABLE, "")
    if _LARGE_PAGES in given:
        return dict(environ)
    tunables = [given] if given else []
    tunables += [f"{name}=1" for name in (_LARGE_PAGES, _ONE_HEAP) if name not in given]
    return {**environ, VARIABLE: ":".join(tunables)}


def are_offered() -> bool:
    """Return whether the system provides large pages on request, and the C library can request them."""
    try:
        return "[madvise]" in _OFFER.read_text() and "CS_GNU_LIBC_VERSION" in os.confstr_names
    except OSError:
        return False


def restart_with_large_pages() -> None:
    """Restart this process with large pages, which takes 0.1 s; return if there is nothing to gain."""
    environ = with_large_pages(os.environ)
    # After the restart they are equal, so there is no second one.
    if environ != dict(os.environ) and are_offered():
        with suppress(OSError):
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


@functools.cache
def keep_pieces() -> bool:
    """Make the C library keep pieces of memory, once per process; return whether it does.

    Nothing is changed if the C library is not glibc, or the environment configures its allocator.
    """
    tunables = os.environ.get(VARIABLE, "")
    # `MALLOC_TRIM_THRESHOLD_` and others set the same from the environment.
    is_configured = "_threshold" in tunables or any(name.startswith("MALLOC_") for name in os.environ)
    if not sys.platform.startswith("linux") or is_configured:
        return False
    import ctypes  # not at the top: the command imports this module too, and must start quickly

    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(set_option(_MMAP_THRESHOLD, LARGE) and set_option(_TRIM_THRESHOLD, KEPT))
