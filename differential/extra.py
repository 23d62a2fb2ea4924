"""Libraries that an installation may lack, because they are in an extra."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from timely.errors import ConfigError

EXTRAS = {"pyarrow": "'timely-dataflow[frames]'"}
"""What installs a library, where frames of its kind need it and it is not the library's own name."""


@contextmanager
def needed_for(purpose: str, extra: str = "jobs") -> Iterator[None]:
    """Raise ConfigError, with the command that installs it, where a library that is imported is not installed.

    >>> with needed_for("--plot"):
    ...     import no_such_library
    Traceback (most recent call last):
    timely.errors.ConfigError: --plot needs no_such_library: pip install 'timely-dataflow[jobs]'
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{purpose} needs {error.name}: pip install 'timely-dataflow[{extra}]'") from None


def imported(library: str) -> Any:
    """Return a library if it is imported completely, else None.

    While a thread imports a library, `sys.modules` has its module already, without most of its names. The values of
    other threads cannot be of its classes then.

    >>> imported("sys").maxunicode, imported("no_such_library")
    (1114111, None)
    """
    module = sys.modules.get(library)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def needs(library: str, purpose: str) -> None:
    """Raise ImportError, with what to install, unless a library can be imported.

    >>> needs("no_such_library", "to make a frame")
    Traceback (most recent call last):
    ImportError: to make a frame needs no_such_library: pip install no_such_library
    """
    try:
        import_module(library)
    except ImportError:
        install = EXTRAS.get(library, library)
        raise ImportError(f"{purpose} needs {library}: pip install {install}", name=library) from None
