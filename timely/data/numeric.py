"""Numbers beyond plain columns: those that may be null, unsigned ones of 64 bits, and decimals."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.comparisons import NUMBERS
from timely.data.logical import NULL, Array, Ints, LogicalType, nulled, objects
from timely.errors import DataError

_SIGN = -1 << 63
_MAGNITUDE = np.int64((1 << 63) - 1)
_MOST_EXACT = 1 << 53
_EXACTLY = Context(prec=100, traps=[Inexact, InvalidOperation])


def float_codes(column: Array) -> Ints:
    """Return int64 codes that order as floats do: 0.0 and -0.0 have one code, and NaN another, the greatest of all.

    >>> float_codes(np.array([-0.0, 0.0, np.nan, -np.nan])).tolist()
    [0, 0, 9221120237041090560, 9221120237041090560]
    """
    # The sum makes 0.0 of -0.0.
    floats = column.astype(np.float64) + 0.0
    missing = np.isnan(floats)
    if missing.any():
        floats[missing] = np.nan
    bits = floats.view(np.int64)
    # The bits of floats order as integers if the sign is 0. If it is 1 they order in reverse, until all other bits are
    # flipped.
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def code_floats(codes: Ints) -> NDArray[np.float64]:
    """Return the floats that `float_codes` encodes so."""
    return (codes ^ ((codes >> 63) & _MAGNITUDE)).view(np.float64)


class Numbers(LogicalType):
    """Numbers of a NumPy type, or null where the name ends in "?"."""

    compared_as = NUMBERS
    scalars: tuple[type, ...] = (int, np.integer)

    def __init__(self, name: str, base: str) -> None:
        super().__init__(name)
        self.base = np.dtype(base)
        self.is_nullable = self.is_strict = name.endswith("?")

    def store(self, values: Any) -> Array:
        missing = self._missing(values)
        stored = np.full(len(values), NULL, np.int64)
        stored[~missing] = self._codes(self._present(values, missing))
        clash = (stored == NULL) & ~missing
        if self.is_nullable and clash.any():
            raise self.refused(values, int(np.argmax(clash)), "stands for a null")
        return stored

    def plain(self, values: Any) -> Array:
        """Return values, none of which is null, as an array of NumPy's type."""
        return self._present(values, self._missing(values))

    def array(self, storage: Array) -> Array:
        return storage

    def to_list(self, storage: Array) -> list[Any]:
        missing = self.nulls(storage)
        return nulled(self.array(np.where(missing, 0, storage)).tolist(), missing)

    def nulls(self, storage: Array) -> NDArray[np.bool_]:
        return super().nulls(storage) if self.is_nullable else np.zeros(len(storage), np.bool_)

    def _missing(self, values: Any) -> NDArray[np.bool_]:
        """Return which values are null. Raises DataError where this type has no nulls."""
        if isinstance(values, np.ma.MaskedArray):
            missing: NDArray[np.bool_] = np.ma.getmaskarray(values)
        elif isinstance(values, np.ndarray) and values.dtype.kind != "O":
            return np.zeros(len(values), np.bool_)
        else:
            missing = np.array([value is None for value in values], np.bool_)
        if missing.any() and not self.is_nullable:
            raise self.refused(values, int(np.argmax(missing)), "is a null")
        return missing

    def _present(self, values: Any, missing: NDArray[np.bool_]) -> Array:
        """Return the values that are not missing as an array of `base`."""
        if isinstance(values, np.ndarray) and values.dtype.kind != "O":
            array = np.ma.getdata(values)
            return self._checked(array[~missing] if missing.any() else array)
        if not set(map(type, values)) <= {self.scalars[0], NoneType}:
            for row, item in enumerate(values):
                if item is not None and (not isinstance(item, self.scalars) or self._is_other(item)):
                    raise self.refused(values, row, f"is of class {type(item).__name__}")
        items = [item for item in values if item is not None]
        try:
            return np.array(items, self.base)
        except OverflowError:
            info = np.iinfo(self.base)
            row = next(n for n, item in enumerate(values) if item is not None and not info.min <= item <= info.max)
            raise self.refused(values, row, "is out of range") from None

    def _is_other(self, item: Any) -> bool:
        return isinstance(item, (bool, np.bool_, np.timedelta64)) and self.base.kind != "b"

    def _checked(self, values: Array) -> Array:
        """Return an array as one of `base`. Raises DataError where a value would change."""
        if values.dtype.kind == "u" and int(values.max(initial=0)) >= 1 << 63:
            raise self.refused(values, int(np.argmax(values)), "is out of range")
        return self._of_kinds("iu", values)

    def _of_kinds(self, kinds: str, values: Array) -> Array:
        if values.dtype.kind not in kinds:
            raise DataError(f"a column of {values.dtype} is not one of {self.name}")
        return values.astype(self.base, copy=False)

    def _codes(self, values: Array) -> Ints:
        return values


