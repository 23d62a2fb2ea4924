"""Where the files of durable collections are: a place has a store for each collection of a program, by name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import Protocol

from differential.arguments import is_url
from differential.durable.local import MANIFEST, LocalStore
from timely.errors import ConfigError, StoreError
from timely.services import STATE_VARIABLE

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Store(Protocol):
    """The files of one durable collection, behind six operations, which raise StoreError if the store fails.

    A store keeps *parts*, each written once under a name of its own and never changed, and one *manifest*, the only
    thing that changes. `compare_and_set` is the only operation on which writers compete, and it is linearizable: of
    several writers that expect the same manifest, one succeeds.

    *Durable means returned.* What `put_new` and `compare_and_set` have written survives a crash of the machine once
    they return. If either raises `StoreError`, its outcome is unknown: it may have happened, may happen later, or
    never. The writer finds out by reading (`differential.durable.writer`).
    """

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


class Stores(Protocol):
    """The stores of a program's durable collections."""

    def names(self) -> list[str]:
        """Return the names of the collections that exist."""

    def store(self, name: str) -> Store:
        """Return the store of a collection, whether it exists or not."""


class Directory:
    """A place with a directory for each collection.

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> place = Directory(directory.name)
    >>> place.store("words").compare_and_set(None, b"{}"), place.names()
    (True, ['words'])
    >>> directory.cleanup()
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._found_at = os.path.abspath(path)  # wherever the program changes to later

    def names(self) -> list[str]:
        try:
            found = sorted(os.listdir(self._found_at))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot list {self.path}: {error.strerror}") from error
        return [name for name in found if os.path.exists(os.path.join(self._found_at, name, MANIFEST))]

    def store(self, name: str) -> LocalStore:
        return LocalStore(os.path.join(self._found_at, name))

    def __str__(self) -> str:
        return self.path


def place_of(where: str | os.PathLike[str] | Stores | None) -> Stores:
    """Return the place that a program names, or that `timely run --state DIR` does. Raises ConfigError if none does."""
    if where is None:
        where = os.environ.get(STATE_VARIABLE)
    if where is None:
        raise ConfigError("where is the state? Run the program with 'timely run --state DIR', or give State.open a DIR")
    if not isinstance(where, (str, os.PathLike)):
        if not hasattr(where, "store"):
            raise ConfigError(f"the place of durable collections is a directory, or Objects(...), not {where!r:.80}")
        return where
    path = os.fspath(where)
    if not path:
        raise ConfigError("the directory of durable collections has no name: give one, such as './db'")
    if is_url(path):
        raise ConfigError(
            f"{path} is not a directory: give a path, or for a bucket Objects(obstore.store.S3Store('bucket'), "
            "'prefix') of differential.durable.objects"
        )
    if os.path.exists(os.path.join(path, MANIFEST)):
        raise ConfigError(f"{path} is one durable collection: name the directory that has it and others")
    there = os.path.abspath(path)
    while not os.path.lexists(there):  # ends at the root, which exists
        there = os.path.dirname(there)
    if not os.path.exists(there):
        raise ConfigError(
            f"{there} is a symbolic link to {os.readlink(there)}, which does not exist: make that directory, or remove "
            "the link"
        )
    return Directory(path)


def check_name(name: str) -> None:
    """Raise ConfigError unless `name` can be that of a collection, and of a directory anywhere."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r:.120} cannot name a durable collection: take at most 100 of the letters A to Z and a to z, "
            "digits, '.', '_' and '-', the first of them a letter or a digit"
        )


def checked_fields(name: str, fields: Sequence[str] | None, added: Collection[str]) -> tuple[str, ...] | None:
    """Return the names of the fields of a collection. Raises ConfigError unless they can be that, and `added` are some.

    >>> checked_fields("words", ["word", "count"], {"count": 0})
    ('word', 'count')
    """
    if fields is None:
        return None
    names = tuple(fields)
    if isinstance(fields, str) or not names or not all(isinstance(each, str) and each for each in names):
        raise ConfigError(f"the fields of {name!r} are a list of names, such as ['word'], not {fields!r:.80}")
    if len(set(names)) < len(names) or {"time", "diff"} & set(names):
        raise ConfigError(f"the fields of {name!r} need different names, none of them time or diff: {names}")
    if unknown := [each for each in added if each not in names]:
        raise ConfigError(f"added= has a value of {unknown[0]!r}, but {name!r} has no such field: {', '.join(names)}")
    return names
