"""Where the files of one durable collection are kept, behind six operations.

A store keeps *parts*, each written once under a name of its own and never changed, and one *manifest*, the only thing
that changes. `compare_and_set` is the only operation on which writers compete, and it is linearizable: of several
writers that expect the same manifest, one succeeds.

*Durable means returned.* What `put_new` and `compare_and_set` have written survives a crash of the machine once they
return. If either raises `StoreError`, its outcome is unknown: it may have happened, may happen later, or never. The
writer finds out by reading (`differential.durable.writer`).
"""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """The files of one durable collection. All operations raise StoreError if the store fails."""

    def put_new(self, name: str, data: bytes) -> None:
        """Keep `data` under a name that no manifest refers to yet; replace what a crash has left there."""

    def get(self, name: str) -> bytes | None:
        """Return what is kept under a name, or None if nothing is."""

    def get_manifest(self) -> bytes | None:
        """Return the manifest, or None if there is none yet."""

    def compare_and_set(self, expected: bytes | None, manifest: bytes) -> bool:
        """Replace the manifest if it is `expected` (None: if there is none); return whether it is the new one now."""

    def names(self) -> list[str]:
        """Return the names of all that is kept beside the manifest, remains of crashed writes included."""

    def delete(self, name: str) -> None:
        """Remove what is kept under a name, if anything is."""
