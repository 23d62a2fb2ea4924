"""Kubernetes: `timely run --on kubernetes`, as the pods run it that `timely k8s` describes.

Pods are called NAME-0, NAME-1, ... and are found under these names in the service NAME. A pod learns its name from its
host's, and `TIMELY_PROCESSES` is how many there are. The keys are in a volume, and are copied to where only this
process can read them.

A pod that fails is started again in its place. So the others wait for it, up to `TIMELY_RENDEZVOUS_SECONDS`; what was
left of the last attempt ends by itself, because it does not meet the new process.

**Probes.** `/live` answers as long as the interpreter runs, and `/ready` with status 200 once all pods are connected.

>>> place = place_of({"HOSTNAME": "wordcount-3", "TIMELY_PROCESSES": "8"})
>>> place.process, place.processes, place.head, place.ports
(3, 8, 'wordcount-0.wordcount', (2100,))
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

from timely.cluster.place import ProcessPlace, listener_at, number
from timely.cluster.rendezvous import placed_at
from timely.communication.curve import KEY_FILE, write_keys
from timely.config import Config
from timely.errors import ConfigError
from timely.run.directory import run_directory

HEALTH_PORT, HEAD_PORT = 2099, 2100
_POD = "a pod of a manifest that 'timely k8s' has written"


def place_of(environ: Mapping[str, str]) -> ProcessPlace:
    found = re.fullmatch(r"(.+)-(\d+)", environ.get("HOSTNAME", ""))
    if found is None:
        raise ConfigError(f"HOSTNAME does not end with a number, so this process is not in {_POD}")
    name, process = found[1], int(found[2])
    processes = number(environ, "TIMELY_PROCESSES", of=f"in {_POD}")
    return ProcessPlace(process, processes, f"{name}-0.{name}", name, (HEAD_PORT,), returns=True)


@contextmanager
def placed(config: Config) -> Iterator[Config]:
    """Yield the configuration of this pod, once all pods are connected."""
    if config.curve_dir is None:
        raise ConfigError("--on kubernetes needs the keys of the secret: --curve DIR names where it is mounted")
    place = place_of(os.environ)
    with answering(HEALTH_PORT) as is_ready, run_directory(config.workers) as directory:
        # Kubernetes lets the group of the pod read a secret, and keys that others can read are refused.
        try:
            public, secret = (Path(config.curve_dir) / KEY_FILE).read_bytes().split()
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read the keys in {config.curve_dir}: {error}") from None
        write_keys(str(directory), public, secret)
        with placed_at(place, replace(config, curve_dir=str(directory))) as settled:
            # Not before: until then other pods could not exchange rows with this one.
            is_ready.set()
            yield settled


@contextmanager
def answering(port: int) -> Iterator[Event]:
    """Answer probes at a port until the context ends; yield the event that makes this process ready."""
    is_ready = Event()

    class Probes(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            if self.path == "/live":
                status, text = 200, b"the interpreter runs\n"
            elif self.path != "/ready":
                status, text = 404, b"/live or /ready\n"
            elif is_ready.is_set():
                status, text = 200, b"all processes are connected\n"
            else:
                status, text = 503, b"waiting for others\n"
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Print nothing: probes come every few seconds."""

    with ThreadingHTTPServer(("", port), Probes, bind_and_activate=False) as server:
        # The constructor has made it, for IPv4 alone.
        server.socket.close()
        server.socket = listener_at(port)
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.1,), name="timely probes", daemon=True)
        thread.start()
        try:
            yield is_ready
        finally:
            server.shutdown()
            thread.join()
