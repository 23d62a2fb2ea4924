"""What Prometheus reads at `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from timely.live.figures import EPOCHS, EPOCHS_TEXT, FIGURES, label_of
from timely.live.state import LIMITS, JobState


class StateCollector(Collector):
    """Collects the figures of a state."""

    def __init__(self, state: JobState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        for figure in FIGURES:
            family = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
            metric = family(figure.name, figure.text, labels=figure.labels)
            for labels, value in figure.samples(self._state):
                metric.add_metric(labels, value)
            yield metric
        epochs = HistogramMetricFamily(EPOCHS, EPOCHS_TEXT, labels=("dataflow",))
        # No copy: this runs in the loop that changes the state, without waiting in between.
        for index, dataflow in self._state.dataflows.items():
            total, buckets = 0, []
            for limit, count in zip((*LIMITS, "+Inf"), dataflow.taken):
                total += count
                buckets.append((str(limit), total))
            epochs.add_metric([label_of(index, dataflow)], buckets, dataflow.taken_seconds)
        yield epochs


def exposition(state: JobState, accepted: str) -> tuple[bytes, str]:
    """Return the figures of a state in a form that the `Accept` header of a request names, and the form's type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(state))
    encode, content_type = choose_encoder(accepted)
    return encode(registry), content_type
