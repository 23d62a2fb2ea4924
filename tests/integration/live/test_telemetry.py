"""A collector of OpenTelemetry in this process receives the metrics and the epochs of a job of two processes."""

from __future__ import annotations

import gzip
import re
import socket
import time as clock
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.integration.launcher.launching import Run
from tests.integration.live.browsing import PROGRAMS
from tests.unit.communication.networks import free_ports
from timely.live.figures import EPOCHS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Received:
    """What a collector has received."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        """The latest of each metric, by the process that has sent it and its name."""
        self.services: Counter[str] = Counter()
        self.address = ""

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                assert self._count(resource) == "0", "only the first worker measures epochs"
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        else:
            assert path == "/v1/metrics"
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                process = self._count(resource)
                for scope in resource.scope_metrics:
                    self.metrics[process].update({metric.name: metric for metric in scope.metrics})

    def _count(self, resource: Any) -> str:
        """Count the service; return its instance, the process of the run."""
        about = {each.key: each.value.string_value for each in resource.resource.attributes}
        self.services[about["service.name"]] += 1
        return about["service.instance.id"]


def attributes_of(point: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in point.attributes}


@contextmanager
def collector() -> Iterator[Received]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.take(self.path, gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, name="timely collector", daemon=True)
    thread.start()
    received.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()


def test_a_collector_receives_metrics_and_a_span_for_each_epoch() -> None:
    with collector() as received:
        environ = {"OTEL_METRIC_EXPORT_INTERVAL": "500", "OTEL_SERVICE_NAME": "hops"}
        script = PROGRAMS / "hops.py"
        run = Run("run", "-n", "2", "--telemetry", received.address, script, "12", "end", environ=environ)
        try:
            assert run.end(60) == 0, run.error
        finally:
            run.close()
        assert set(received.services) == {"hops"}
        assert len(received.spans) > 20
        frontiers = []
        for span in received.spans:
            assert span.name == "epoch"
            assert 0 <= span.end_time_unix_nano - span.start_time_unix_nano < 10e9
            assert abs(clock.time() - span.end_time_unix_nano / 1e9) < 120
            attributes = attributes_of(span)
            assert attributes["timely.dataflow"] == "0 graph"
            frontiers.append(attributes["timely.frontier"])
        numbers = [int(each) for each in frontiers if each != "done"]
        assert numbers == sorted(set(numbers)), "an epoch was sent twice, or out of order"
        assert received.metrics.keys() == {"0", "1"}
        for process, metrics in received.metrics.items():
            (point,) = metrics["timely_worker_records_received"].sum.data_points
            assert attributes_of(point)["worker"] == process
            assert point.as_double > 500
            assert metrics["timely_worker_records_received"].sum.is_monotonic
            points = metrics["timely_operator_kept_rows"].gauge.data_points
            assert {attributes_of(point)["process"] for point in points} == {process}
        histogram = received.metrics["0"][EPOCHS].histogram.data_points[0]
        assert histogram.count == len(received.spans)
        assert attributes_of(histogram) == {"process": "0", "dataflow": "0 graph"}


def test_a_job_ends_without_a_collector_that_does_not_answer_and_prints_that() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        run = Run("run", "--telemetry", address, PROGRAMS / "hops.py", "3", "end")
        try:
            assert run.end(40) == 0, run.error
            assert f"the collector at {address} did not take the last figures within 1 s" in run.error
        finally:
            run.close()


def test_each_process_serves_its_own_metrics_at_its_own_port() -> None:
    token, (first, second) = "a token for tests", neighbouring_ports()
    environ = {"TIMELY_LIVE_TOKEN": token}
    run = Run("run", "-n", "2", "--metrics", str(first), PROGRAMS / "hops.py", "40", environ=environ)

    def workers(port: int, token: str = token) -> set[str]:
        request = Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})
        with urlopen(request, timeout=20) as answer:
            text = answer.read().decode()
        assert "timely_operator_records_received_total{" in text
        return set(re.findall(r'timely_worker_seconds_total\{process="(\d)",worker="(\d)"\}', text))

    def is_served() -> bool:
        try:
            return (workers(first), workers(second)) == ({("0", "0")}, {("1", "1")})
        except (URLError, AssertionError):
            return False

    try:
        run._wait_for(is_served, 60, "the processes do not serve their metrics")
        with pytest.raises(HTTPError, match="401"):
            workers(second, "another token for tests")
        with pytest.raises(HTTPError, match="404"):
            urlopen(Request(f"http://127.0.0.1:{first}/", headers={"Authorization": f"Bearer {token}"}), timeout=20)
    finally:
        run.close()


def neighbouring_ports() -> tuple[int, int]:
    """Return two ports that are free, one after the other."""
    for port in free_ports(20):
        with suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
            return port, port + 1
    raise AssertionError("there are no two free ports side by side")


@pytest.mark.parametrize(
    ("port", "environ", "reason"),
    [
        ("9400", {}, "metrics (--metrics) are served to whoever has the token: set TIMELY_LIVE_TOKEN"),
        ("65535", {"TIMELY_LIVE_TOKEN": "a token for tests"}, "metrics (--metrics) take a port, and one more for each"),
        ("auto", {"TIMELY_LIVE_TOKEN": "a token for tests"}, "metrics (--metrics) take a port, and one more for each"),
        ("0.0.0.0:9400", {"TIMELY_LIVE_TOKEN": "a token for tests"}, "other machines can reach 0.0.0.0"),
    ],
)
def test_metrics_need_a_port_and_a_token(port: str, environ: dict[str, str], reason: str) -> None:
    run = Run("run", "-n", "2", "--metrics", port, PROGRAMS / "hops.py", "3", "end", environ=environ)
    try:
        assert run.end(40) == 1
        assert reason in run.error
    finally:
        run.close()


def test_what_is_no_address_of_a_collector_is_refused() -> None:
    run = Run("run", "--telemetry", "localhost", PROGRAMS / "hops.py", "3", "end")
    try:
        assert run.end(40) == 1
        assert "--telemetry takes the address of a collector" in run.error
    finally:
        run.close()
