"""What Prometheus reads, parsed by its own library, against what operators did; and the dashboard's names."""

from __future__ import annotations

import json
import re
import time as clock
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.api.modules import ROOT
from timely import Config, Worker, execute, new_input
from timely.live.figures import EPOCHS, FIGURES
from timely.live.jobs import LiveJob, page_at
from timely.live.prometheus import exposition
from timely.live.shape import Box, Diagram, DiagramNode
from timely.live.state import JobState
from timely.run.live import serve_live

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@contextmanager
def fed() -> Iterator[tuple[LiveJob, Queue[int]]]:
    """Run a dataflow on two workers; yield its page, and a queue of how many records to send, each in an epoch."""
    orders: Queue[int] = Queue()

    def program(worker: Worker) -> None:
        with worker.dataflow("words") as scope:
            numbers, stream = new_input(scope, name="numbers")
            probe = stream.exchange(name="spread").probe()
        if worker.index:
            numbers.close()
            worker.step_while(lambda: not probe.done())
            return
        while (count := _next(orders)) >= 0:
            if count:
                numbers.send(list(range(count)))
                numbers.advance_to(numbers.epoch + 1)
            worker.step_while(lambda: probe.less_than(numbers.epoch))

    page = serve_live(0)
    thread = Thread(target=execute, args=(program, Config(workers=2)), name="timely test")
    thread.start()
    try:
        yield page_at(page.url), orders
    finally:
        orders.put(-1)
        thread.join(20)
        page.close()


def _next(orders: Queue[int]) -> int:
    clock.sleep(0.01)
    return 0 if orders.empty() else orders.get()


def scrape(job: LiveJob, accept: str = "text/plain") -> tuple[str, str]:
    headers = {"Authorization": f"Bearer {job.token}", "Accept": accept}
    with urllib.request.urlopen(urllib.request.Request(f"{job.url}metrics", headers=headers), timeout=20) as answer:
        return answer.read().decode(), answer.headers["content-type"]


def values(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


def total(found: Values, metric: str, **labels: str) -> float:
    return sum(value for (each, has), value in found.items() if each == metric and labels.items() <= dict(has).items())


@pytest.mark.lengthy
@pytest.mark.usefixtures("measured_however_long_it_takes")
def test_a_scrape_has_what_operators_did_since_the_first_one() -> None:
    with fed() as (job, orders):
        before = values(scrape(job)[0])
        clock.sleep(0.6)  # the looks after the first scrape begin to count
        for _ in range(5):
            orders.put(100)
        end = clock.monotonic() + 20
        while total(after := values(scrape(job)[0]), "timely_operator_frontier", name="spread") < 5:
            assert clock.monotonic() < end, after
        after = values(scrape(job)[0])
        assert total(after, "timely_operator_records_received_total", name="spread") == 500
        assert total(after, "timely_worker_records_received_total") == 500
        assert {dict(has)["worker"] for name, has in after if name == "timely_worker_seconds_total"} == {"0", "1"}
        assert total(after, "timely_operator_seconds_total", name="spread") > 0
        assert total(after, f"{EPOCHS}_count", dataflow="0 words") == 5
        assert total(after, f"{EPOCHS}_bucket", le="+Inf") == 5
        assert 0 < total(after, f"{EPOCHS}_sum") < 20
        assert total(after, "timely_worker_answering") == 2
        assert total(after, "timely_dataflows_running") == 1
        grown = [key for key, value in before.items() if key[0].endswith("_total") and value > after[key]]
        assert grown == []


def test_the_format_is_that_which_is_asked_for() -> None:
    with fed() as (job, _):
        plain, plain_type = scrape(job)
        openly, open_type = scrape(job, "application/openmetrics-text; version=1.0.0")
        assert plain_type.startswith("text/plain")
        assert open_type.startswith("application/openmetrics-text")
        names = {family.name for family in parse_open_metrics(openly)}
        assert names == {figure.name for figure in FIGURES} | {EPOCHS}
        assert {family.name for family in parse_text(plain)} == names


@pytest.mark.parametrize("accepted", ["", "application/openmetrics-text"])
def test_names_that_are_not_utf_8_are_labels_all_the_same(accepted: str) -> None:
    state, name = JobState(), "caf\udce9.csv"
    node = DiagramNode(name, 0, "", "operator", True)
    state.add_shapes([Diagram(0, name, [Box(name, -1, False)], [node])])
    body, _ = exposition(state, accepted)
    assert body.decode().count(r"caf\\udce9.csv") > 3


def test_the_dashboard_names_only_metrics_and_labels_that_exist() -> None:
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text())
    exposed = {f"{figure.name}{'_total' if figure.is_counter else ''}": set(figure.labels) for figure in FIGURES}
    exposed[f"{EPOCHS}_bucket"] = {"dataflow", "le"}
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [each["query"] for each in dashboard["templating"]["list"]]
    used = {name for query in queries for name in re.findall(r"\btimely_\w+", query)}
    assert len(used) > 8
    assert used - exposed.keys() == set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            names = re.findall(r"\btimely_\w+", target["expr"])
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            for group in re.findall(r"by \(([\w, ]+)\)", target["expr"]):
                labels |= set(group.split(", "))
            assert labels - set().union(*(exposed[name] for name in names)) <= {"job"}, panel["title"]


@pytest.mark.slow
def test_without_a_viewer_a_scrape_counts_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.live.server.LINGER_SECONDS", 0.1)
    with fed() as (job, orders):
        scrape(job)
        clock.sleep(3.5)
        orders.put(100)
        clock.sleep(0.2)
        found = values(scrape(job)[0])
        assert total(found, "timely_operator_records_received_total") == 0
        assert total(found, "timely_operator_frontier", name="spread") == 1
