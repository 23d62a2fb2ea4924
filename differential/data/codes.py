"""From columns to codes and back.

Below the operators everything is int64: one code for a row's key and one for its value. This module is the border.

- Integers and booleans are their own codes. A float's code is the bit pattern it has in 64 bits, changed so that codes
  order as the numbers do and equal numbers have equal codes: -0.0 becomes 0.0, and NaN has one code, the greatest.
  Floats keep the width they have: 0.1 is one number in 32 bits and another one in 64, so columns of both widths are
  refused as columns of two kinds.
- A typed column has the codes of what it is stored as, which equal and order as its values do. Its kind is its type.
- Text and bytes are interned: a worker-wide table gives each distinct string a small number, and reclaims the number
  when nothing has it any more (see `differential.data.interning`). Decoding makes a column of these numbers, which is
  encoded again without a lookup (see `differential.data.interned`). Codes never leave their worker.
- Several columns whose codes are small are packed into one word, which keeps their order; other rows of several columns
  are interned as tuples of codes. Small are two columns of up to 31 and 32 bits, three of 21,
  four of 15, five of 12, six of 10; a thirty-second of that range, for two columns half of it, is negative.
- No columns at all (the value of a record that is only a key) is the absent column.

An `Encoder` belongs to one part (key or value) of one arrangement. It learns the kinds of its columns from the first
rows and refuses rows of other kinds afterwards: a column that is an int today and a text tomorrow is a mistake, not
data. Operators that compare the codes of two encoders, such as a join those of its keys, refuse different kinds, too
(`Encoder.compare_with`). Every worker learns the kinds of all workers' rows (see `differential.data.pact`), so a
mistake is refused even if the rows in question never meet on one worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from differential.data.interned import codes_of, of_codes
from differential.data.interning import Interner
from differential.kernels.compile import NOTHING
from differential.kernels.fields import append_field, field
from differential.kernels.value_order import INTERNED
from timely.errors import DataError
from timely.lowlevel import LogicalType, Typed, code_floats, float_codes

Array = NDArray[Any]
Codes = NDArray[np.int64]


class Numbering(NamedTuple):
    """What returns the numbers of the rows of a column of strings, and of tuples."""

    of_strings: Callable[[Array], Codes]
    of_tuples: Callable[[list[Codes], tuple[int, ...]], Codes]


class ColumnKind(Enum):
    """What a column holds."""

    INT = "integers"
    BOOL = "booleans"
    FLOAT = "floats"
    FLOAT32 = "32-bit floats"
    FLOAT16 = "16-bit floats"
    TEXT = "text"
    BYTES = "bytes"


AnyKind = ColumnKind | LogicalType
"""What a column holds, as far as codes distinguish it."""

_KIND_OF = {
    "i": ColumnKind.INT,
    "u": ColumnKind.INT,
    "b": ColumnKind.BOOL,
    "T": ColumnKind.TEXT,
    "U": ColumnKind.TEXT,
    "S": ColumnKind.BYTES,
    "O": ColumnKind.BYTES,
}
_FLOATS = {8: ColumnKind.FLOAT, 4: ColumnKind.FLOAT32, 2: ColumnKind.FLOAT16}
"""The kinds of floats by the bytes of one."""
FLOAT_TYPES = {ColumnKind.FLOAT: np.float64, ColumnKind.FLOAT32: np.float32, ColumnKind.FLOAT16: np.float16}
TYPE_NAMES = {
    ColumnKind.INT: "int64",
    ColumnKind.BOOL: "bool",
    ColumnKind.FLOAT: "float64",
    ColumnKind.FLOAT32: "float32",
    ColumnKind.FLOAT16: "float16",
    ColumnKind.TEXT: "text",
    ColumnKind.BYTES: "bytes",
}
"""The names of the types of columns of these kinds."""
_STRINGS = {ColumnKind.TEXT, ColumnKind.BYTES}
_BYTES = ColumnKind.BYTES
_STORED = {"i": ColumnKind.INT, "T": ColumnKind.TEXT, "O": ColumnKind.BYTES}
"""The kinds as which columns of logical types are stored."""

PACKED_LOW = 1 << 31
PACKED_HIGH = 1 << 30
MOST_PACKED = 6


class BitField(NamedTuple):
    """Where a column is in a packed word: its item plus `offset` takes `bits` bits, and is from `least` to `most`."""

    bits: int
    offset: int
    least: int
    most: int


def fields(count: int) -> list[BitField]:
    """Return the fields of a word of several columns, the first the most significant, whose bits go on above."""
    # Every word is less than `INTERNED`, 2 ** 62. The bounds of two columns ensure this; with more columns, the first
    # field is negative.
    if count == 2:
        return [BitField(64, 0, -PACKED_HIGH, PACKED_HIGH - 1), BitField(32, PACKED_LOW, -PACKED_LOW, PACKED_LOW - 1)]
    bits = 63 // count
    below, above = 1 << (bits - 5), 1 << bits
    others = BitField(bits, below, -below, above - below - 1)
    return [others._replace(bits=64, offset=below - above), *([others] * (count - 1))]


class Encoder:
    """Encodes and decodes the columns of one part of one arrangement. Errors do not mention the last `hidden` ones.

    `names` are those of the columns, if they are known, for errors.
    If it `adds`, a diff is a quantity that the program adds up, not how often a record occurs.
    """

    __slots__ = ("_compared", "adds", "hidden", "interner", "kinds", "names", "ordered", "part")

    def __init__(self, interner: Interner, part: str, kinds: tuple[AnyKind, ...] | None = None) -> None:
        self.interner = interner
        self.part = part
        self.names: tuple[str, ...] = ()
        self.adds = False
        self.hidden = 0
        self.kinds = kinds
        self._compared: dict[Callable[[], None], Encoder] = {}
        self.ordered = kinds is None or self._orders(kinds)

    @staticmethod
    def _orders(kinds: tuple[AnyKind, ...]) -> bool:
        return len(kinds) <= MOST_PACKED and not any(map(is_string, kinds))

    def encode(self, columns: tuple[Array, ...]) -> Codes:
        """Return one code per row; the absent column when there are no columns."""
        if len(columns) == 1:
            column = columns[0]
            if column.dtype is _INT64 and self.kinds == _ONE_INT:
                return column if column.flags.carray else column.copy()
        kinds = self.learn(columns)
        if not columns:
            return NOTHING
        return self._codes(columns, kinds, Numbering(self.interner.encode_strings, self.interner.encode_tuples))

    def find(self, columns: tuple[Array, ...]) -> Codes:
        """Return the code of each row that `encode` has encoded; for others, a code that no row has.

        So a lookup uses up no numbers. Two rows that were never encoded may have the same code. The absent column when
        there are no columns.
        """
        kinds = self.learn(columns)
        if not columns:
            return NOTHING
        return self._codes(columns, kinds, Numbering(self.interner.find_strings, self.interner.find_tuples))

    def decode(self, codes: Codes, length: int) -> tuple[Array, ...]:
        """Return the columns of `length` rows of codes."""
        kinds = self.kinds
        if kinds == _ONE_INT:
            return (codes if len(codes) else np.zeros(length, np.int64),)
        if not kinds:
            return ()
        if not len(codes):
            codes = np.zeros(length, np.int64)
        parts = [codes] if len(kinds) == 1 else self._separate(codes, len(kinds))
        return tuple(self._decode(part, kind) for part, kind in zip(parts, kinds))

    def adopt(self, other: Encoder) -> None:
        """Give codes the meaning that they have in `other`, of the same worker."""
        self.kinds, self.ordered = other.kinds, other.ordered

    def learn(self, columns: tuple[Array, ...]) -> tuple[AnyKind, ...]:
        """Learn the kinds of columns and return them. Raises DataError where they differ from those known."""
        kinds = tuple([kind_of(column) for column in columns])
        if kinds != self.kinds:
            self._learn(kinds)
        return kinds

    def agrees(self, other: Encoder) -> bool:
        """Return whether equal codes mean equal values in both encoders."""
        return tuple(map(_comparable, self.kinds or ())) == tuple(map(_comparable, other.kinds or ()))

    def compare_with(self, other: Encoder, report: Callable[[], None]) -> None:
        """Call `report` as soon as this encoder and `other` know different kinds."""
        if other is not self:
            # On both sides, because either may learn its kinds last.
            self._compared[report] = other
            other._compared[report] = self
            self._report_unlike(other, report)

    def stop_comparing(self, report: Callable[[], None]) -> None:
        """Undo `compare_with`."""
        other = self._compared.pop(report, None)
        if other is not None:
            other._compared.pop(report, None)

    @property
    def interns(self) -> bool:
        """Whether a code may be, or contain, the number of an interned item."""
        kinds = self.kinds
        return kinds is not None and (len(kinds) > 1 or (len(kinds) == 1 and is_string(kinds[0])))

    def mark(self, codes: Codes) -> None:
        """Mark the numbers in `codes`, of the tuples and of what is in them, as in use (see `Interner.collect`)."""
        interner = self.interner
        kinds = self.kinds or ()
        if len(kinds) == 1:
            if self.interns:
                interner.mark(codes)
            return
        texts = self._strings()
        # Packed words are less than `INTERNED`. The strings in a tuple are marked when the tuple itself first is.
        interned = codes >= INTERNED
        fresh = interner.mark(codes[interned] - INTERNED)
        for part in (codes[~interned], fresh + INTERNED):
            if texts and len(part):
                columns = self._separate(part, len(kinds))
                for position in texts:
                    interner.mark(columns[position])

    def order(self) -> list[int]:
        """Return the order of values as kernels read it (`differential.kernels.value_order`)."""
        strings = [int(is_string(kind)) for kind in self.kinds or ()]
        count = len(strings)
        layout = fields(count) if 1 < count <= MOST_PACKED else [BitField(0, 0, 0, 0)]
        addresses = self.interner.strings.address, self.interner.tuples.address
        return [count, sum(strings), *addresses, layout[-1].bits, layout[0].offset, layout[-1].offset, *strings]

    def describe(self) -> str:
        """Return the kinds of the columns, for people."""
        return " and ".join([kind.value for kind in self.kinds or ()]) or "nothing"

    def nulls_on_one_side(self, other: Encoder) -> tuple[int, ...]:
        """Return which columns may have nulls here or in `other` alone; none if equal codes mean different values.

        A value has the same code whether its column may have nulls or not, except for bytes.
        """
        one_sided = []
        for position, kinds in enumerate(zip(self.kinds or (), other.kinds or ())):
            if len({_comparable(kind) for kind in kinds}) > 1:
                one, another = [type_name(kind).removesuffix("?") for kind in kinds]  # without the mark of nulls
                if one != another or one == "bytes":
                    return ()
                one_sided.append(position)
        return tuple(one_sided)

    def _strings(self) -> tuple[int, ...]:
        return tuple(position for position, kind in enumerate(self.kinds or ()) if is_string(kind))

    def _learn(self, kinds: tuple[AnyKind, ...]) -> None:
        known = self.kinds
        if known is not None:
            if len(kinds) != len(known):
                before, now = len(known) - self.hidden, len(kinds) - self.hidden
                raise DataError(f"the {self.part} had {before} column(s) and now has {now}")
            kinds = settled(known, kinds, self.part, self.names)
        self.kinds = kinds
        # It never becomes true again: rows that were interned as tuples may still be there.
        self.ordered = self.ordered and self._orders(kinds)
        for report, other in self._compared.items():
            self._report_unlike(other, report)

    def _report_unlike(self, other: Encoder, report: Callable[[], None]) -> None:
        if self.kinds is not None and other.kinds is not None and not self.agrees(other):
            report()

    def _codes(self, columns: tuple[Array, ...], kinds: tuple[AnyKind, ...], numbers: Numbering) -> Codes:
        """Return one code per row, with the numbers of strings and tuples from `numbers`.

        A row with an `ABSENT` string is outside every packed word and in no tuple, and so is absent itself.
        """
        codes = [self._encode(column, kind, numbers) for column, kind in zip(columns, kinds)]
        return codes[0] if len(codes) == 1 else self._combine(codes, numbers)

    def _encode(self, column: Array, kind: AnyKind, numbers: Numbering) -> Codes:
        if kind is ColumnKind.INT or kind is ColumnKind.BOOL:
            if column.dtype == np.uint64 and len(column) and int(column.max()) >= 1 << 63:
                raise DataError(
                    f"{int(column.max())} in the {self.part} is too large for a 64-bit integer: typed(column, 'uint64')"
                    " of differential.frames makes a column of unsigned integers"
                )
            return column.astype(np.int64)
        if isinstance(kind, LogicalType):
            return self._encode(cast(Typed, column).storage, _STORED[kind.stores], numbers)
        if kind in FLOAT_TYPES:
            return float_codes(column)
        codes = codes_of(column, self.interner)
        if codes is not None:
            return codes
        return numbers.of_strings(column)

    def _decode(self, codes: Codes, kind: AnyKind) -> Array:
        if kind is ColumnKind.INT:
            return codes
        if isinstance(kind, LogicalType):
            return Typed(kind, self._decode(codes, _STORED[kind.stores]))  # type: ignore[return-value]
        if kind is ColumnKind.BOOL:
            return codes.astype(np.bool_)
        if kind in FLOAT_TYPES:
            return code_floats(codes).astype(FLOAT_TYPES[kind], copy=False)
        return of_codes(self.interner, codes, kind is ColumnKind.TEXT)

    def _combine(self, codes: list[Codes], numbers: Numbering) -> Codes:
        if len(codes) > MOST_PACKED:
            return self._intern_rows(codes, numbers)
        words, some = np.zeros(len(codes[0]), np.int64), False
        layout = fields(len(codes))
        for column, (bits, offset, least, most) in zip(codes, layout):
            column = column if column.flags.carray else column.copy()
            # The first field has 64 bits, but nothing before it that would have to be shifted.
            outside = append_field(words, column, bits % 64, offset, least, most)
            if outside and outside == len(words):
                return self._intern_rows(codes, numbers)  # no row fits, as with a column of floats
            some = some or outside > 0
        if some:
            large = np.zeros(len(words), np.bool_)
            for column, (_, _, least, most) in zip(codes, layout):
                large |= (column < least) | (column > most)
            # What was packed for these rows ran into other fields, and is replaced.
            words[large] = self._intern_rows([column[large] for column in codes], numbers)
        return words

    def _intern_rows(self, codes: list[Codes], numbers: Numbering) -> Codes:
        self.ordered = False
        return numbers.of_tuples(codes, self._strings()) + INTERNED

    def _separate(self, codes: Codes, count: int) -> list[Codes]:
        interned = codes >= INTERNED
        if interned.all():
            return self.interner.decode_tuples(codes - INTERNED, count)
        columns, shift = [], 0
        codes = codes if codes.flags.carray else codes.copy()
        for bits, offset, _, _ in reversed(fields(count)):
            columns.append(field(codes, shift, bits, offset))
            shift += bits
        columns.reverse()
        if interned.any():
            for column, items in zip(columns, self.interner.decode_tuples(codes[interned] - INTERNED, count)):
                column[interned] = items
        return columns


_ONE_INT: Final = (ColumnKind.INT,)
_INT64: Final = np.dtype(np.int64)


def is_string(kind: AnyKind) -> bool:
    """Return whether columns of a kind are, or are stored as, text or bytes."""
    return kind.stores != "i" if isinstance(kind, LogicalType) else kind in _STRINGS


def _comparable(kind: AnyKind) -> AnyKind:
    return ColumnKind.INT if kind is ColumnKind.BOOL else kind


def kind_of(column: Array) -> AnyKind:
    """Return what a column holds. Raises DataError where it is of a type that collections do not have.

    >>> kind_of(np.array([0.5], np.float32))
    <ColumnKind.FLOAT32: '32-bit floats'>
    """
    dtype = column.dtype
    kind = _KIND_OF.get(dtype.kind)
    if kind is None and dtype.kind == "f":
        kind = _FLOATS.get(dtype.itemsize)
    if (kind is None or kind is _BYTES) and isinstance(column, Typed):
        return column.type
    if kind is None:
        remedy = ": .astype(np.float64) rounds it to 64 bits" if dtype.kind == "f" else ""
        raise DataError(f"a column of dtype {dtype} cannot be part of a collection{remedy}")
    return kind


def settled(
    known: Sequence[AnyKind], kinds: Sequence[AnyKind], part: str, names: Sequence[str] = ()
) -> tuple[AnyKind, ...]:
    """Return the kinds of columns, equally many, that are `known` to be of some kinds and are now of `kinds`.

    Booleans beside integers are integers. Raises DataError, which names the column, for other differences.

    >>> settled((ColumnKind.INT, ColumnKind.BOOL), (ColumnKind.BOOL, ColumnKind.FLOAT), "key")
    Traceback (most recent call last):
    ...
    timely.errors.DataError: column 1 of the key held booleans and now holds floats: convert it, so that it is ...
    """
    for position, (old, new) in enumerate(zip(known, kinds)):
        if _comparable(old) != _comparable(new):
            column = f"{names[position]!r}" if position < len(names) else f"{position} of the {part}"
            raise DataError(f"column {column} held {old.value} and now holds {new.value}: {_remedy(old, new)}")
    return tuple([old if old == new else ColumnKind.INT for old, new in zip(known, kinds)])


def _remedy(one: AnyKind, other: AnyKind) -> str:
    if {one, other} <= set(FLOAT_TYPES):
        return "convert one with .astype(), for most numbers, such as 0.1, are not the same in both widths"
    of = one if isinstance(one, LogicalType) else other
    by = f" with typed(column, {of.name!r}) of differential.frames" if isinstance(of, LogicalType) else ""
    return f"convert it{by}, so that it is always the same"


def type_name(kind: AnyKind) -> str:
    """Return the name of the type of a column of a kind.

    >>> type_name(ColumnKind.INT)
    'int64'
    """
    return TYPE_NAMES[kind] if isinstance(kind, ColumnKind) else kind.name
