"""The names and kinds of a table's columns, which every row must fit.

A kind is that of the first values, or of a type given for the column. Values that fit exactly are converted: whole
numbers to floats, unsigned integers to signed ones, narrow floats to wide ones, and values without nulls to a type that
may have them. Booleans are not numbers. Nulls are of every type that has a place for them. Anything else
is refused, in the statement that has it, so that nothing that a table holds can be refused later.

>>> schema = Schema()
>>> schema.fit("stock", ["item", "price"], (np.array(["nut"]), np.array([0.5])))[1]
array([0.5])
>>> schema.fit("stock", ["price", "item"], (np.array([3]), np.array(["cog"])))[0]
array([3.])
>>> schema.fit("stock", ["item"], (np.array([7]),))
Traceback (most recent call last):
timely.errors.DataError: column 'item' of table 'stock' holds text, not integers such as 7
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, cast

import numpy as np

from differential.data.codes import FLOAT_TYPES, TYPE_NAMES, AnyKind, ColumnKind, kind_of, type_name
from differential.frames.python import type_of
from differential.operators.input import owned
from differential.session.table_data import Column, is_opaque, is_untyped, type_written
from timely.errors import DataError
from timely.lowlevel import LogicalType, Typed, is_null, typed

_INT64 = np.dtype(np.int64)
_WIDTH: dict[AnyKind, int] = {ColumnKind.FLOAT16: 0, ColumnKind.FLOAT32: 1, ColumnKind.FLOAT: 2}


_LOOKED_AT = 1000
"""How many rows of a statement are checked for lists: checking all rows takes twice as long as inserting them."""


class Schema:
    """The kinds of columns that are known, by their names."""

    def __init__(self) -> None:
        # These are replaced, never modified: what is committed is often the same as what is known.
        self._kinds: Mapping[str, AnyKind] = {}
        self._committed: Mapping[str, AnyKind] = self._kinds
        self._shapes: Mapping[str, str] = {}
        self._shapes_committed: Mapping[str, str] = self._shapes
        self._before: tuple[Mapping[str, AnyKind], Mapping[str, str]] = self._kinds, self._shapes

    def declare(self, name: str, example: Column) -> None:
        """Fix the kind of a column to that of an array."""
        kind = kind_of(example)
        self._kinds, self._committed = {**self._kinds, name: kind}, {**self._committed, name: kind}

    def declare_types(self, types: Mapping[str, str]) -> None:
        """Fix the kinds of all columns that have a type, by the names of both."""
        if types != self.types():
            self._kinds = {name: kind_of(typed([], of)) for name, of in types.items()}

    def fit(self, table: str, names: Sequence[str], columns: Sequence[Column]) -> tuple[Column, ...]:
        """Return copies of columns, as the table holds them. Raises DataError, which names the column and a value."""
        kinds, fitting = dict(self._kinds), []
        for name, column in zip(names, columns):
            if type(column) is np.ndarray and column.dtype is _INT64 and kinds.get(name) is ColumnKind.INT:
                fitting.append(column.copy())  # what most columns are, and nothing to convert
                continue
            found = None
            try:
                mine = _of_nulls(column, kinds.get(name)) if is_untyped(column) else owned((column,))[0][0]
                if len(mine):
                    found = kind_of(mine)
                    mine = _fitting(mine, kinds.setdefault(name, found))
            except DataError as error:
                remedy = "" if found is None else _made(kinds[name], found)
                raise DataError(f"column {name!r} of table {table!r} {error}{remedy}") from None
            fitting.append(mine)  # a copy: the program may write to what it has given
        self._kinds = kinds  # only now: a statement that is refused states no kind
        return tuple(fitting)

    def fit_lists(self, table: str, names: Sequence[str], columns: Sequence[Column]) -> None:
        """Learn what the lists in the first rows of columns hold. Raises DataError where one has held another type."""
        lists = {name: column[:_LOOKED_AT] for name, column in zip(names, columns) if is_opaque(column)}
        if not lists:
            return
        values = ((name, value) for name, column in lists.items() for value in np.asarray(column).tolist())
        self._shapes = learned(table, self._shapes, values)

    def unlike_lists(
        self, table: str, names: Sequence[str], columns: Sequence[Column], shapes: dict[str, str]
    ) -> dict[int, str]:
        """Return what is wrong with the rows that `fit_lists` would refuse, by row: without them, it takes the others.

        `shapes` is what the lists hold, at first `shapes()`; what the other rows hold is added to it.
        """
        places = [place for place, column in enumerate(columns) if is_opaque(column)]
        wrong: dict[int, str] = {}
        for row in range(len(columns[0])) if places else ():
            if row - len(wrong) == _LOOKED_AT:  # `fit_lists` looks at no more of the rows that are left
                break
            values = [(names[place], np.asarray(columns[place][row : row + 1]).tolist()[0]) for place in places]
            try:
                shapes.update(learned(table, shapes, values))
            except DataError as error:
                wrong[row] = str(error)
        return wrong

    def shapes(self) -> dict[str, str]:
        """Return what the lists of columns are known to hold, by the columns' names."""
        return dict(self._shapes)

    def learn_lists(self, name: str, column: Column) -> None:
        """Learn what the lists in a column of committed rows hold, from the first that has an item."""
        for row in range(len(column)) if is_opaque(column) else ():
            shape = shape_of(np.asarray(column[row : row + 1]).tolist()[0])
            if shape is not None and shape != "lists":
                self._shapes = {**self._shapes, name: shape}
                self._shapes_committed = {**self._shapes_committed, name: shape}
                return

    def types(self) -> dict[str, str]:
        """Return the names of the types of the columns whose kinds are known, by the columns' names."""
        return {name: type_name(kind) for name, kind in self._kinds.items()}

    def nulls(self, name: str, rows: int) -> Column | None:
        """Return a column of nulls; None if the column is of no type that has them, or of none yet."""
        kind = self._kinds.get(name)
        return None if kind is None or not _has_nulls(kind) else _of_nulls(typed([None] * rows, "value"), kind)

    def keep(self) -> None:
        """Keep the kinds that are known now: rows of these kinds are committed."""
        self._committed, self._shapes_committed = self._kinds, self._shapes

    def forget(self) -> bool:
        """Forget kinds that only uncommitted rows had; return whether there were any."""
        self._before = self._kinds, self._shapes
        self._kinds, self._shapes = self._committed, self._shapes_committed
        return not self.is_as_before

    @property
    def is_as_before(self) -> bool:
        """Whether the kinds are known that the last `forget` has found."""
        return (self._kinds, self._shapes) == self._before


