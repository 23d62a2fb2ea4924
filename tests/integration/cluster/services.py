"""Install and start what places processes on machines, for tests that use it."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time as clock
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.integration.launcher.launching import ROOT
from tests.unit.communication.networks import free_ports

TIMELY = f"{sys.executable} -m timely"
SCRIPT = str(Path(__file__).parent / "scripts" / "count.py")
ANSWER = "answer [(0, 34), (1, 33), (2, 33)]"
MUNGE_SOCKET = Path("/run/munge/munge.socket.2")


def debian(package: str, command: str) -> None:
    """Install a package of Debian unless its command is there; skip the test if it cannot be had."""
    if shutil.which(command) is None:
        with alone("apt"):
            for step in (["update"], ["install", "--yes", "--no-install-recommends", package]):
                with suppress(OSError, subprocess.SubprocessError):
                    subprocess.run(
                        ["apt-get", "--quiet", *step],
                        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                        capture_output=True,
                        timeout=240,
                    )
    if shutil.which(command) is None:
        pytest.skip(f"needs {command} of Debian's package {package}, which cannot be installed here")


def python(requirement: str, module: str, command: str = "python") -> None:
    """Install a package for Python unless its module, or command, is there; skip the test if it cannot be had."""

    def is_there() -> bool:
        found = importlib.util.find_spec(module) is not None
        return found and Path(sys.executable).with_name(command).exists()

    if not is_there():
        with alone("pip"), suppress(subprocess.SubprocessError):
            install = [sys.executable, "-m", "pip", "install", "--quiet", requirement]
            subprocess.run(install, capture_output=True, timeout=240)
        importlib.invalidate_caches()
    if not is_there():
        pytest.skip(f"needs {requirement}, which cannot be installed here")


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other processes of these tests out of a section."""
    path = os.path.join(tempfile.gettempdir(), f"timely-tests-{os.getuid()}-{name}.lock")
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def running(*command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in the background, in its own session, until the context ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], bool], seconds: float, log: Path) -> None:
    """Wait until a condition holds; fail with the end of a log if it does not in time."""
    end = clock.monotonic() + seconds
    while not condition():
        assert clock.monotonic() < end, f"not ready after {seconds} s: {log.read_text(errors='replace')[-2000:]}"
        clock.sleep(0.1)


@contextmanager
def munge(directory: Path) -> Iterator[None]:
    """Run munged where its clients look for it, unless it runs there."""
    if subprocess.run(["munge", "--no-input"], capture_output=True).returncode == 0:
        yield
        return
    MUNGE_SOCKET.parent.mkdir(mode=0o755, exist_ok=True)
    shutil.chown(MUNGE_SOCKET.parent, "munge")
    log = directory / "munged.log"
    with running("runuser", "-u", "munge", "--", "munged", "--foreground", "--force", log=log):
        wait_for(lambda: subprocess.run(["munge", "--no-input"], capture_output=True).returncode == 0, 20, log)
        yield


@contextmanager
def slurm(directory: Path) -> Iterator[dict[str, str]]:
    """Run Slurm with one node, this machine, of eight processors; yield the environment for its commands."""
    if os.getuid() != 0:
        pytest.skip("needs root, as which slurmd runs")
    debian("slurm-wlm", "srun")
    debian("munge", "munge")
    node = socket.gethostname().partition(".")[0]
    controller, daemon = free_ports(2)
    for name in ("state", "spool"):
        (directory / name).mkdir()
    settings = {
        "ClusterName": "test",
        "SlurmctldHost": f"{node}(127.0.0.1)",
        "SlurmctldPort": controller,
        "SlurmdPort": daemon,
        "AuthType": "auth/munge",
        "MpiDefault": "none",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "StateSaveLocation": directory / "state",
        "SlurmdSpoolDir": directory / "spool",
        "SlurmctldPidFile": directory / "slurmctld.pid",
        "SlurmdPidFile": directory / "slurmd.pid",
        "SlurmdParameters": "config_overrides",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    lines += [f"NodeName={node} NodeAddr=127.0.0.1 CPUs=8", "PartitionName=all Nodes=ALL Default=YES"]
    (directory / "slurm.conf").write_text("\n".join([*lines, ""]))
    environ = os.environ | {"SLURM_CONF": str(directory / "slurm.conf")}

    def is_idle() -> bool:
        command = ["sinfo", "--noheader", "--format=%t"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=20)
        return done.stdout.strip() == "idle"

    conf = ("-D", "-f", str(directory / "slurm.conf"))
    log = directory / "slurmctld.log"
    with ExitStack() as services:
        services.enter_context(alone("slurm"))
        services.enter_context(munge(directory))
        services.enter_context(running("slurmctld", *conf, log=log))
        services.enter_context(running("slurmd", *conf, log=directory / "slurmd.log"))
        wait_for(is_idle, 40, log)
        yield environ


class Ended:
    """How a command ended that ran a program on several processes."""

    def __init__(self, command: str, environ: dict[str, str] | None = None) -> None:
        settings = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
        done = subprocess.run(
            command.split(),
            env=(os.environ if environ is None else environ) | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.at = clock.time()
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
        self.all = f"status {self.status}\n{self.output}\n{self.errors}"

    @property
    def seconds_after_death(self) -> float:
        """How long after the end of the process that failed the command ended."""
        line = next(line for line in self.output.splitlines() if "ended at" in line)
        return self.at - float(line.split()[-1])
