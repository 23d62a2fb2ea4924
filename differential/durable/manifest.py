"""What a durable collection consists of at one moment: an immutable value, and its form in a file.

Times are integers here. The manifest describes the updates of a collection at all times before `upper`, which are
final. Parts tile these times: each covers an interval [lower, upper), they follow each other, and where no part covers
a time nothing changed. As of a time `t` with since ≤ t < upper, the collection is the sum of all rows at times up to
`t`; earlier times have been added up (`differential.trace.description` has the theory).

`fence` counts the writers that have claimed the collection. Each claim increases it, so the manifest is no longer the
one that the last writer wrote, which is refused at its next append.

The file is JSON with a SHA-256 of its contents, so that a damaged file is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

from timely.errors import StateError

FORMAT = 2
"""The format of manifests and parts that this version writes."""
READ = (1, 2)
"""The formats that it reads. Format 2 added what `_SINCE_2` names, and the kinds of typed columns."""
_SINCE_2 = ("about", "states")

Position = int | str
"""Where a source is: a number, such as that of a line or a byte, or a text that the source understands."""


@dataclass(frozen=True)
class Part:
    """An immutable file of updates at times in [lower, upper): its name, and what its contents must be.

    `digest` is the sum of hash times diff of all rows, modulo 2 ** 64. It does not change when rows are added up or
    their times advance, so the digests of parts add up to that of the collection. Only those of outputs are compared.
    In other collections it is 0, because it takes half as long to compute as the file takes to encode.
    """

    name: str
    lower: int
    upper: int
    rows: int
    size: int
    sha256: str
    digest: int


@dataclass(frozen=True)
class Owner:
    """The writer that claimed a collection last, and when, in seconds since 1970."""

    token: str
    host: str
    process: int
    began: float


@dataclass(frozen=True)
class Manifest:
    """The state of a durable collection: see the module."""

    role: str
    since: int
    upper: int
    fence: int
    version: int
    owner: Owner
    fields: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    offsets: dict[str, Position] = field(default_factory=dict)
    marks: tuple[tuple[int, float], ...] = ()
    """For some appends, the upper and the time of the clock, for retention by age."""
    states: tuple[Part, ...] = ()
    """Of a snapshot, the state of each worker as of the frontier `upper`, and as of the one before, if it remains."""
    about: dict[str, Any] = field(default_factory=dict)
    """What the program notes about the collection, in values of JSON."""

    @property
    def frontiers(self) -> set[int]:
        """The frontiers of which a snapshot has the state: the last, and the one before if that remains."""
        # `Writer.keep_states` sets `since` to one less than the frontier before; if that is gone, both are `upper`.
        return {self.since + 1, self.upper}

    @property
    def is_of_session(self) -> bool:
        """Whether this is a table or a view of a session (`differential.session.storage`)."""
        return "created" in self.about

    @property
    def files(self) -> tuple[Part, ...]:
        """All files that the collection consists of."""
        return (*self.parts, *self.states)

    @property
    def rows(self) -> int:
        """The rows of all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(part.size for part in self.files)

    @property
    def digest(self) -> int:
        """The digest of an output as of `upper` - 1."""
        return sum(part.digest for part in self.parts) % (1 << 64)

    def after(self, **changes: Any) -> Manifest:
        """Return the next manifest, with changes."""
        return replace(self, version=self.version + 1, **changes)

    def to_bytes(self, format: int = FORMAT) -> bytes:
        """Return the contents of the file."""
        plain = {
            **vars(self),
            "owner": vars(self.owner),
            "parts": [vars(part) for part in self.parts],
            "states": [vars(state) for state in self.states],
        }
        if format == 1:
            plain = {name: value for name, value in plain.items() if name not in _SINCE_2}
        body = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return f'{{"format":{format},"sha256":"{_sha256(body.encode())}","shard":\n{body}\n}}\n'.encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: object) -> Manifest:
        """Return the manifest in a file. Raises StateError, which names `where`, if it is damaged or of another format.

        >>> owner = Owner("a1", "host", 7, 0.0)
        >>> manifest = Manifest("input", 0, 3, 1, 4, owner, (("word", "string"),))
        >>> Manifest.from_bytes(manifest.to_bytes(), "here") == manifest
        True
        >>> Manifest.from_bytes(manifest.to_bytes().replace(b'"upper":3', b'"upper":4'), "here")
        Traceback (most recent call last):
        timely.errors.StateError: the manifest of here is damaged: restore the directory from a copy
        """
        damaged = StateError(f"the manifest of {where} is damaged: restore the directory from a copy")
        try:
            whole = json.loads(data)
            format_ = whole["format"]
        except (ValueError, KeyError, TypeError):
            raise damaged from None
        if format_ not in READ:
            raise StateError(
                f"{where} has format {format_!r:.20} and this version reads formats up to {FORMAT}: read it with the "
                "version of timely-dataflow that wrote it, or a later one"
            )
        # JSON escapes line breaks, so a whole file has the three of `to_bytes`, and its second line is the body.
        body = data.split(b"\n")[1] if data.count(b"\n") == 3 else b""
        if whole.get("sha256") != _sha256(body):
            raise damaged
        manifest = cls._from_json(json.loads(body))
        # The checksum covers the body alone; this comparison covers what surrounds it.
        if manifest.to_bytes(format_) != data:
            raise damaged
        manifest.validate()
        return manifest

    @classmethod
    def _from_json(cls, plain: dict[str, Any]) -> Manifest:
        plain["owner"] = Owner(**plain["owner"])
        for files in ("parts", "states"):
            plain[files] = tuple(Part(**part) for part in plain.get(files, ()))
        plain["fields"] = tuple((name, kind) for name, kind in plain["fields"])
        plain["marks"] = tuple((upper, at) for upper, at in plain["marks"])
        return cls(**plain)

    def validate(self) -> None:
        """Raise AssertionError, in words, if an invariant does not hold."""
        end = 0
        for part in self.parts:
            assert end <= part.lower < part.upper, f"{part} does not follow a part that ends at {end}"
            end = part.upper
        assert end <= self.upper, f"the parts end at {end}, after {self.upper}"
        assert self.since == self.upper or 0 <= self.since < self.upper, f"since {self.since}, upper {self.upper}"
        assert self.since < self.upper or not self.parts, "no time can be asked for, and there are parts"
        for state in self.states:
            assert state.upper in self.frontiers, f"{state} is of another frontier than {sorted(self.frontiers)}"


def described(role: str) -> str:
    """Return a role with its article.

    >>> described("input"), described("snapshot")
    ('an input', 'a snapshot')
    """
    return f"{'an' if role[:1] in 'io' else 'a'} {role}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