def _of_nulls(column: Column, kind: AnyKind | None) -> Column:
    """Return a column of nulls as one of a kind."""
    if kind is None:
        raise DataError("holds only nulls, which have no type: state one, as in db.table(..., {'column': str | None})")
    if not _has_nulls(kind):
        raise _without_nulls(kind)
    return cast(Column, typed([None] * len(column), type_name(kind)))


def _has_nulls(kind: AnyKind) -> bool:
    """Return whether columns of a kind may hold nulls."""
    return not isinstance(kind, ColumnKind) and type_name(kind) != "uint64"


def _without_nulls(kind: AnyKind) -> DataError:
    written = type_written(f"{type_name(kind)}?") or ""
    stated = f"{written} of differential.frames" if written.startswith("typed(") else f"`{written}`"
    return DataError(f"holds {_shown(kind)} and no nulls: {stated} as its type in db.table() allows them")


def _fitting(column: Column, kind: AnyKind) -> Column:
    """Return a column as one of a kind."""
    found = kind_of(column)
    if column.dtype.kind == "u":
        if not isinstance(kind, ColumnKind) and kind.name.removesuffix("?") == "uint64":
            return _stated(typed(column, "uint64"), found, kind)
        raise DataError(f"holds {int(column.max())}, which is too large for a 64-bit integer")
    if found == kind:
        return column
    if type_name(found) == "uint64" and (np.asarray(column) < 1 << 63).all():
        return _fitting(np.asarray(column).astype(np.int64), kind)
    if not isinstance(found, ColumnKind) and found.name == f"{type_name(kind)}?":
        if is_null(column).any():
            raise _without_nulls(kind)
        return cast(Column, typed(column, type_name(kind)))
    if not isinstance(found, ColumnKind) and found.name.removesuffix("?") in ("int64", "float32", "float16"):
        return _where_present(column, kind)
    if not isinstance(kind, ColumnKind):
        return _stated(column, found, kind)
    wider = column
    if kind in _WIDTH and (found is ColumnKind.INT or (found in _WIDTH and _WIDTH[found] < _WIDTH[kind])):
        wider = column.astype(FLOAT_TYPES[kind])
    if wider is column or not ((wider.astype(column.dtype) == column) | (wider != wider)).all():
        raise _other(column, found, kind)
    return wider


