"""What a function writes instead of a method that columns do not have: one of Python's text, pandas or Polars."""

from __future__ import annotations

from typing import Final

_NULL: Final = "is_null(column) of differential.frames is True where a value is null"
_PRESENT: Final = "~is_null(column), with is_null of differential.frames, is True where a value is not null"
_FILL: Final = "fill_null(column, value) of differential.frames replaces nulls"
_OF_TEXT: Final = "capitalize isalnum isalpha isdigit islower isspace isupper lower lstrip rstrip strip title upper"
_OF_TEXT_AND_MORE: Final = "count endswith find ljust replace rjust startswith zfill"
"""Methods of text that NumPy has for columns of it, and those that take an argument."""
_INSTEAD: Final = {
    **{name: f"np.strings.{name}(column)" for name in _OF_TEXT.split()},
    **{name: f"np.strings.{name}(column, ...)" for name in _OF_TEXT_AND_MORE.split()},
    "str": "np.strings has upper, startswith, find and others for columns of text",
    "contains": "np.strings.find(column, 'text') >= 0 is True where the text occurs",
    "len": "np.strings.str_len(column)",
    **dict.fromkeys(("isin", "is_in"), "np.isin(column, [value, ...])"),
    **dict.fromkeys(("is_null", "isnull", "isna", "is_none"), _NULL),
    **dict.fromkeys(("notnull", "notna", "is_not_null"), _PRESENT),
    **dict.fromkeys(("fillna", "fill_null"), _FILL),
    "between": "(column >= least) & (column <= most)",
    "date": "column.astype('datetime64[D]') are the dates of timestamps",
    "year": "column.astype('datetime64[Y]').astype(int) + 1970 are the years of dates without nulls",
    "total_seconds": "column / np.timedelta64(1, 's') are durations in seconds",
    "dt": "column.astype('datetime64[D]') are the dates of timestamps, and timely.rowwise(function) computes others",
}
"""What to write, by the name of a method or attribute that columns do not have."""


def instead(name: str) -> str:
    """Return what to write instead of an attribute, after a colon; an empty text where that is not known.

    >>> instead("upper"), instead("unknown")
    (': np.strings.upper(column)', '')
    """
    return f": {_INSTEAD[name]}" if name in _INSTEAD else ""
