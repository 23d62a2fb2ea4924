"""The compiled kernels that a wheel has: one file for each kind of processor, beside the modules of this package.

A file is a mark, a digest of all that follows, the processor, a table of the digests of keys, and object code. What the
keys spell out is described in `cache.py`: a kernel whose sources, processor, Python or NumPy differ is not found here,
and is compiled. A file is used if its processor is one that this machine has, nobody but its owner can write to it,
the owner is this user or root, and its digest is right. Otherwise one line on stderr reports why it is not used.

`DIFFERENTIAL_KERNELS=native` in the environment leaves these files out, so that kernels are compiled for exactly the
processor of this machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from itertools import accumulate, pairwise
from pathlib import Path

from differential.kernels.processor import Processor
from differential.kernels.store import UnsafeError, content_of, report, sealed, unsealed

SUFFIX = ".kernels"
_MARK = b"timely-dataflow kernels 1\n"
_DIRECTORY = Path(__file__).parent


class Shipped:
    """The compiled kernels of one file."""

    def __init__(self, processor: Processor, payloads: Mapping[str, bytes]) -> None:
        self.processor = processor
        self._payloads = payloads

    @staticmethod
    @functools.cache
    def of_package() -> Shipped | None:
        """Return the kernels of this package for the best processor that this machine has, or None."""
        if os.environ.get("DIFFERENTIAL_KERNELS") == "native":
            return None
        return Shipped.of_directory(_DIRECTORY)

    @staticmethod
    def of_directory(directory: Path) -> Shipped | None:
        """Return the kernels of the best file in a directory that is of use, or None; report files that are wrong."""
        found = {path.stem: path for path in directory.glob(f"*{SUFFIX}")}
        for name in [*(each.name for each in Processor.levels()), "host"]:
            if path := found.get(name):
                try:
                    shipped = Shipped.read(path)
                except (OSError, UnsafeError) as error:
                    reason = error.strerror if isinstance(error, OSError) else error
                    report(f"{path} {reason}; the kernels are compiled again")
                    continue
                if shipped.processor.runs_here():
                    return shipped
        return None

    @staticmethod
    def read(path: Path) -> Shipped:
        """Return the kernels of a file; raise `UnsafeError` if it is damaged, or others can write to it."""
        head, _, codes = unsealed(_MARK, content_of(path)).partition(b"\n")
        name, features, table = json.loads(head)
        return Shipped(Processor(name, features), {key: codes[first:last] for key, (first, last) in table.items()})

    def write(self, directory: Path, name: str) -> Path:
        """Write the kernels to a file of a directory, which is made if there is none, and return its path."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{name}{SUFFIX}"
        ends = list(accumulate(map(len, self._payloads.values()), initial=0))
        table = dict(zip(self._payloads, pairwise(ends), strict=True))
        body = b"".join((json.dumps([*self.processor, table]).encode(), b"\n", *self._payloads.values()))
        path.write_bytes(sealed(_MARK, body))
        return path

    def payload(self, key: str) -> bytes | None:
        """Return the object code that has a key, or None."""
        return self._payloads.get(name_of(key))


def name_of(key: str) -> str:
    """Return the name of a key in a file."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
