"""A store in a bucket of an object store, such as S3, by the library `obstore`.

Parts are objects. The manifest is an object that is replaced by a conditional put, so that of several writers one
succeeds. Whatever credentials and retries the object store needs are those of `obstore`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from differential.durable.local import MANIFEST, PARTS
from differential.extra import needed_for
from timely.errors import ConfigError, StoreError

with needed_for("differential.durable.objects", "objects"):
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

T = TypeVar("T")


class ObjectStore:
    """Keeps a durable collection in the objects below a prefix.

    >>> from obstore.store import MemoryStore
    >>> store = ObjectStore(MemoryStore(), "state/words")
    >>> store.put_new("first", b"..."), store.get("first"), store.get("second"), store.names()
    (None, b'...', None, ['first'])
    >>> store.compare_and_set(None, b"{}"), store.compare_and_set(None, b"[]"), store.get_manifest()
    (True, False, b'{}')
    """

    def __init__(self, objects: Any, prefix: str) -> None:
        """Use an object store of `obstore`. Raises ConfigError if that has no conditional put."""
        if isinstance(objects, obstore.store.LocalStore):
            raise ConfigError(f"{objects} cannot replace an object conditionally: use Directory(path) instead")
        self._objects = objects
        self._prefix = prefix.strip("/")
        self._manifest = f"{self._prefix}/{MANIFEST}"

    def put_new(self, name: str, data: bytes) -> None:
        self._attempt(lambda: obstore.put(self._objects, self._part(name), data))

    def get(self, name: str) -> bytes | None:
        return self._get(self._part(name))[0]

    def get_manifest(self) -> bytes | None:
        return self._get(self._manifest)[0]

    def compare_and_set(self, expected: bytes | None, manifest: bytes) -> bool:
        present, tag = self._get(self._manifest)
        mode: Any = "create" if present is None else {"e_tag": tag}
        if present != expected:
            return present == manifest  # an earlier attempt, whose answer was lost, may have put it
        try:
            # The tag is that of the bytes that were compared, so the put fails if others have replaced them since.
            self._attempt(lambda: obstore.put(self._objects, self._manifest, manifest, mode=mode))
        except StoreError as error:
            if isinstance(error.__cause__, (AlreadyExistsError, PreconditionError)):
                return False  # perhaps because a retry of `obstore` follows its own put: the writer reads what is there
            raise
        return True

    def names(self) -> list[str]:
        directory = f"{self._prefix}/{PARTS}"
        found = self._attempt(lambda: obstore.list(self._objects, prefix=directory).collect())
        return sorted(each["path"].removeprefix(f"{directory}/") for each in found)

    def delete(self, name: str) -> None:
        try:
            self._attempt(lambda: obstore.delete(self._objects, self._part(name)))
        except StoreError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise

    def _part(self, name: str) -> str:
        return f"{self._prefix}/{PARTS}/{name}"

    def _get(self, path: str) -> tuple[bytes | None, str | None]:
        """Return an object and its tag; both are None if there is no object."""
        try:
            result = self._attempt(lambda: obstore.get(self._objects, path))
            return bytes(self._attempt(result.bytes)), result.meta["e_tag"]
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None, None
            raise

    def _attempt(self, operation: Callable[[], T]) -> T:
        return _attempted(str(self), operation)

    def __str__(self) -> str:
        return f"{self._prefix} in {type(self._objects).__name__}"


class Objects:
    """A place in an object store: each durable collection is below a prefix of its own.

    >>> from obstore.store import MemoryStore
    >>> place = Objects(MemoryStore(), "state")
    >>> place.store("words").compare_and_set(None, b"{}"), place.names()
    (True, ['words'])
    """

    def __init__(self, objects: Any, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix.strip("/")

    def names(self) -> list[str]:
        found = _attempted(
            f"cannot list {self._prefix}", lambda: obstore.list_with_delimiter(self._objects, prefix=self._prefix)
        )
        names = [path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"]]
        return sorted(name for name in names if self.store(name).get_manifest() is not None)

    def store(self, name: str) -> ObjectStore:
        return ObjectStore(self._objects, f"{self._prefix}/{name}")

    def __str__(self) -> str:
        return self._prefix


def _attempted(what: str, operation: Callable[[], T]) -> T:
    """Return the result of an operation. Raises StoreError, in a line that begins with `what`, if it fails."""
    try:
        return operation()
    except (BaseError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise StoreError(f"{what}: {reason}") from error
