"""Send metrics, and a span for each measured epoch, to a collector of OpenTelemetry: `timely run --telemetry URL`.

Each process looks at its own workers, as for the page, but all the time. The collector receives what
`timely.live.figures` lists, as counters and gauges, every 15 seconds (`OTEL_METRIC_EXPORT_INTERVAL`); and from the
first process the duration of epochs as a histogram, and their spans in groups. All have the number of the process as
`process`, and as `service.instance.id`, by which collectors distinguish what sends to them. Headers, certificates and
the service's name come from the standard variables (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, ...).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time as clock
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from timely.errors import ConfigError
from timely.live.figures import EPOCHS, EPOCHS_TEXT, FIGURES, Figure, label_of
from timely.live.notes import current
from timely.live.state import LIMITS, JobState, frontier_text
from timely.live.watching import Here, Watching
from timely.observe.notices import notify

INTERVAL_VARIABLE = "OTEL_METRIC_EXPORT_INTERVAL"
EXPORT_SECONDS = 15.0
"""How often figures are sent unless `OTEL_METRIC_EXPORT_INTERVAL` names another interval: 500 operators take 0.1 s."""
END_SECONDS = 1.0
"""For how long a job that has ended waits for the collector to take the last figures."""
_OURS = "timely "


class Telemetry:
    """Sends what a state has, and the epochs that have ended. `endpoint` is the address of a collector for OTLP."""

    def __init__(self, endpoint: str, process: int, state: JobState) -> None:
        base = endpoint.rstrip("/")
        name = os.environ.get("OTEL_SERVICE_NAME") or Path(sys.argv[0] or "timely").stem or "timely"
        self._process = {"process": str(process)}
        about: dict[str, str | int] = {
            "service.name": name,
            "service.instance.id": str(process),
            "process.pid": os.getpid(),
        }
        resource = Resource.create(about)
        # The threads that the library starts, which it does in its constructors.
        before = set(threading.enumerate())
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{base}/v1/metrics"), _interval())
        view = View(instrument_name=EPOCHS, aggregation=ExplicitBucketHistogramAggregation(LIMITS))
        self._meters = MeterProvider([reader], resource, shutdown_on_exit=False, views=[view])
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces")))
        for thread in set(threading.enumerate()) - before:
            thread.name = f"{_OURS}{thread.name}"  # none of them calls a worker (see `timely.worker.standstill`)
        self._state = state
        meter = self._meters.get_meter("timely")
        for figure in FIGURES:
            add = meter.create_observable_counter if figure.is_counter else meter.create_observable_gauge
            add(figure.name, [self._observed(figure)], description=figure.text)
        self._histogram = meter.create_histogram(EPOCHS, "s", EPOCHS_TEXT)
        self._tracer = self._tracers.get_tracer("timely")

    def take_epochs(self) -> None:
        offset = clock.time_ns() - clock.perf_counter_ns()
        for index, dataflow in self._state.dataflows.items():
            name = label_of(index, dataflow)
            for epoch in dataflow.epochs:
                attributes = self._process | {
                    "timely.dataflow": name,
                    "timely.frontier": frontier_text(epoch.frontier.elements),
                }
                span = self._tracer.start_span("epoch", start_time=epoch.begun + offset, attributes=attributes)
                span.end(epoch.ended + offset)
                self._histogram.record(epoch.nanoseconds / 1e9, self._process | {"dataflow": name})
            # Or they would be sent again after a look that has failed, which leaves them as they are.
            dataflow.epochs = []

    def close(self) -> None:
        with suppress(Exception):  # a collector that does not answer must not keep a job from ending
            self._meters.shutdown(END_SECONDS * 1000)
        with suppress(Exception):
            self._tracers.shutdown()

    def _observed(self, figure: Figure) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observed(_: CallbackOptions) -> Iterable[Observation]:
            return [
                Observation(value, self._process | dict(zip(figure.labels, labels)))
                for labels, value in figure.samples(self._state)
            ]

        return observed


def _interval() -> float:
    """Return how often figures are sent, in milliseconds."""
    given = os.environ.get(INTERVAL_VARIABLE, "")
    try:
        interval = float(given or 1000 * EXPORT_SECONDS)
    except ValueError:
        interval = 0.0
    if not 0 < interval < inf:
        raise ConfigError(f"{INTERVAL_VARIABLE} is a number of milliseconds, not {given!r:.80}")
    return interval


def begin(endpoint: str, process: int) -> Callable[[], None]:
    """Send to a collector, as a process of the run, until the result is called."""
    watching = Watching(Here(process, current()), dict)
    telemetry = Telemetry(endpoint, process, watching.state)
    # An event belongs to the loop in which it is first waited for, so it can be made in this thread.
    loop, has_ended = asyncio.new_event_loop(), asyncio.Event()

    async def send() -> None:
        ending = asyncio.ensure_future(has_ended.wait())
        while not ending.done():
            watching.keep_looking(3600.0)
            await asyncio.wait((ending, asyncio.ensure_future(watching.looked())), return_when=asyncio.FIRST_COMPLETED)
            telemetry.take_epochs()
        await watching.close()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(send())
        telemetry.close()

    thread = Thread(target=run, name=f"{_OURS}telemetry", daemon=True)
    thread.start()

    def end() -> None:
        with suppress(RuntimeError):  # the loop has ended by an error of its own
            loop.call_soon_threadsafe(has_ended.set)
        thread.join(END_SECONDS)
        if thread.is_alive():
            notify(
                f"the collector at {endpoint} did not take the last figures within {END_SECONDS:g} s, so they are lost"
            )

    return end