class Unsigned(Numbers):
    """Integers from 0 to 2 ** 64 - 1. Functions see uint64."""

    def array(self, storage: Array) -> Array:
        return (storage ^ _SIGN).view(np.uint64)

    def _checked(self, values: Array) -> Array:
        if values.dtype.kind == "i" and int(values.min(initial=0)) < 0:
            raise self.refused(values, int(np.argmin(values)), "is out of range")
        return self._of_kinds("iu", values)

    def _codes(self, values: Array) -> Ints:
        return values.view(np.int64) ^ _SIGN


class Booleans(Numbers):
    """Booleans or null."""

    scalars = (bool, np.bool_)

    def array(self, storage: Array) -> Array:
        return storage.astype(np.bool_)

    def _checked(self, values: Array) -> Array:
        return self._of_kinds("b", values)

    def _codes(self, values: Array) -> Ints:
        return values.astype(np.int64)


class Floats(Numbers):
    """Floats or null; NaN is a float, and comes before null."""

    scalars = (float, int, np.floating, np.integer)

    def array(self, storage: Array) -> Array:
        return code_floats(storage).astype(self.base, copy=False)

    def _present(self, values: Any, missing: NDArray[np.bool_]) -> Array:
        array = super()._present(values, missing)
        if self._may_round(values):
            rounded = [row for row, item in enumerate(values) if item is not None and not _is_exact(item, self.base)]
            if rounded:
                raise self.refused(values, rounded[0], "would be rounded")
        return array

    def _checked(self, values: Array) -> Array:
        if values.dtype.itemsize > self.base.itemsize:
            raise DataError(f"a column of {values.dtype} is not one of {self.name}")
        return self._of_kinds("f", values)

    def _codes(self, values: Array) -> Ints:
        return float_codes(values)

    def _may_round(self, values: Any) -> bool:
        """Return whether to look at each value: not at Python's floats, and whole numbers that are exact as floats."""
        if isinstance(values, np.ndarray) and values.dtype.kind != "O":
            return False
        if self.base != np.float64 or not set(map(type, values)) <= {float, int, NoneType}:
            return True
        return max((abs(item) for item in values if type(item) is int), default=0) > _MOST_EXACT


def _is_exact(item: Any, base: np.dtype[Any]) -> bool:
    """Return whether a number is one of a type of floats."""
    if item != item:
        return True
    with np.errstate(over="ignore"):
        return bool(base.type(item).item() == (item.item() if isinstance(item, np.generic) else item))


