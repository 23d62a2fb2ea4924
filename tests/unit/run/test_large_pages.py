"""A command restarts for large pages only if it gains from them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from timely.run import memory


@pytest.mark.parametrize(
    ("offer", "given", "restarts"),
    [
        ("always [madvise] never\n", "", True),
        ("always [madvise] never\n", "glibc.malloc.hugetlb=0", False),
        ("[always] madvise never\n", "", False),
        ("always madvise [never]\n", "", False),
        (None, "", False),
    ],
)
def test_a_command_restarts_if_large_pages_are_given_on_request(
    offer: str | None, given: str, restarts: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    restarted: list[tuple[str, list[str], str]] = []
    monkeypatch.setattr(os, "execve", lambda path, args, env: restarted.append((path, args, env["GLIBC_TUNABLES"])))
    monkeypatch.setattr(os, "confstr_names", {"CS_GNU_LIBC_VERSION": 2})
    monkeypatch.setenv("GLIBC_TUNABLES", given)
    monkeypatch.setattr(memory, "_OFFER", tmp_path / "enabled")
    if offer is not None:
        (tmp_path / "enabled").write_text(offer)
    memory.restart_with_large_pages()
    command = sys.executable, [sys.executable, *sys.orig_argv[1:]], "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"
    assert restarted == ([command] if restarts else [])


def test_another_c_library_offers_no_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "confstr_names", {})
    assert not memory.are_offered()
