"""Names that a definition uses: those that exist, a suggestion for one that does not, and those of a join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from timely.errors import BuildError, SessionError
from timely.lowlevel import refusal, user_origin


def columns_hint(name: str, names: Iterable[str]) -> str:
    """Return a text for an error about a column that does not exist: all columns, and the most similar one.

    >>> columns_hint("totl", ["customer", "total"])
    "the columns are customer, total; did you mean 'total'?"
    """
    there = list(names)
    return f"the columns are {', '.join(there)}{meant(name, there)}"


def refuse_name(name: object) -> None:
    """Raise SessionError for what cannot be the name of a table or view."""
    if not isinstance(name, str) or not name:
        raise SessionError(f"the name of a table or view must be text, not {name!r:.80}")


def meant(name: object, names: Iterable[str]) -> str:
    """Return the end of an error that suggests the most similar of some names; an empty text if none is similar.

    >>> meant("order", ["orders", "people"])
    "; did you mean 'orders'?"
    """
    near = get_close_matches(name, list(names), 1) if isinstance(name, str) else []  # it compares texts alone
    return f"; did you mean {near[0]!r}?" if near else ""


def known_columns(
    names: tuple[str, ...] | None, what: str, wanted: Sequence[Any], where: str = "there is", unnamed: str | None = None
) -> tuple[str, ...]:
    """Return the names of all columns. Raises BuildError unless the wanted ones are among them, and different.

    `unnamed` is the reason why there are no names, if it is known.

    >>> known_columns(("customer", "total"), "group_by", ["customer"])
    ('customer', 'total')
    """
    here = f"{what} (at {user_origin()})"
    if names is None:
        refuse_unnamed(what, unnamed)
        raise refusal(what, "the columns have no names here; give them with .named(name, ...)")
    if not wanted and what == "keyed_by":
        raise BuildError(f"{here} needs a column")
    for name in wanted:
        if callable(name):
            raise refusal(what, f"a computed column needs a name, as in select({names[0]!r}, name=function)")
        if not isinstance(name, str):
            raise BuildError(f"{here} takes column names as separate arguments, not {name!r:.80}")
        if name not in names:
            raise refusal(what, f"{where} no column {name!r}: {columns_hint(name, names)}")
    if len(set(wanted)) < len(wanted):
        raise refusal(what, f"{', '.join(wanted)} names a column twice")
    return names


def names_twice(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once, sorted.

    >>> names_twice(["b", "a", "b"])
    ['b']
    """
    return sorted({each for each in names if names.count(each) > 1})


def lost_names(names: Sequence[str]) -> str:
    """Return why the columns of a join have no names: two of them would have the same."""
    return f"join (at {user_origin()}) has the columns {', '.join(map(repr, names_twice(names)))} of both sides"


def refuse_unnamed(what: str, unnamed: str | None) -> None:
    """Raise BuildError if columns have no names for a reason that is known."""
    if unnamed is not None:
        raise refusal(
            what,
            f"the columns have no names, because {unnamed}: join(other, on='column') after select(new='old') of one "
            "side keeps them, and named(name, ...) gives others",
        )


def refuse_stranger(what: str, other: object) -> None:
    """Raise BuildError for a join with anything but a collection, such as a table instead of its rows."""
    if not hasattr(other, "arrange_by_key"):
        shown = f"{type(other).__name__} {getattr(other, 'name', other)!r:.40}"
        raise refusal(
            what,
            f"{shown} is not a collection of this definition: the tables and views of the session are attributes of "
            "what the definition receives, as t.orders is",
        )


def refuse_names(known: tuple[str, ...] | None, names: Sequence[object], keys: int) -> None:
    """Raise BuildError for what cannot be the names of the columns of a collection, which may have names already."""
    are_texts = all(isinstance(name, str) for name in names)
    if not are_texts or len(set(names)) < len(names) or not names or len(names) < keys:
        raise refusal(
            "named",
            f"{', '.join(map(repr, names))} cannot be the names of the columns: give each column, those of the key "
            "included, a different text",
        )
    if known is not None and len(known) != len(names):
        remedy = "; select('column', ...) keeps some of the columns" if len(names) < len(known) else ""
        raise refusal(
            "named",
            f"the collection has the {len(known)} columns {', '.join(known)}, but {len(names)} names: "
            f"{', '.join(map(str, names))}{remedy}",
        )


def refuse_keys(keys: object, columns: int) -> None:
    """Raise BuildError for what is not a number of key columns of `select`, of this many columns.

    >>> refuse_keys(1, 2)
    """
    if not isinstance(keys, Integral) or isinstance(keys, bool) or not 1 <= int(keys) <= columns:
        raise refusal(
            "select",
            f"`keys` is the number of key columns, here from 1 to {columns}, not {keys!r:.80}; a column is renamed or "
            "computed under another name, and named() gives it this one",
        )


def refuse_other_columns(what: str, names: tuple[str, ...] | None, other: tuple[str, ...] | None) -> None:
    """Raise BuildError if columns that are put together by position are others, or in another order.

    >>> refuse_other_columns("concat", ("customer", "total"), ("client", "total"))
    """
    if not names or not other:
        return
    both = f"{', '.join(names)}, and of another one {', '.join(other)}"
    if len(names) != len(other):
        raise refusal(what, f"the columns of one collection are {both}")
    if names != other and set(names) == set(other):
        wanted = ", ".join(map(repr, names))
        raise refusal(
            what,
            f"the columns of one collection are {both}, and they are put together by position, in which the key of a "
            f"table comes first: select({wanted}) puts them in the same order, and named({wanted}) takes them as they "
            "are",
        )


def refuse_other_types(
    what: str, here: Mapping[str, str], there: Mapping[str, str], pairs: Iterable[tuple[str, str]], *, are_keys: bool
) -> None:
    """Raise BuildError if columns that are put together, or compared as keys, are known to be of different types.

    Keys may have nulls on one side alone, except for bytes.

    `here` and `there` have the names of types by those of columns; `pairs` are names here and there.

    >>> refuse_other_types("join", {"id": "int64"}, {"id": "bool"}, [("id", "id")], are_keys=True)
    """
    for ours, theirs in pairs:
        one, other = here.get(ours), there.get(theirs)
        if one is None or other is None or one == other:
            continue
        pair = {one, other}
        if are_keys and (pair == {"int64", "bool"} or (one.rstrip("?") == other.rstrip("?") != "bytes")):
            continue
        name, less = (ours, one) if other == f"{one}?" else (theirs, other)
        if pair == {less, f"{less}?"}:
            remedy = (
                ". One side may have nulls, and the other not: nullable(column), of differential.frames, makes them "
                f"alike, as in select(..., {name}=lambda r: nullable(r.{name}))"
            )
        else:
            remedy = (
                f", so that {'none could ever be equal' if are_keys else 'one column cannot hold both'}; convert one "
                "side, as typed(column, name) of differential.frames does"
            )
        raise refusal(what, f"column {ours!r} is of {one}, and {theirs!r} of the other side is of {other}{remedy}")


def names_of(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return names that the program gives to columns. Raises SessionError unless they are different texts."""
    names = None if columns is None else tuple(columns)
    if names is not None and (
        isinstance(columns, str) or len(set(names)) < len(names) or not all(isinstance(each, str) for each in names)
    ):
        raise SessionError(
            f"columns (at {user_origin()}) takes different names, as in columns=('item', 'total'), not {columns!r:.80}"
        )
    return names
