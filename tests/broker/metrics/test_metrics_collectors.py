"""Metrics of counters with known values."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import barnabas
from barnabas.broker.metrics.registry import make_registry
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import REQUEST_LATENCY_BOUNDS_SECONDS, BrokerProbes
from barnabas.protocol.records.kernels.kernel import KERNEL


class Scrape:
    """The samples of one scrape, looked up by `value("name", label="...")`."""

    def __init__(self, probes: BrokerProbes, state: BrokerState) -> None:
        text = generate_latest(make_registry(probes, state)).decode()
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        return self._samples[name, frozenset(labels.items())]

    def names(self) -> set[str]:
        return {name for name, _ in self._samples}


@pytest.fixture
def probes() -> BrokerProbes:
    return BrokerProbes()


@pytest.fixture
def state() -> BrokerState:
    return BrokerState()


def test_the_request_histogram_is_cumulative_and_its_count_is_all_requests(
    probes: BrokerProbes, state: BrokerState
) -> None:
    produce = probes.api("produce")
    for seconds in (0.00003, 0.00003, 0.002, 99.0):
        produce.observe(seconds)
    scrape = Scrape(probes, state)
    bucket = "barnabas_request_duration_seconds_bucket"
    assert scrape.value(bucket, api="produce", le="2.5e-05") == 0
    assert scrape.value(bucket, api="produce", le="5e-05") == 2
    assert scrape.value(bucket, api="produce", le="0.001") == 2
    assert scrape.value(bucket, api="produce", le="0.0025") == 3
    assert scrape.value(bucket, api="produce", le=str(REQUEST_LATENCY_BOUNDS_SECONDS[-1])) == 3
    assert scrape.value(bucket, api="produce", le="+Inf") == 4
    assert scrape.value("barnabas_request_duration_seconds_count", api="produce") == 4
    assert scrape.value("barnabas_request_duration_seconds_sum", api="produce") == pytest.approx(99.00206)


def test_an_api_shows_before_its_first_request(probes: BrokerProbes, state: BrokerState) -> None:
    probes.api("fetch")
    assert Scrape(probes, state).value("barnabas_request_duration_seconds_count", api="fetch") == 0


def test_errors_are_counted_by_api_and_error(probes: BrokerProbes, state: BrokerState) -> None:
    probes.api("fetch").count_error("offset_out_of_range")
    probes.api("fetch").count_error("offset_out_of_range")
    probes.api("produce").count_error("corrupt_message")
    scrape = Scrape(probes, state)
    assert scrape.value("barnabas_request_errors_total", api="fetch", error="offset_out_of_range") == 2
    assert scrape.value("barnabas_request_errors_total", api="produce", error="corrupt_message") == 1


def test_fetches_that_wait_are_a_gauge(probes: BrokerProbes, state: BrokerState) -> None:
    probes.fetches_waiting += 3
    assert Scrape(probes, state).value("barnabas_fetches_waiting") == 3


def test_traffic_is_counted_by_topic(probes: BrokerProbes, state: BrokerState) -> None:
    orders = probes.topic("orders")
    orders.bytes_in, orders.records_in, orders.bytes_out, orders.records_out = 1, 2, 3, 4
    scrape = Scrape(probes, state)
    values = [
        scrape.value(f"barnabas_topic_{what}_total", topic="orders")
        for what in ("received_bytes", "received_records", "sent_bytes", "sent_records")
    ]
    assert values == [1, 2, 3, 4]


def test_connections_are_told_apart_by_how_they_ended(probes: BrokerProbes, state: BrokerState) -> None:
    connections = probes.connections
    for _ in range(3):
        connections.count_accepted()
    connections.count_closed("idle")
    connections.count_refused("max_connections")
    connections.received_bytes, connections.sent_bytes = 10, 20
    scrape = Scrape(probes, state)
    assert scrape.value("barnabas_connections_open") == 2
    assert scrape.value("barnabas_connections_accepted_total") == 3
    assert scrape.value("barnabas_connections_closed_total", error="idle") == 1
    assert scrape.value("barnabas_connections_refused_total", error="max_connections") == 1
    assert scrape.value("barnabas_network_received_bytes_total") == 10
    assert scrape.value("barnabas_network_sent_bytes_total") == 20


def test_the_event_loops_lag_is_a_histogram(probes: BrokerProbes, state: BrokerState) -> None:
    probes.loop_lag.observe(0.03)
    scrape = Scrape(probes, state)
    assert scrape.value("barnabas_event_loop_lag_seconds_bucket", le="0.025") == 0
    assert scrape.value("barnabas_event_loop_lag_seconds_bucket", le="0.05") == 1
    assert scrape.value("barnabas_event_loop_lag_seconds_sum") == 0.03


def test_ready_is_one_only_while_the_broker_serves(probes: BrokerProbes, state: BrokerState) -> None:
    before = Scrape(probes, state).value("barnabas_ready")
    state.serve()
    serving = Scrape(probes, state).value("barnabas_ready")
    state.drain()
    draining = Scrape(probes, state).value("barnabas_ready")
    assert (before, serving, draining) == (0, 1, 0)


def test_the_build_names_its_version_and_kernel(probes: BrokerProbes, state: BrokerState) -> None:
    assert Scrape(probes, state).value("barnabas_build_info", version=barnabas.__version__, kernel=KERNEL) == 1


def test_a_label_value_with_quotes_and_newlines_is_still_one_sample(probes: BrokerProbes, state: BrokerState) -> None:
    probes.api("produce").count_error('a "strange"\nerror\\')
    scrape = Scrape(probes, state)
    assert scrape.value("barnabas_request_errors_total", api="produce", error='a "strange"\nerror\\') == 1
