"""A process has the descriptors that its connections need, or reports how many it is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from timely.communication import descriptors
from timely.errors import TransportError

UNBOUNDED = descriptors.resource.RLIM_INFINITY
PROGRAM = """
import os
from timely import execute
print("HELD", max(execute(lambda worker: len(os.listdir("/proc/self/fd")))))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "set_to"),
    [(1000, 4000, None), (368, 4000, None), (367, 4000, 368), (UNBOUNDED, UNBOUNDED, None), (10, UNBOUNDED, 368)],
)
def test_the_bound_is_raised_as_far_as_needed(
    soft: int, hard: int, set_to: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(descriptors.resource, "setrlimit", lambda _, both: limits.append(both))
    descriptors.reserve(12, 4, False)
    assert limits == ([] if set_to is None else [(set_to, hard)])


def test_a_limit_that_the_system_forbids_to_raise_is_reported_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: (10, 20))
    with pytest.raises(
        TransportError, match=r"12 connections .* need up to 368 file descriptors, .* may open 20; allow"
    ):
        descriptors.reserve(12, 4, False)


def test_without_descriptors_for_rings_a_process_does_without_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise ValueError("beyond the hard limit")

    monkeypatch.setattr(descriptors.resource, "setrlimit", refused)
    for most, has_rings in ((416, True), (415, False)):
        monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _, most=most: (most, most))
        assert descriptors.reserve(12, 4, True) is has_rings
        assert not descriptors.reserve(12, 4, False)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_a_cluster_runs_with_a_low_bound_and_opens_no_more_descriptors_than_it_reserved(tmp_path: Path) -> None:
    script = tmp_path / "held.py"
    script.write_text(PROGRAM)
    command = f"ulimit -Sn 100; exec {sys.executable} -m timely run -n 3 -w 3 {script}"
    ended = subprocess.run(["bash", "-c", command], env=os.environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    held = [int(line.split()[-1]) for line in ended.stdout.splitlines() if "HELD" in line]
    assert len(held) == 3
    assert 100 < max(held) <= descriptors.needed(18, 3, rings=True)
