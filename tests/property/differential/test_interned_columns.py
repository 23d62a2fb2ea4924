"""Columns of numbers behave as the arrays of their strings, and the table of strings as a dictionary."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.data.interned import Interned, interned, of_codes
from differential.data.interning import Interner
from differential.data.strings import BYTES_TAG, TEXT, TEXT_TAG, StringTable, packed
from timely import hash_columns

CHARACTERS = st.one_of(
    st.text("ab", max_size=3),
    st.text("a\0é", max_size=4),
    st.text(max_size=20),
    st.text("xy", min_size=7, max_size=70),
    st.sampled_from(["", "\0", "a\0", "x" * 128, "x" * 129, "é" * 200]),
)
TEXTS = st.lists(CHARACTERS, max_size=12)
BYTES = st.lists(CHARACTERS.map(str.encode), max_size=12)
INTERNER = Interner()


def column_of(rows: list[Any], dtype: Any = TEXT) -> np.ndarray[Any, Any]:
    column = np.empty(len(rows), dtype)
    column[:] = rows
    return column


def both(rows: list[Any], dtype: Any = TEXT) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return a column of numbers, and the array of its strings."""
    array = column_of(rows, dtype)
    column = interned(array, INTERNER)
    assert isinstance(column, Interned)
    return column, array


def assert_same(result: Any, expected: Any) -> None:
    if isinstance(expected, np.ndarray):
        assert result.shape == expected.shape
        assert result.dtype == expected.dtype
        assert result.tolist() == expected.tolist()
    else:
        assert type(result) is type(expected)
        assert result == expected


UNARY: dict[str, Callable[[Any], Any]] = {
    "tolist": lambda column: column.tolist(),
    "list": list,
    "len": len,
    "shape": lambda column: [column.shape, column.ndim, column.size, column.dtype],
    "asarray": np.asarray,
    "as objects": lambda column: column.astype(object),
    "as text": lambda column: column.astype(TEXT),
    "reversed": lambda column: column[::-1],
    "every other": lambda column: column[::2],
    "whole": lambda column: column[:],
    "ellipsis": lambda column: column[...],
    "of two dimensions": lambda column: column[:, None],
    "copy": lambda column: column.copy(),
    "unique": np.unique,
    "places": lambda column: np.unique(column, return_inverse=True)[1],
    "sort": np.sort,
    "argsort": lambda column: np.argsort(column, kind="stable"),
    "lengths": np.strings.str_len,
    "strip": np.strings.strip,
    "twice": lambda column: np.concatenate((column, column)),
    "beside an array": lambda column: np.concatenate((column, np.array(["new"], TEXT))),
    "stack": lambda column: np.stack((column, column)),
    "repeat": lambda column: np.repeat(column, 2),
    "repeated": lambda column: column.repeat(np.arange(len(column)) % 3),
    "nothing": lambda column: column[:0],
    "no positions": lambda column: column[[]] if len(column) else column[:0],
    "plus": lambda column: column + "!",
    "added to": lambda column: "!" + column,
    "equals a": lambda column: column == "a",
    "differs from a": lambda column: column != "a",
    "a equals": lambda column: "a" == column,
    "less": lambda column: column < "b",
    "equals itself": lambda column: column == column[::-1],
    "less than itself": lambda column: column <= column[::-1],
    "isin": lambda column: np.isin(column, ["a", "b"]),
    "where": lambda column: np.where(np.arange(len(column)) % 2 == 0, column, column[::-1]),
    "where else": lambda column: np.where(np.arange(len(column)) % 2 == 0, column, "else"),
    "flat": lambda column: column.reshape(-1).ravel(),
    "full": lambda column: np.full_like(column, "x"),
    "array equal": lambda column: np.array_equal(column, column),
    "shown": lambda column: (repr(column), str(column)),
    "startswith": lambda column: np.strings.startswith(column, "a"),
    "deep copy": copy.deepcopy,
    "pickled": lambda column: pickle.loads(pickle.dumps(column)),
}


@pytest.mark.parametrize("name", UNARY)
@settings(deadline=None, max_examples=15)
@given(rows=TEXTS)
def test_an_operation_on_a_column_of_numbers_is_that_on_the_array_of_its_strings(name: str, rows: list[str]) -> None:
    column, array = both(rows)
    assert_same(UNARY[name](column), UNARY[name](array))


@settings(deadline=None)
@given(st.lists(st.integers(0, 99)), st.lists(st.integers(0, 99)), st.sampled_from(["left", "right"]))
def test_texts_of_any_length_are_found_among_others(rows: list[int], sought: list[int], side: Any) -> None:
    """NumPy keeps texts of more than 15 bytes apart from the array, in memory of their own for each array."""
    names, others = (
        [f"a name of more than 15 bytes {number:02d}" for number in each] for each in (sorted(rows), sought)
    )
    (column, array), (other, other_array) = both(names), both(others)
    expected = np.searchsorted(np.array(names, object), np.array(others, object), side)
    for known, asked in ((column, other), (array, other), (column, other_array)):
        assert np.searchsorted(known, asked, side).tolist() == expected.tolist()
        assert np.searchsorted(a=known, v=asked, side=side).tolist() == expected.tolist()
    assert np.searchsorted(column, "a name") == 0


@pytest.mark.parametrize("function", [np.put, np.putmask, np.place])
def test_functions_of_numpy_that_mix_up_long_texts_are_refused(function: Callable[..., Any]) -> None:
    column, array = both(["a name of more than 15 bytes"])
    with pytest.raises(
        TypeError, match=rf"np\.{function.__name__} of NumPy mixes up texts: write array\[rows\] = column"
    ):
        function(array, [0], column)


