"""Run a script as a pod would: `pod.py INDEX PODS HEAD_PORT HEALTH_PORT KEYS SCRIPT ...`, all pods on this machine."""

from __future__ import annotations

import os
import sys

from timely.cluster import kubernetes
from timely.cluster.place import ProcessPlace
from timely.run import cli

index, pods, head_port, health_port = map(int, sys.argv[1:5])
kubernetes.HEALTH_PORT = health_port
os.environ["TIMELY_PROCESSES"] = str(pods)
os.environ["HOSTNAME"] = f"pod-{index}"


def nearby(environ: dict[str, str]) -> ProcessPlace:
    """Return the place of a pod, but with process 0 where this machine finds it."""
    return place_of(environ)._replace(head="127.0.0.1", ports=(head_port,))


place_of = kubernetes.place_of
kubernetes.place_of = nearby  # type: ignore[assignment]
sys.exit(cli.main(["run", "--on", "kubernetes", "--curve", *sys.argv[5:]]))
