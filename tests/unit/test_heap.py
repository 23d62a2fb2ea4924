"""Keeping pieces of memory: asked for where it can be, and not where the user has said otherwise."""

from __future__ import annotations

import platform
import sys

import pytest

from timely.heap import keep_pieces

ask = keep_pieces.__wrapped__


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is an option of glibc")
def test_pieces_are_kept_unless_the_environment_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert ask()
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    assert not ask()
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    assert ask()
    for told in ("mmap_threshold=131072", "arena_max=2"):
        monkeypatch.setenv("GLIBC_TUNABLES", f"glibc.malloc.{told}:glibc.malloc.hugetlb=1")
        assert not ask()


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not ask()
