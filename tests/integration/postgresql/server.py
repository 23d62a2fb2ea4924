"""A server of PostgreSQL for tests: installed from the system's packages if need be, run by a user without rights."""

from __future__ import annotations

import fcntl
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

LOCK = Path(tempfile.gettempdir()) / "timely-tests-postgresql.lock"
SETTINGS = """
wal_level = logical
listen_addresses = ''
unix_socket_directories = '{directory}'
fsync = off
max_replication_slots = 20
max_wal_senders = 20
"""


class Server:
    """A server with a data directory of its own, reached over a socket in a file."""

    def __init__(self, programs: str) -> None:
        self.directory = tempfile.mkdtemp(prefix="pg-", dir="/tmp")  # a short path: the socket is in it
        self._programs = programs
        self._user = "nobody" if os.getuid() == 0 else None
        if self._user is not None:
            owner = pwd.getpwnam(self._user)
            os.chown(self.directory, owner.pw_uid, owner.pw_gid)
        self._run("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
        with open(f"{self.directory}/data/postgresql.conf", "a") as file:
            file.write(SETTINGS.format(directory=self.directory))
        self.start()

    @property
    def dsn(self) -> str:
        """What a client connects to."""
        return f"host={self.directory} user=postgres dbname=postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._run("pg_ctl", "-w", "-t", "60", "-l", f"{self.directory}/log", "start")

    def kill(self) -> None:
        """End it as a crash does."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def close(self) -> None:
        """End it, and remove its files."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [f"{self._programs}/{program}", "-D", f"{self.directory}/data", *arguments]
        done = subprocess.run(
            command,
            user=self._user,
            cwd="/",
            timeout=120,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{command} has failed: {done.stderr!r}"


def installed() -> str | None:
    """Return the directory of the server's programs, after installing them if that is possible; None if it is not."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _programs()
        if found is None and os.getuid() == 0 and shutil.which("apt-get") is not None:
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            for command in (
                ["apt-get", "update"],
                ["apt-get", "install", "-y", "--no-install-recommends", "postgresql"],
            ):
                subprocess.run(command, env=environment, timeout=400, capture_output=True)
            found = _programs()
        return found


def _programs() -> str | None:
    listed = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return os.path.dirname(listed[-1]) if listed else None
