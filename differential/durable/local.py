"""A store in a directory of this machine's file system.

    DIR/manifest.json     the manifest
    DIR/parts/*.parquet   the parts
    DIR/lock              held while the manifest is replaced

A file is written under a temporary name, synced, renamed and its directory synced, in this order. So a name that
exists has all of its contents, before and after a crash, and a manifest never refers to a part that a crash can take
away. `flock` makes compare-and-set atomic; it works among the processes of one machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from differential.data.disk import Disk, OsDisk, replace_file
from timely.errors import StoreError

MANIFEST = "manifest.json"
PARTS = "parts"


class LocalStore:
    """Keeps a durable collection in a directory, which is made when something is first written.

    A directory that is removed later is not made again, because a collection without its files is not a collection.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     store = LocalStore(f"{directory}/words")
    ...     store.put_new("first", b"...")
    ...     print(store.get("first"), store.get("second"), store.names(), store.path("first").endswith("parts/first"))
    ...     print(store.compare_and_set(None, b"{}"), store.compare_and_set(None, b"[]"), store.get_manifest())
    ...     store.delete("first")
    ...     print(store.names())
    b'...' None ['first'] True
    True False b'{}'
    []
    """

    def __init__(self, directory: str, disk: Disk | None = None) -> None:
        self.directory = directory
        self._disk: Disk = disk or OsDisk()
        self._parts = os.path.join(directory, PARTS)
        self._manifest = os.path.join(directory, MANIFEST)
        self._is_made = False

    def path(self, name: str) -> str:
        """Return the path of a part."""
        return os.path.join(self._parts, name)

    def put_new(self, name: str, data: bytes) -> None:
        with self._attempt("write", self.path(name)):
            self._make()
            replace_file(self._disk, self.path(name), data)

    def get(self, name: str) -> bytes | None:
        return self._read(self.path(name))

    def get_manifest(self) -> bytes | None:
        return self._read(self._manifest)

    def compare_and_set(self, expected: bytes | None, manifest: bytes) -> bool:
        with self._attempt("write", self._manifest):
            # Only a claim of a new collection may make the directory a second time.
            self._is_made = self._is_made and expected is not None
            self._make()  # and so before the first part, which then waits for one sync less
            try:
                with self._disk.locked(os.path.join(self.directory, "lock")):
                    present = self._read(self._manifest)
                    if present == manifest:
                        # An earlier attempt renamed the file, and failed to sync the directory.
                        self._disk.sync_directory(self.directory)
                    elif present == expected:
                        replace_file(self._disk, self._manifest, manifest)
                    else:
                        return False
                    return True
            except FileNotFoundError:
                return False  # the directory was removed, and the manifest with it

    def names(self) -> list[str]:
        with self._attempt("list", self._parts):
            try:
                return self._disk.names(self._parts)
            except FileNotFoundError:
                return []

    def delete(self, name: str) -> None:
        with self._attempt("remove", self.path(name)), suppress(FileNotFoundError):
            self._disk.remove(self.path(name))

    def _make(self) -> None:
        """Make the directory, once."""
        if not self._is_made:
            self._disk.make_directory(self._parts)
            self._is_made = True

    def _read(self, path: str) -> bytes | None:
        with self._attempt("read", path):
            try:
                return self._disk.read(path)
            except FileNotFoundError:
                return None

    @contextmanager
    def _attempt(self, what: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"cannot {what} {path}: {error.strerror or error}") from error

    def __repr__(self) -> str:
        return f"LocalStore({self.directory!r})"
