"""What is done to the intermediate code of a kernel before LLVM optimises it."""

from __future__ import annotations

import re
from functools import reduce
from operator import xor
from typing import Any, cast

import pytest

from differential.kernels.compile import Kernel, inner, kernel
from differential.kernels.processor import Processor


@inner
def called_once(number: int) -> int:
    total = 0
    for each in range(number):
        total += each * each
    return total


@inner
def called_twice(number: int) -> int:
    total = 0
    for each in range(number):
        total ^= each + number
    return total


@kernel
def calling(number: int) -> int:
    return called_once(number) + called_twice(number) * called_twice(number + 1)


@pytest.mark.lengthy
def test_only_functions_that_are_called_in_one_place_are_always_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    from differential.kernels.library import INLINES, Codegen

    optimise, seen = Codegen.object_code, {}

    def looked_at(self: Codegen, module: Any, is_bulk: bool) -> bytes:
        for function in module.functions:
            if found := re.search("called_once|called_twice|calling", function.name):
                seen[found.group()] = b"alwaysinline" in b" ".join(function.attributes), function.linkage.name
        return optimise(self, module, is_bulk)

    monkeypatch.setattr(Codegen, "object_code", looked_at)
    cast(Kernel, calling).object_codes([Processor.of_host()])
    assert seen == {
        "called_once": (INLINES, "internal"),
        "called_twice": (False, "internal"),
        "calling": (False, "external"),
    }
    squares = sum(each * each for each in range(10))
    assert calling(10) == squares + reduce(xor, range(10, 20)) * reduce(xor, range(11, 22))
