"""What a durable collection consists of at one moment: an immutable value, and its form in a file.

Times are integers here. The manifest describes the updates of a collection at all times before `upper`, which are
final. Parts tile these times: each covers an interval [lower, upper), they follow each other, and where no part covers
a time nothing changed. As of a time `t` with since ≤ t < upper, the collection is the sum of all rows at times up to
`t`; earlier times have been added up (`differential.trace.description` has the theory).

`fence` counts the writers that have claimed the collection. Each claim increases it, so the manifest is no longer the
one that the last writer wrote, which is refused at its next append.

The file is JSON with a SHA-256 of its contents, so that a damaged file is refused.

`Keep` is how much of the past a collection keeps: what one may read it as of.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from timely.errors import ConfigError, StateError

FORMAT = 2
"""The format of manifests and parts that this version writes."""
READ = (1, 2)
"""The formats that it reads. Format 2 added what `_SINCE_2` names, and the kinds of typed columns."""
_SINCE_2 = ("about", "states")

Marks = tuple[tuple[int, float], ...]
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
    marks: Marks = ()
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


_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_MARKS = 64
"""The number of marks that divide the time that is kept."""


def seconds_of(text: str) -> float:
    """Return the seconds of a duration: a number and ms, s, min, h or d. Raises ConfigError if it is none.

    >>> seconds_of("200ms"), seconds_of("1h")
    (0.2, 3600.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)", text) if isinstance(text, str) else None
    if match is None:
        raise ConfigError(f"{text!r} is not a duration: give a number and {', '.join(_UNITS)}, such as '1h'")
    return float(match[1]) * _UNITS[match[2]]


class Keep:
    """Retention: everything (None), a number of epochs before the last one (an integer), or by age (such as "1h").

    Ages are those of the clock. If it jumps, more or less of the past is kept; what is kept is right.

    >>> Keep("1h").seconds, Keep(10).epochs
    (3600.0, 10)
    """

    def __init__(self, keep: int | str | None) -> None:
        self.epochs = int(keep) if isinstance(keep, Integral) and not isinstance(keep, bool) else None
        self.seconds = seconds_of(keep) if isinstance(keep, str) else None
        is_one = keep is None or self.seconds is not None or self.epochs is not None
        if not is_one or (self.epochs is not None and self.epochs < 0):
            raise ConfigError(f"keep={keep!r} must be a number of epochs of at least 0, or a duration such as '1h'")

    def since(self, manifest: Manifest, now: float) -> int:
        """Return the first time that must stay readable."""
        if self.epochs is not None:
            return manifest.upper - 1 - self.epochs  # perhaps negative: the writer never moves `since` back
        if self.seconds is not None:
            # What was current `seconds` ago is at or after the last mark that is old enough.
            old = [upper for upper, at in manifest.marks if at <= now - self.seconds]
            return max(old, default=0) - 1
        return 0

    def marked(self, marks: Marks, upper: int, now: float) -> Marks:
        """Return the marks after an append at `now`: without those that are no longer needed."""
        if self.seconds is None:
            return ()
        old = [mark for mark in marks if mark[1] <= now - self.seconds]
        kept = (*old[-1:], *(mark for mark in marks if mark not in old))  # `since` reads the last old one only
        # A negative difference means that the clock was set back.
        is_due = not kept or not 0 <= now - kept[-1][1] < self.seconds / _MARKS
        return (*kept, (upper, now)) if is_due else kept
