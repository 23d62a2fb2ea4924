"""What `timely state DIR` prints, and what it changes."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Sequence

from differential.durable.manifest import Manifest, Position
from differential.durable.shard import Shard, refuse_remains
from differential.durable.store import Directory
from differential.durable.writer import Writer
from differential.frames.frame import aligned
from timely.errors import ConfigError, StateError, StoreError
from timely.lowlevel import notify

_HEADER = ("collection", "role", "since", "upper", "rows", "bytes", "parts", "fields", "last writer")


def show(directory: str, verify: bool) -> int:
    """Print the durable collections in a directory; return the exit status, 1 if one of them is damaged.

    With `verify`, everything is read, and checked. Raises ConfigError if there is no such directory, or none in it.
    """
    if not os.path.isdir(directory):
        raise ConfigError(f"there is no directory {directory}")
    place = Directory(directory)
    names = place.names()
    faults = _lost(directory, names)
    if not names and not faults:
        raise ConfigError(f"there are no durable collections in {directory}")
    table: list[tuple[str, ...]] = [_HEADER]
    for name in names:
        shard = Shard(name, place.store(name))
        try:
            manifest = shard.manifest()
            table.append(_row(name, manifest))
            if verify:
                shard.verify()
        except (StateError, StoreError) as error:
            faults.append(str(error))
    print(*aligned(table), sep="\n")
    for fault in faults:
        notify(f"{fault}")
    if verify and not faults:
        print(f"{len(names)} collection(s) are whole")
    return 1 if faults else 0


def accept(directory: str, name: str) -> int:
    """Let the session in a directory continue with a table as it is, without the commits that are missing; return 0.

    Raises ConfigError if there is no session, or if it has no such table.
    """
    place = Directory(directory)
    for found in place.names():
        shard = Shard(found, place.store(found))
        if shard.manifest().role == "commits":
            break
    else:
        raise ConfigError(f"there is no session in {directory}")
    noted: dict[str, Position | None] = {
        key: None for key in shard.manifest().offsets if key.partition("\t")[0] == name
    }
    if not noted:
        raise ConfigError(f"the session in {directory} has no table {name!r}")
    if name in place.names():
        table = Shard(name, place.store(name)).manifest()
        noted |= {f"{name}\t{table.about['created']}": table.upper - 1} if table.about else {}
    Writer.claim(shard, "commits").note(noted)  # a session that still runs is fenced off by the claim
    print(f"the session goes on with {name!r} as it is, and reads the sources of this table from their beginning")
    return 0


def _lost(directory: str, names: Sequence[str]) -> list[str]:
    """Return what is wrong with the directories of collections whose manifest is lost."""
    faults = []
    for name in sorted(set(os.listdir(directory)) - set(names)):
        if os.path.isdir(os.path.join(directory, name)):
            try:
                refuse_remains(Shard(name, Directory(directory).store(name)))
            except (StateError, StoreError) as error:
                faults.append(str(error))
    return faults


def _row(name: str, manifest: Manifest) -> tuple[str, ...]:
    owner = manifest.owner
    since = clock.strftime("%Y-%m-%d %H:%M:%S", clock.localtime(owner.began))
    numbers = (manifest.since, manifest.upper, manifest.rows, manifest.size, len(manifest.parts))
    return (
        name,
        manifest.role,
        *(f"{number:,}" for number in numbers),
        ", ".join(f"{field} {kind}" for field, kind in manifest.fields),
        f"process {owner.process} on {owner.host}, since {since}",
    )
