"""Which line is the user's, for what was built and for errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from timely import example
from timely.errors import OperatorError
from timely.origin import Origin, attributed, user_origin

HERE = __file__


def numpys(column: np.ndarray) -> np.ndarray:
    return np.linalg.inv(column)


def pythons(column: np.ndarray) -> np.ndarray:
    return np.array([json.loads("{") for _ in column])


def by_numpy(column: np.ndarray) -> np.ndarray:
    def fail(value: int) -> int:
        return 1 // 0

    return np.vectorize(fail)(column)


def by_cython(column: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).integers(5, 1, size=len(column))


@pytest.mark.parametrize(("function", "line"), [(numpys, 1), (pythons, 1), (by_numpy, 2), (by_cython, 1)])
def test_an_error_in_a_library_that_a_function_calls_is_located_at_the_line_of_the_function(
    function: Callable[[np.ndarray], np.ndarray], line: int
) -> None:
    at = f"{HERE}:{function.__code__.co_firstlineno + line}"
    with pytest.raises(OperatorError, match=rf"\({at}, built at {HERE}:\d+\)"):
        example(lambda scope: scope.to_stream(np.arange(3)).map(function))


def test_an_error_of_a_librarys_function_is_located_at_its_line() -> None:
    with pytest.raises(OperatorError, match=r"numpy/linalg/_linalg\.py:\d+, built at "):
        example(lambda scope: scope.to_stream(np.arange(3)).map(np.linalg.inv))


def test_a_function_written_on_the_line_of_its_operator_is_at_one_line() -> None:
    with pytest.raises(OperatorError, match=rf"worker 0 of 1 \({HERE}:\d+\): ZeroDivisionError"):
        example(lambda scope: scope.to_stream(np.arange(3)).map(lambda x: 1 // 0))


def test_an_object_built_on_entering_a_context_is_located_at_the_users_line() -> None:
    made = []

    class Opened:
        @contextmanager
        def __call__(self):  # type: ignore[no-untyped-def]
            made.append(user_origin())
            yield

    with Opened()():
        pass
    assert made == [Origin(HERE, made[0].line)]


@pytest.mark.parametrize(
    "function",
    [
        lambda word: word.upper(),
        lambda word: 1 if word == "a" else 0,
        lambda word: {"a": 1}[word],
        lambda word: range(np.arange(len(word))),
    ],
)
def test_a_hint_names_the_columns_that_a_function_of_one_value_received(function: Callable[[object], object]) -> None:
    with pytest.raises(OperatorError, match=r"receive whole columns, which are read-only.*; timely.rowwise\(f\)"):
        example(lambda scope: scope.to_stream(np.array(["a", "b"])).map(function))


@pytest.mark.parametrize("function", [lambda one, other: one, lambda: 1])
def test_a_hint_explains_that_each_column_is_an_argument(function: Callable[..., object]) -> None:
    with pytest.raises(OperatorError, match=r"positional argument.* most functions are given each column"):
        example(lambda scope: scope.to_stream(np.arange(2)).map(function))


def test_an_error_that_has_nothing_to_do_with_columns_is_left_as_it_is() -> None:
    with pytest.raises(OperatorError, match=r"ValueError: no such word$"):
        example(lambda scope: scope.to_stream(np.array(["a", "b"])).map(fail))


def fail(word: object) -> object:
    raise ValueError("no such word")


def test_a_thread_without_a_line_of_the_program_builds_for_the_line_that_it_is_attributed_to() -> None:
    with ThreadPoolExecutor(1) as pool:
        block = attributed(Origin("cell.py", 7))
        found = [
            pool.submit(function, *arguments).result()
            for function, arguments in (
                (user_origin, ()),
                (block.__enter__, ()),
                (user_origin, ()),
                (block.__exit__, (None, None, None)),
                (user_origin, ()),
            )
        ]
    assert [str(found[place]) for place in (0, 2, 4)] == ["<unknown>:0", "cell.py:7", "<unknown>:0"]
