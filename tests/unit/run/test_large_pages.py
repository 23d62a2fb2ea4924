"""A command begins again for large pages where there is something to gain, and only there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from timely.run import large_pages


@pytest.mark.parametrize(
    ("offer", "told", "begins"),
    [
        ("always [madvise] never\n", "", True),
        ("always [madvise] never\n", "glibc.malloc.hugetlb=0", False),
        ("[always] madvise never\n", "", False),
        ("always madvise [never]\n", "", False),
        (None, "", False),
    ],
)
def test_a_command_begins_again_where_large_pages_are_for_those_that_ask(
    offer: str | None, told: str, begins: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[tuple[str, list[str], str]] = []
    monkeypatch.setattr(os, "execve", lambda path, args, env: begun.append((path, args, env["GLIBC_TUNABLES"])))
    monkeypatch.setattr(os, "confstr_names", {"CS_GNU_LIBC_VERSION": 2})
    monkeypatch.setenv("GLIBC_TUNABLES", told)
    monkeypatch.setattr(large_pages, "_OFFER", tmp_path / "enabled")
    if offer is not None:
        (tmp_path / "enabled").write_text(offer)
    large_pages.restart_with_large_pages()
    command = sys.executable, [sys.executable, *sys.orig_argv[1:]], "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"
    assert begun == ([command] if begins else [])


def test_nor_does_it_with_another_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "confstr_names", {})
    assert not large_pages.are_offered()
