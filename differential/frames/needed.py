"""Libraries that frames of their kind need, and this package does not."""

from __future__ import annotations

from importlib import import_module

EXTRAS = {"pyarrow": "'timely-dataflow[frames]'"}
"""What installs a library, where it is not the library's own name."""


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
