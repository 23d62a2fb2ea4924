"""Keeping pieces of memory: requested where possible, unless the user has configured it otherwise."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from types import SimpleNamespace

import pytest

from timely.run import memory
from timely.run.memory import keep_pieces

ask = keep_pieces.__wrapped__


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is an option of glibc")
def test_pieces_are_kept_unless_the_environment_configures_the_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert ask()
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    assert not ask()
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    assert ask()
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=131072:glibc.malloc.hugetlb=1")
    assert not ask()


@pytest.mark.parametrize("refused", [None, "_MMAP_THRESHOLD", "_TRIM_THRESHOLD"])
def test_pieces_are_kept_if_the_c_library_accepts_both_options(
    refused: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[int, int] = {}

    def mallopt(option: int, value: int) -> int:
        asked[option] = value
        return int(refused is None or option != getattr(memory, refused))

    allow(SimpleNamespace(mallopt=mallopt), monkeypatch)
    assert ask() is (refused is None)
    if refused is None:
        assert asked == {-3: memory.LARGE, -1: memory.KEPT}  # two thresholds, as <malloc.h> numbers them


def test_a_c_library_without_options_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(SimpleNamespace(), monkeypatch)
    assert not ask()


def allow(library: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only the C library decide."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    for name in [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not ask()
