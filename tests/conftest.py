"""Compile all kernels before the first test, so that no test's time limit has to allow for it; let no clock decide.

If parts of the packages are compiled in place (`hatch_build.py`), tests that replace something in them are skipped.
Compiled modules that are older than their source are refused. With `TIMELY_PLAIN=1` dataflows run without the
optimisation pass, and tests that depend on that pass are skipped.

The time that Hypothesis takes to make or to try an example shows how busy the machine is, and nothing about the
program, so it is not a limit. A test that does not set its number of examples tries a few;
`--hypothesis-profile thorough` tries more.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from benchmarks.compiled import COMPILED, stale
from differential.kernels.__main__ import compile_kernels
from tests.thorough import QUICK, THOROUGH
from timely import Config
from timely.worker.garbage import paused

# NumPy's linear algebra, which no test uses, would start threads in each of the hundreds of processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

SESSION_THREADS = ("timely session", "timely sources", "timely publication", "timely commit")

for profile, number in (("quick", QUICK), ("thorough", THOROUGH)):
    settings.register_profile(
        profile, settings(), max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job ignores SIGINT, and all processes that tests start would too.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    if complaint := stale():
        pytest.exit(complaint, returncode=1)
    compile_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage while thousands of tests are made, nor among them later, since none of them is any."""
    with paused():
        result = yield
        gc.freeze()
        return result


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("lengthy"):
            item.add_marker(pytest.mark.slow)
        if COMPILED and item.get_closest_marker("interpreted"):
            item.add_marker(pytest.mark.skip(reason="replaces parts of what is compiled"))
        if Config().plain and item.get_closest_marker("composed"):
            item.add_marker(pytest.mark.skip(reason="TIMELY_PLAIN=1 leaves out the optimisation pass"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes `-n auto` is: two more than there are cores, because many tests mostly wait."""
    return (os.cpu_count() or 1) + 2


@pytest.fixture(autouse=True)
def _no_session_is_left_open() -> Iterator[None]:
    """Refuse a test that leaves a session open: a later one in this process that counts threads would fail for it."""
    before = set(threading.enumerate())
    yield
    left = [each for each in threading.enumerate() if each not in before and each.name.startswith(SESSION_THREADS)]
    if left:
        gc.collect()  # a session that was forgotten ends its threads
        for thread in left:
            thread.join(timeout=20.0)
        assert not [thread.name for thread in left if thread.is_alive()], "the test has left a session open"