def _where_present(column: Column, kind: AnyKind) -> Column:
    """Return a column of numbers or null as one of a kind of other numbers."""
    missing = is_null(column)
    present = _fitting(np.asarray(column[~missing]), kind)
    if not missing.any():
        return present
    if not _has_nulls(kind):
        raise _without_nulls(kind)
    # Row 0 is a null, and row n the n-th value that is there.
    nulls_first = np.concatenate((_of_nulls(column[:1], kind), present))
    return cast(Column, nulls_first[np.where(missing, 0, np.cumsum(~missing))])


def _stated(column: Column, found: AnyKind, kind: LogicalType) -> Column:
    """Return a column as one of a logical type that its values belong to."""
    base = kind.name.removesuffix("?")
    has_no_nulls = type_name(found) == base
    if not has_no_nulls and isinstance(found, ColumnKind):
        widened = next((each for each, name in TYPE_NAMES.items() if name == base), None)
        if widened is None:
            if base != "uint64" or found is not ColumnKind.INT:
                raise _other(column, found, kind)
        else:
            column = _fitting(column, widened)
    elif not isinstance(found, ColumnKind) and _has_zone(found.name) != _has_zone(base):
        raise _other(column, found, kind)  # without a zone it is not known which instant a time is, or its date
    try:
        return cast(Column, typed(column, kind.name))
    except (DataError, TypeError, ValueError) as error:
        if has_no_nulls:  # one of its values stands for a null
            raise DataError(f"holds {_shown(kind)}, but {error}") from None
        are_decimals = all(type_name(each).startswith("decimal") for each in (found, kind))
        raise (_beyond(column, kind) if are_decimals else _other(column, found, kind)) from None


def _beyond(column: Column, kind: LogicalType) -> DataError:
    """Return the error for decimals that do not all fit a type of decimals; it names a wider type if there is one."""
    value = next(each for each in column.tolist() if each is not None and not _is_of(each, kind))
    precision, scale = map(int, kind.name.removeprefix("decimal(").removesuffix(")").split(", "))
    try:
        wider = type_of([value, Decimal((0, (9,) * precision, -scale))])
    except DataError as error:  # of more digits than any type has
        return DataError(f"holds {_shown(kind)}, not {value!r:.80}: {error}")
    return DataError(
        f"holds {_shown(kind)}, not {value!r:.80}: typed([], '{wider}') of differential.frames as its type in "
        "db.table() allows it"
    )


def _is_of(value: Decimal, kind: LogicalType) -> bool:
    try:
        typed([value], kind.name)
    except DataError:
        return False
    return True


def _has_zone(name: str) -> bool:
    """Return whether the type of this name is one of instants."""
    return name.startswith("timestamp") and "," in name


def _other(column: Column, found: AnyKind, kind: AnyKind) -> DataError:
    one, other = _shown(kind), _shown(found)
    remedy = ""
    if one.startswith("timestamp") and other.startswith("timestamp") and _has_zone(one) != _has_zone(other):
        remedy = (
            ": value.replace(tzinfo=datetime.timezone.utc) states the zone of a time"
            if _has_zone(one)
            else f": typed([], {other!r}) of differential.frames as its type in db.table() makes a column of times "
            "with a zone"
        )
    if type_name(kind).removesuffix("?") == "int64" and column.dtype.kind == "f" and np.isnan(column).any():
        remedy = ": pandas makes floats of whole numbers beside missing values, and convert_dtypes() makes integers"
    return DataError(f"holds {one}, not {other} such as {column[:1].tolist()[0]!r:.100}{remedy}")


