"""Large pages for what the C library hands out, in the processes that `timely run` starts.

New memory costs a page fault for each of its pages, and in a virtual machine a fault on 4 KB takes several times what
filling them does. Kernels ask for large pages where they make large arrays. All else, such as the frames that arrive
from other processes, is the C library's, which asks for large pages only where its environment says so when the process
begins. So the launcher says so to its children, and a command that runs the script itself begins again. It asks for its
first heap only, not for those that it would give to further threads, such as the one that receives: so all share one.

Nothing is changed where the environment says something about it. Other C libraries than glibc take no notice.
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
    """Return an environment in which the C library asks for large pages, unless it says already what that should do.

    >>> with_large_pages({"HOME": "/root"})
    {'HOME': '/root', 'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1'}
    >>> with_large_pages({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"})
    {'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=0'}
    """
    told = environ.get(VARIABLE, "")
    if _LARGE_PAGES in told:
        return dict(environ)
    said = [told] if told else []
    said += [f"{name}=1" for name in (_LARGE_PAGES, _ONE_HEAP) if name not in told]
    return {**environ, VARIABLE: ":".join(said)}


def are_offered() -> bool:
    """Return whether the system gives large pages to those that ask, and the C library can be told to."""
    try:
        return "[madvise]" in _OFFER.read_text() and "CS_GNU_LIBC_VERSION" in os.confstr_names
    except OSError:
        return False


def begin_again() -> None:
    """Have this process begin again with large pages, which takes 0.1 s; return where there is nothing to gain."""
    environ = with_large_pages(os.environ)
    if environ != dict(os.environ) and are_offered():
        with suppress(OSError):
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)
