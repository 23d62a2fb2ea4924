"""A server of an object store with the protocol of S3, installed and started for a test, over loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time as clock
import urllib.request
from pathlib import Path
from typing import Any

import obstore.store
import pytest

BUCKET = "bucket"
SERVER = """
import sys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""
"""With threads it may compare the tags of two puts before it replaces the object for the first, which S3 does not."""


class ObjectServer:
    """The server `moto` of PyPI: it keeps objects in memory, and compares their tags at a conditional put."""

    def __init__(self, directory: Path) -> None:
        """Install the server into a directory and start it. Skips the test if it cannot be had."""
        libraries = directory / "libraries"
        installed = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", libraries, "moto[server]>=5.2"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        if installed.returncode:
            pytest.skip(f"no server of S3 can be installed: {installed.stderr.strip().splitlines()[-1]}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = directory / "server.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVER, str(port)],
                env=os.environ | {"PYTHONPATH": str(libraries)},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._make_bucket()

    def store(self) -> Any:
        """Return the bucket as a store of `obstore`."""
        return store_at(self.url)

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait(30)

    def _make_bucket(self) -> None:
        end, reason = clock.monotonic() + 120, None
        while self._process.poll() is None and clock.monotonic() < end:
            try:
                with urllib.request.urlopen(urllib.request.Request(f"{self.url}/{BUCKET}", method="PUT"), timeout=30):
                    return
            except OSError as error:
                reason = error
                clock.sleep(0.1)
        self.close()
        pytest.fail(f"the server does not answer: {reason}\n{self._log.read_text()}")


def store_at(url: str) -> Any:
    """Return the bucket of the server at an address as a store of `obstore`."""
    return obstore.store.S3Store(
        BUCKET,
        endpoint=url,
        region="us-east-1",
        access_key_id="key",
        secret_access_key="secret",
        client_options={"allow_http": True},
    )
