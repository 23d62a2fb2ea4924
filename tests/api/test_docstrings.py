"""Every example in a docstring runs and prints the output shown."""

from __future__ import annotations

import doctest
import importlib
import linecache
from typing import Any

import numpy as np
import pytest

import differential
import timely
import timely.graphlinq
from tests.api.modules import modules

PACKAGES = (differential, timely.graphlinq, timely)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def names_for(module: str) -> dict[str, Any]:
    """Return what an example may use without importing it: the public names of the package."""
    package = next(package for package in PACKAGES if module.startswith(package.__name__))
    names = {name: getattr(timely, name) for name in timely.__all__}
    names |= {name: getattr(package, name) for name in package.__all__}
    return {"np": np, **names}


@pytest.mark.parametrize("module", [name for name in modules() if not name.endswith("__main__")])
def test_the_examples_of_a_module_run(module: str) -> None:
    loaded = importlib.import_module(module)
    names = names_for(module) | vars(loaded)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    linecache.clearcache()  # or each run would look whether any of the files that earlier tests have read has changed
    for test in finder.find(loaded, module, extraglobs=names):
        test.globs = dict(names)
        output: list[str] = []
        runner.run(test, out=output.append)
        assert not runner.failures, "".join(output)