@settings(deadline=None)
@given(rows=TEXTS, more=TEXTS, data=st.data())
def test_rows_that_are_chosen_are_those_of_the_array(rows: list[str], more: list[str], data: st.DataObject) -> None:
    column, array = both(rows)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    positions = np.array(data.draw(st.lists(st.integers(-len(rows), len(rows) - 1))) if rows else [], np.int64)
    other, other_array = both(more)
    for chosen, expected in (
        (column[mask], array[mask]),
        (column[positions], array[positions]),
        (column.take(positions), array.take(positions)),
        (np.take(column, positions), np.take(array, positions)),
        (np.concatenate((column, other, column)), np.concatenate((array, other_array, array))),
    ):
        assert isinstance(chosen, Interned)
        assert_same(chosen, expected)
    for place in range(-len(rows), len(rows)):
        assert_same(column[place], array[place])


@settings(deadline=None)
@given(rows=BYTES)
def test_bytes_are_numbers_of_their_own(rows: list[bytes]) -> None:
    column, array = both(rows, object)
    assert_same(column, array)
    assert_same(column == b"a", array == b"a")
    texts = interned(np.array([row.decode() for row in rows], TEXT), INTERNER)
    if rows:
        assert not np.isin(column.codes, texts.codes).any()  # type: ignore[attr-defined]


@settings(deadline=None)
@given(rows=TEXTS)
def test_ranks_order_as_text_does(rows: list[str]) -> None:
    # Python's order is the oracle: NumPy's arrays compare texts only up to a NUL.
    column, _ = both(rows)
    places = {text: place for place, text in enumerate(sorted(set(rows)))}
    assert column.ranks().tolist() == [places[text] for text in rows]


def test_a_column_of_numbers_is_read_only_and_not_hashable() -> None:
    column, array = both(["a", "b"])
    for one in (column, np.asarray(column), column[:1]):
        with pytest.raises(ValueError, match="read-only"):
            one[0] = "c"
    with pytest.raises(ValueError, match="WRITEABLE"):
        column.setflags(write=True)
    with pytest.raises(TypeError, match="unhashable"):
        hash(column)
    with pytest.raises(IndexError):
        column[2]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(column)
    with pytest.raises(AttributeError):
        column.no_such_attribute  # noqa: B018
    assert not column.flags.writeable
    copied = column.copy()
    copied[0] = "c"
    assert array.tolist() == column.tolist()


def test_columns_of_two_tables_are_compared_and_concatenated_by_their_strings() -> None:
    one, other = interned(column_of(["a", "b"]), INTERNER), interned(column_of(["b", "a"]), Interner())
    assert np.concatenate((one, other)).tolist() == ["a", "b", "b", "a"]
    assert (one == other[::-1]).tolist() == [True, True]


@settings(deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), TEXTS, BYTES), max_size=8))
def test_a_table_of_strings_is_a_dictionary(steps: list[tuple[bool, list[str], list[bytes]]]) -> None:
    table, known, free = StringTable(), dict[str | bytes, int](), 0
    for adds, texts, contents in steps:
        for column, rows in ((column_of(texts), texts), (column_of(contents, object), contents)):
            strings = packed(column)
            assert (strings.sizes % 4 == (TEXT_TAG if column.dtype == TEXT else BYTES_TAG)).all()
            numbers, missing = table.find(strings, -1)
            assert numbers.tolist() == [known.get(row, -1) for row in rows]
            assert missing == numbers.tolist().count(-1)
            if adds and missing:
                numbers, used = table.add(strings, np.arange(free, free + len(rows)))
                free += used
                known.update(zip(rows, numbers.tolist()))
            elif not adds:
                gone = {row for row in rows if row in known}
                there = [known[row] for row in gone]
                assert table.remove(np.array([free, *there, free + 1000], np.int64)).tolist() == there
                known = {row: number for row, number in known.items() if row not in gone}
            assert len(table) == len(known)
    items = list(known.items())
    assert table.contents(np.array([number for _, number in items], np.int64)) == [
        item.encode() if isinstance(item, str) else item for item, _ in items
    ]
    texts = sorted(item for item in known if isinstance(item, str))
    numbers = np.array([known[text] for text in reversed(texts)], np.int64)
    assert table.text(table.sorted(numbers)).tolist() == texts


def test_numbers_in_a_column_stay_in_use_and_are_free_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.data.interning.LEAST_ITEMS", 4)
    interner = Interner()
    column = interned(column_of(["a", "b"]), interner)[[1]]
    interner.encode_strings(column_of(["c", "d"]))
    while interner.has_work:
        interner.collect()
    assert len(interner) == 2
    assert column.tolist() == ["b"]
    again = of_codes(interner, column.codes, is_text=True)  # type: ignore[attr-defined]
    del column
    interner.encode_strings(column_of(["c", "d", "e", "f"]))
    while interner.has_work:
        interner.collect()
    assert again.tolist() == ["b"]
    assert len(interner) == 2


@settings(deadline=None)
@given(rows=TEXTS, contents=BYTES)
def test_a_column_of_numbers_is_routed_as_the_array_of_its_strings(rows: list[str], contents: list[bytes]) -> None:
    for column, array in (both(rows), both(contents, object)):
        assert_same(hash_columns((column,)), hash_columns((array,)))
        numbers = np.arange(len(array))
        assert_same(hash_columns((numbers, column)), hash_columns((numbers, array)))
