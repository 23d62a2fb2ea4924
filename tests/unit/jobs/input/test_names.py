"""Names have codes, in their order, and names that do not exist are answered with those that do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from differential.jobs.input.names import Names
from timely.errors import BuildError, DataError

NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


def text(names: Iterable[str]) -> Any:
    return pa.chunked_array([pa.array(names, pa.string())])


@given(st.sets(NAME), st.lists(st.lists(st.tuples(NAME, NAME), max_size=100), max_size=5))
def test_codes_are_those_of_a_dictionary(begin: set[str], later: list[list[tuple[str, str]]]) -> None:
    names = Names()
    first = list(begin)
    expected = {name: code for code, name in enumerate(sorted(begin))}
    assert names.begin(pa.array(first, pa.string())).tolist() == [expected[name] for name in first]
    for batch in later:
        for name in chain.from_iterable(batch):
            expected.setdefault(name, len(expected))
        sources, targets = names.number_ends(text(one for one, _ in batch), text(other for _, other in batch))
        assert list(zip(sources.tolist(), targets.tolist())) == [
            (expected[one], expected[other]) for one, other in batch
        ]
    assert len(names) == len(expected)
    assert names.text(list(expected.values())) == list(expected)
    assert [names.number_of(name) for name in expected] == list(expected.values())


@given(st.lists(st.tuples(NAME, NAME), min_size=100, max_size=150))
def test_many_names_are_numbered_row_by_row(rows: list[tuple[str, str]]) -> None:
    names = Names()
    expected: dict[str, int] = {"": 0}
    names.begin(pa.array([""]))
    for row in rows:
        for name in row:
            expected.setdefault(name, len(expected))
    source, target = names.number_ends(*map(text, zip(*rows)))
    assert list(zip(source.tolist(), target.tolist())) == [(expected[one], expected[other]) for one, other in rows]


def test_a_name_that_does_not_exist_is_answered_with_those_most_like_it() -> None:
    names = Names()
    names.begin(pa.array(["libc6", "libc6-dev", "python3", "zlib1g", *(f"package{i}" for i in range(30_000))]))
    names.number_ends(text(["libnew"]), text(["libc6"]))
    for asked, meant in (
        ("libc", "libc6"),
        ("Python3", "python3"),
        ("zlib", "zlib1g"),
        ("libnwe", "libnew"),
        ("python\udcff", "python3"),
    ):
        with pytest.raises(DataError, match=f"no node is named {re.escape(repr(asked))}; did you mean .*'{meant}'"):
            names.number_of(asked)
    with pytest.raises(DataError, match=r"no node is named '\?'$"):
        names.number_of("?")
    with pytest.raises(DataError, match=r"no node is named ''$"):
        names.number_of("")


def test_names_of_a_graph_are_numbered_once() -> None:
    names = Names()
    names.begin(pa.array(["a"]))
    with pytest.raises(BuildError, match="numbered before"):
        names.begin(pa.array(["b"]))
