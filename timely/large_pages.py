"""Large pages for what the C library hands out, in the processes that `timely run` starts.

New memory costs a page fault for each of its pages, and in a virtual machine a fault on 4 KB takes several times what
filling them does. Kernels ask for large pages where they make large arrays. All else, such as the frames that arrive
from other processes, is the C library's, which asks for large pages only where its environment says so when the process
begins. So the launcher says so to its children, and a command that runs the script itself begins again.

Nothing is changed where the environment says something about it, or where the C library is not glibc's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

VARIABLE = "GLIBC_TUNABLES"
_TUNABLE = "glibc.malloc.hugetlb"


def with_large_pages(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the C library asks for large pages, unless it says already what that should do.

    >>> with_large_pages({"HOME": "/root"})
    {'HOME': '/root', 'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'}
    >>> with_large_pages({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"})
    {'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=0'}
    """
    told = environ.get(VARIABLE, "")
    if _TUNABLE in told:
        return dict(environ)
    return {**environ, VARIABLE: ":".join(filter(None, (told, f"{_TUNABLE}=1")))}


def begin_again() -> None:
    """Have this process begin again with large pages, which takes 0.1 s; return where there is nothing to gain."""
    environ = with_large_pages(os.environ)
    if sys.platform.startswith("linux") and environ != dict(os.environ):
        with suppress(OSError):
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)
