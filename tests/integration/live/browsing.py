"""A job with a live page, and a real browser that looks at it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.integration.launcher.launching import Run

PROGRAMS = Path(__file__).parent / "programs"
PLACES = ("chromium", "chromium-browser", "google-chrome")
INSTALL_SECONDS = 300


def browser_path() -> str:
    """Return where a browser is, installed if need be; skip the test where none can be had."""
    for install in (None, ["apt-get", "install", "-y", "-q", "chromium"]):
        if install is not None:
            _try(install)
        found = next(filter(None, map(shutil.which, PLACES)), None)
        if found is not None:
            return found
    pytest.skip("no Chromium here, and apt-get cannot install it")


def playwright() -> Any:
    """Return the library that drives a browser, installed if need be; skip the test where it cannot be had."""
    if find_spec("playwright") is None:
        _try([sys.executable, "-m", "pip", "install", "-q", "playwright"])
    return pytest.importorskip("playwright.sync_api", reason="no Playwright here, and pip cannot install it")


@contextmanager
def job(*arguments: str, program: str, seconds: str, more: tuple[str, ...] = ()) -> Iterator[tuple[Run, str]]:
    """Run a program with a live page; yield the run and the page's address, with its token."""
    run = Run("run", *arguments, "--live", "0", PROGRAMS / program, seconds, *more)
    try:
        yield run, address_of(run)
    finally:
        run.close()


def address_of(run: Run) -> str:
    """Return the address that a run prints."""
    run._wait_for(lambda: "live view at" in run.error, 60, "the run does not print the address of its page")
    found = re.search(r"live view at (\S+)", run.error)
    assert found is not None
    return found[1]


@contextmanager
def page(address: str, width: int = 1280, height: int = 800, scheme: str = "light", **more: Any) -> Iterator[Any]:
    """Yield a page of a browser at an address; whatever it reports as an error fails the test."""
    path = browser_path()
    with playwright().sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
            context.set_default_timeout(40_000)
            opened = context.new_page()
            errors: list[str] = []
            opened.on("pageerror", lambda error: errors.append(str(error)))
            opened.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
            opened.goto(address)
            yield opened
            assert [error for error in errors if "ERR_" not in error] == []
        finally:
            browser.close()


def _try(command: list[str]) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, timeout=INSTALL_SECONDS, capture_output=True, check=False)
