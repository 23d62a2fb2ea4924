"""Where the names of the packages come from, and when."""

from __future__ import annotations

import subprocess
import sys

import pytest

import timely
from tests.api.modules import modules

STARTS_WITHOUT = "import sys, timely.cli, timely.launcher; print(*{'numpy', 'zmq', 'timely.api'} & set(sys.modules))"


def test_what_starts_processes_imports_nothing_that_takes_long() -> None:
    assert subprocess.check_output([sys.executable, "-c", STARTS_WITHOUT], text=True, timeout=60) == "\n"


@pytest.mark.parametrize("first", ["timely.executing", "timely.worker", "timely.dataflow.stream", "differential.trace"])
def test_a_module_can_be_imported_first_and_all_names_are_there_after_it(first: str) -> None:
    program = f"import {first}, timely; timely.execute_directly(lambda worker: print(*timely.__all__))"
    found = subprocess.check_output([sys.executable, "-c", program], text=True, timeout=60)
    assert found.split() == timely.__all__


def test_modules_are_names_of_their_package() -> None:
    program = "import timely; print(timely.errors.TimelyError.__name__, timely.graphlinq.Graph.__name__)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True, timeout=60) == "TimelyError Graph\n"


def test_no_name_is_that_of_a_module_too() -> None:
    assert not {f"timely.{name}" for name in timely.__all__} & set(modules())


def test_names_are_listed_and_others_are_refused() -> None:
    assert set(timely.__all__) < set(dir(timely))
    with pytest.raises(AttributeError, match="module 'timely' has no attribute 'exceute'"):
        timely.exceute  # type: ignore[attr-defined]  # noqa: B018
