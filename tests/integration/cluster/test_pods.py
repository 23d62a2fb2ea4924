"""Processes run as the pods of a manifest are, each started again when it fails: no Kubernetes, but what it does."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.integration.cluster.services import ANSWER, SCRIPT
from tests.integration.launcher.launching import ROOT
from tests.unit.communication.networks import free_ports, has_newer_addresses
from timely.cluster.kubernetes import answering
from timely.communication.curve import make_keys

POD = ROOT / "tests/integration/cluster/scripts/pod.py"
TRIES = 4


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_pods_meet_again_after_one_of_them_was_killed(tmp_path: Path) -> None:
    make_keys(str(tmp_path)).chmod(0o440)  # as a pod's group can read a secret
    head, *health = free_ports(4)
    environ = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "", "TIMELY_RENDEZVOUS_SECONDS": "60"}

    def pod(index: int) -> list[subprocess.CompletedProcess[str]]:
        """Run a pod until it succeeds. Only the first attempt fails, by the death of pod 2."""
        attempts: list[subprocess.CompletedProcess[str]] = []
        while not attempts or (attempts[-1].returncode != 0 and len(attempts) < TRIES):
            command = [sys.executable, str(POD), str(index), "3", str(head), str(health[index]), str(tmp_path), SCRIPT]
            command += ["killed"] * (not attempts)
            attempts.append(subprocess.run(command, env=environ, capture_output=True, text=True, timeout=90))
        return attempts

    with ThreadPoolExecutor() as threads:
        found = list(threads.map(pod, range(3)))
    shown = "\n".join(f"{each.returncode} {each.stdout} {each.stderr}" for pods in found for each in pods)
    assert [pods[-1].returncode for pods in found] == [0, 0, 0], shown
    assert found[2][0].returncode == -9, shown
    for index in (0, 1):
        assert "process 2 (worker 2 at tcp://127.0.0.1:" in found[index][0].stderr, shown
    assert ANSWER in found[0][-1].stdout, shown


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_probes_are_answered(host: str) -> None:
    if ":" in host and not has_newer_addresses():
        pytest.skip("there is no ::1")
    port = free_ports(1)[0]

    def probe(path: str) -> int:
        try:
            with urlopen(f"http://{host}:{port}{path}", timeout=5) as answer:
                return int(answer.status)
        except HTTPError as error:
            error.close()
            return error.code

    with answering(port) as is_ready:
        assert (probe("/live"), probe("/ready"), probe("/other")) == (200, 503, 404)
        is_ready.set()
        assert (probe("/live"), probe("/ready")) == (200, 200)