class Decimals(LogicalType):
    """Decimals of at most 18 digits, `scale` of them after the point: exact, stored as whole numbers.

    Functions see an array of `decimal.Decimal`, with None for a null.
    """

    compared_as = NUMBERS
    is_opaque = True

    def __init__(self, name: str, precision: str, scale: str) -> None:
        super().__init__(name)
        self.precision, self.scale = int(precision), int(scale)
        if not 1 <= self.precision <= 76 or self.scale > self.precision:
            raise DataError(
                f"{name} is not a type: decimals have from 1 to 76 digits, of which the last are after the point"
            )

    def store(self, values: Any) -> Array:
        items = list(values)
        numbers = self._all_unscaled(items)
        if numbers is None:
            numbers = [None if item is None else self._unscaled(items, row) for row, item in enumerate(items)]
        return self.of_unscaled(numbers)

    def of_unscaled(self, numbers: list[int | None]) -> Array:
        """Return the storage of whole numbers, each a decimal times ten to the power of the scale."""
        return np.array([NULL if number is None else number for number in numbers], np.int64)

    def unscaled(self, storage: Array) -> list[int | None]:
        """Return decimals as whole numbers, as `of_unscaled` receives them."""
        return [None if number == NULL else number for number in storage.tolist()]

    def array(self, storage: Array) -> Array:
        return objects(self.to_list(storage))

    def to_list(self, storage: Array) -> list[Any]:
        scale = -self.scale
        return [
            None if number is None else Decimal((int(number < 0), tuple(map(int, str(abs(number)))), scale))
            for number in self.unscaled(storage)
        ]

    def _all_unscaled(self, items: list[Any]) -> list[int | None] | None:
        """Return decimals as whole numbers, in a tenth of the time; None where one of the items is to be looked at."""
        if not set(map(type, items)) <= {Decimal, NoneType}:
            return None
        try:
            scaled = [item if item is None else _EXACTLY.scaleb(item, self.scale) for item in items]
            numbers = [item if item is None else int(item) for item in scaled]
        except (ArithmeticError, ValueError):  # rounded, or not finite
            return None
        fits = max((abs(number) for number in numbers if number is not None), default=0) < 10**self.precision
        return numbers if fits and numbers == scaled else None

    def _unscaled(self, items: list[Any], row: int) -> int:
        item = items[row]
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, (Decimal, int, np.integer)):
            raise self.refused(items, row, f"is of class {type(item).__name__}")
        number = Decimal(int(item)) if not isinstance(item, Decimal) else item
        if not number.is_finite():
            raise self.refused(items, row, "is not finite")
        sign, digits, exponent = number.as_tuple()
        whole = int("".join(map(str, digits)) or "0")
        shift = int(exponent) + self.scale
        if shift < 0:
            # A larger power leaves the same rest, since `whole` has fewer digits, and may take very long to compute.
            whole, rest = divmod(whole, 10 ** min(-shift, len(digits) + 1))
            if rest:
                raise self.refused(items, row, f"has more than {self.scale} digits after the point")
        elif whole and shift + len(digits) > self.precision:
            raise self.refused(items, row, f"has more than {self.precision} digits")
        else:
            whole *= 10**shift if whole else 1
        if whole >= 10**self.precision:
            raise self.refused(items, row, f"has more than {self.precision} digits")
        return -whole if sign else whole


class WideDecimals(Decimals):
    """Decimals of more than 18 digits, stored as bytes that order as the numbers do."""

    stores = "O"

    def __init__(self, name: str, precision: str, scale: str) -> None:
        super().__init__(name, precision, scale)
        self.width = 16 if self.precision <= 38 else 32

    def of_unscaled(self, numbers: list[int | None]) -> Array:
        offset = 1 << (8 * self.width - 1)
        return objects(
            [self._null if number is None else (number + offset).to_bytes(self.width, "big") for number in numbers]
        )

    def unscaled(self, storage: Array) -> list[int | None]:
        offset = 1 << (8 * self.width - 1)
        return [int.from_bytes(item, "big") - offset if len(item) == self.width else None for item in storage.tolist()]

    def of_cells(self, cells: NDArray[np.uint8]) -> Array:
        """Return the storage of decimals given by their bytes, uint8[rows, width], the least significant first."""
        turned = np.ascontiguousarray(cells[:, ::-1])
        # A number in two's complement, with the sign bit flipped, is the number plus the offset of `of_unscaled`.
        turned[:, 0] ^= 0x80
        data, width = turned.tobytes(), self.width
        return objects([data[at : at + width] for at in range(0, len(data), width)])

    def cells(self, storage: Array) -> NDArray[np.uint8]:
        """Return the bytes of decimals as `of_cells` receives them; of a null, any."""
        data = b"".join([item[: self.width] for item in storage.tolist()])
        cells = np.frombuffer(data, np.uint8).reshape(-1, self.width)[:, ::-1].copy()
        cells[:, -1] ^= 0x80
        return cells

    def nulls(self, storage: Array) -> NDArray[np.bool_]:
        return np.fromiter((len(item) != self.width for item in storage.tolist()), np.bool_, len(storage))

    def null_storage(self, length: int) -> Array:
        return objects([self._null] * length)

    @property
    def _null(self) -> bytes:
        # One byte more than any value, and none of its bytes less: it orders last.
        return b"\xff" * (self.width + 1)


def _decimals(name: str, precision: str, scale: str) -> Decimals:
    return (Decimals if int(precision) <= 18 else WideDecimals)(name, precision, scale)


PATTERNS: tuple[tuple[str, Callable[..., LogicalType]], ...] = (
    (r"(int64)\?", Numbers),
    (r"(uint64)\??", Unsigned),
    (r"(bool)\?", Booleans),
    (r"(float64|float32|float16)\?", Floats),
    (r"decimal\((\d{1,3}), (\d{1,3})\)", _decimals),
)
"""The names of the types of this module, and what makes each of what its name captures."""
