"""Large pages for memory from the C library, in the processes that `timely run` starts.

Every page of new memory costs a page fault, and in a virtual machine a fault on 4 KB takes several times as long as
filling them. Kernels ask for large pages for the large arrays that they make. All other memory, such as the frames that
arrive from other processes, comes from the C library, which asks for large pages only if its environment is set so when
the process starts. So the launcher sets this for its children, and a command that runs the script itself restarts. The
C library uses large pages only in its first heap, not in those that it makes for further threads, such as the one that
receives; so all threads share one heap.

Nothing is changed if the environment already configures large pages. C libraries other than glibc ignore the setting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

VARIABLE = "GLIBC_TUNABLES"
_LARGE_PAGES, _ONE_HEAP = "glibc.malloc.hugetlb", "glibc.malloc.arena_max"
_OFFER = Path("/sys/kernel/mm/transparent_hugepage/enabled")


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