def _made(kind: AnyKind, found: AnyKind) -> str:
    """Return the end of an error: an expression that makes a value of one kind of a `value` of another, if one does.

    >>> _made(kind_of(typed([], "date")), ColumnKind.TEXT)
    ': datetime.date.fromisoformat(value) makes one'
    """
    base = type_name(kind).removesuffix("?")
    made = None
    if base.startswith("decimal") and found in (ColumnKind.INT, ColumnKind.FLOAT, ColumnKind.TEXT):
        made = "decimal.Decimal(str(value))"
    elif base in ("float16", "float32") and found is ColumnKind.FLOAT:
        made = f"numpy.{base}(value)"
    elif found is ColumnKind.TEXT:
        of = {"date": "date", "timestamp": "datetime", "time": "time"}.get(base.partition("[")[0])
        made = of and f"datetime.{of}.fromisoformat(value)"
    return f": {made} makes one" if made else ""


def _shown(kind: AnyKind) -> str:
    if isinstance(kind, ColumnKind):
        return kind.value
    return "lists or dicts" if kind.name == "value" else kind.name


def as_type(column: Column, name: str) -> Column:
    """Return a column as one of the type of this name. Raises DataError where its values are not of it.

    >>> as_type(np.array([1, 2]), "float64")
    array([1., 2.])
    """
    kind = kind_of(typed([], name))
    if is_untyped(column):
        return _of_nulls(column, kind)
    if isinstance(column, Typed) and column.type.name.removesuffix("?") == name:
        return cast(Column, typed(column, name))
    return _fitting(column, kind)


SEVERAL = "values of several types"
_SHAPES: tuple[tuple[type, str], ...] = (
    (bool, "booleans"),
    (int, "numbers"),
    (float, "numbers"),
    (str, "text"),
    (bytes, "bytes"),
    (dt.datetime, "timestamps"),
    (dt.date, "dates"),
    (dt.time, "times of day"),
    (dt.timedelta, "durations"),
    (dict, "dicts"),
)
"""What values of these classes are, a class before one that it is derived from."""


def shape_of(value: Any) -> str | None:
    """Return what a value of a list is, in the plural; None for a null.

    The items of lists are of one type, without which no frame of another library has the column. Lists that hold
    several types are possible, as JSON has them: a column whose first list is one takes any other.

    >>> shape_of([["a"], []]), shape_of([1, None, 2.5]), shape_of([1, "a"])
    ('lists of lists of text', 'lists of numbers', 'lists of values of several types')
    """
    if value is None:
        return None
    if not isinstance(value, list):
        return next((shape for of, shape in _SHAPES if isinstance(value, of)), SEVERAL)
    held = {shape for shape in map(shape_of, value) if shape is not None}  # sorted below: sets have no order
    if not held:
        return "lists"
    return f"lists of {reduce(lambda one, other: common_shape(one, other) or SEVERAL, sorted(held))}"


def common_shape(known: str, shape: str) -> str | None:
    """Return the shape that covers a known shape and another one; None if a column cannot hold both.

    >>> common_shape("lists", "lists of text"), common_shape("lists of text", "lists of numbers")
    ('lists of text', None)
    """
    if shape.startswith(known):
        return shape
    return known if known.startswith(shape) or known.endswith(SEVERAL) else None


def learned(table: str, shapes: Mapping[str, str], values: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return what the lists of each column hold: `shapes`, extended by values, each with the name of its column.

    Raises DataError, which names the column and the value, where a column cannot hold both.

    >>> learned("stock", {"sizes": "lists"}, [("sizes", [1, 2])])
    {'sizes': 'lists of numbers'}
    """
    found = dict(shapes)
    for name, value in values:
        if (shape := shape_of(value)) is not None:
            known = found.get(name, shape)
            both = common_shape(known, shape)
            if both is None:
                raise DataError(f"column {name!r} of table {table!r} holds {known}, not {shape} such as {value!r:.40}")
            found[name] = both
    return found
