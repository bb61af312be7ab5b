"""Metrics that clients push (KIP-714): subscriptions, the checks of a push, and what /metrics shows of it."""

from __future__ import annotations

import contextlib
import re
import urllib.request
import zlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from barnabas.broker.client_metrics.otlp import MAX_POINTS, Point, read_points
from barnabas.broker.client_metrics.received import MAX_SERIES, ReceivedMetrics
from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.errors import DecodeError, ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.telemetry import ask, delta, field, gauge, metrics_data, push, subscribe

GET, PUSH = 71, 72


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = ("client.metrics.enable=true", "telemetry.max.bytes=4096")
    with start_daemon(tmp_path_factory.mktemp("telemetry"), *settings) as daemon:
        yield daemon


@pytest.fixture
def kafka(broker: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(broker.host, broker.port) as client:
        client.call("api_versions", 3, client_software_name="pusher", client_software_version="7.1")
        yield client


@pytest.fixture
def subscription(kafka: KafkaWire) -> Iterator[str]:
    subscribe(
        kafka, "pushers", metrics="org.apache,org.other", interval_ms="60000", match="client_software_name=push.*"
    )
    yield "pushers"
    subscribe(kafka, "pushers", metrics=None, interval_ms=None, match=None)


def test_the_apis_are_listed_only_where_they_are_switched_on(kafka: KafkaWire, daemon: Daemon) -> None:
    with KafkaWire(daemon.host, daemon.port) as other:
        listed = [
            {int(each.api_key) for each in client.call("api_versions", 3, **software).api_keys} & {GET, PUSH}
            for client in (kafka, other)
            for software in [{"client_software_name": "a", "client_software_version": "1"}]
        ]
        # As in Kafka, one that asks nevertheless is answered.
        assert ask(other).error_code == ErrorCode.NONE
    assert listed == [{GET, PUSH}, set()]


def test_a_client_is_told_its_subscription_and_is_throttled_until_the_next_interval(
    kafka: KafkaWire, subscription: str
) -> None:
    asked = ask(kafka)
    assert asked.client_instance_id not in (None, UUID(int=0))
    assert sorted(asked.requested_metrics) == ["org.apache", "org.other"]
    assert asked.accepted_compression_types == (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
    assert asked.push_interval.total_seconds() == 60
    assert (asked.telemetry_max_bytes, asked.delta_temporality) == (4096, True)

    assert ask(kafka, asked.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(kafka, asked, b"") == ErrorCode.NONE
    assert push(kafka, asked, b"") == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_client_that_no_subscription_matches_is_asked_for_nothing(broker: Daemon, subscription: str) -> None:
    with KafkaWire(broker.host, broker.port) as stranger:
        asked = ask(stranger)
    assert (asked.error_code, asked.requested_metrics) == (ErrorCode.NONE, ())


def test_a_changed_subscription_has_another_id_and_the_old_one_is_unknown(kafka: KafkaWire, subscription: str) -> None:
    asked = ask(kafka)
    subscribe(kafka, subscription, metrics="*")
    assert push(kafka, asked, b"") == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = ask(kafka, asked.client_instance_id)
    assert again.requested_metrics == ("*",)
    assert again.subscription_id != asked.subscription_id
    # The refused push counts: as in Kafka, the next one but the last has to wait for the interval.
    assert push(kafka, again, b"") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(kafka, again, b"", terminating=True) == ErrorCode.NONE


def test_pushed_metrics_are_on_the_metrics_page_with_deltas_added_up(
    kafka: KafkaWire, broker: Daemon, subscription: str
) -> None:
    asked = ask(kafka)
    data = metrics_data(gauge("latency.avg", 2.5, node_id="1"), delta("sent.total", 40))
    assert push(kafka, asked, compress(Codec.ZSTD, data), compression_type=Codec.ZSTD) == ErrorCode.NONE
    last = metrics_data(gauge("latency.avg", 1.5, node_id="1"), delta("sent.total", 2))
    assert push(kafka, asked, compress(Codec.GZIP, last), compression_type=Codec.GZIP, terminating=True) == 0

    with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics", timeout=30) as page:
        rows = [line for line in page.read().decode().splitlines() if line.startswith("barnabas_client_metric{")]
    (instance,) = {part for line in rows for part in re.findall('instance="([^"]*)"', line)}
    name = f'barnabas_client_metric{{attributes="%s",client="wire",instance="{instance}",metric="%s"}} %s'
    assert sorted(rows) == [name % ("", "sent.total", "42.0"), name % ("node_id=1", "latency.avg", "1.5")]


def test_nothing_follows_the_last_push_of_a_client(kafka: KafkaWire, subscription: str) -> None:
    asked = ask(kafka)
    assert push(kafka, asked, b"", terminating=True) == ErrorCode.NONE
    assert push(kafka, asked, b"", terminating=True) == ErrorCode.INVALID_REQUEST


def test_wrong_pushes_are_refused_with_kafkas_codes(broker: Daemon, subscription: str) -> None:
    bomb = compress(Codec.GZIP, bytes(1 << 24) + b"1")
    codes = []
    settings: dict[str, Any]
    for data, settings in (
        (b"", {"subscription_id": 12345}),
        (b"", {"compression_type": 9}),
        (bytes(4097), {}),
        (b"\xff" * 20, {}),
        (zlib.compress(b"not gzip"), {"compression_type": Codec.GZIP}),
        (metrics_data(gauge("a", 1.0))[:-3], {}),
        (bomb[:4096], {"compression_type": Codec.GZIP}),
    ):
        with KafkaWire(broker.host, broker.port) as client:
            codes.append(push(client, ask(client), data, **settings))
    assert codes == [
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.TELEMETRY_TOO_LARGE,
        *[ErrorCode.INVALID_RECORD] * 4,
    ]


def test_a_push_without_an_instance_id_is_refused(kafka: KafkaWire) -> None:
    for instance in (None, UUID(int=1)):
        answer = kafka.call(
            "push_telemetry",
            0,
            client_instance_id=instance,
            subscription_id=0,
            terminating=False,
            compression_type=0,
            metrics=b"",
        )
        assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_new_connection_of_an_instance_begins_again(broker: Daemon, subscription: str) -> None:
    instance = uuid4()
    for _ in range(2):
        with KafkaWire(broker.host, broker.port) as client:
            assert ask(client, instance).error_code == ErrorCode.NONE
            assert push(client, ask(client, instance), b"", subscription_id=0) != ErrorCode.NONE


def test_points_are_read_from_opentelemetrys_messages_and_more_than_the_bound_are_refused() -> None:
    data = metrics_data(gauge("a", 0.5, topic="t", partition="0"), delta("b", -3))
    assert read_points(memoryview(data)) == [
        Point("a", (("partition", "0"), ("topic", "t")), 0.5, False),
        Point("b", (), -3.0, True),
    ]
    many = field(2, delta("b", 1)) * (MAX_POINTS + 1)
    size = [len(many) & 0x7F | 0x80, len(many) >> 7 & 0x7F | 0x80, len(many) >> 14]
    scope = bytes([0x12, *size]) + many
    size = [len(scope) & 0x7F | 0x80, len(scope) >> 7 & 0x7F | 0x80, len(scope) >> 14]
    with pytest.raises(DecodeError, match="more than"):
        read_points(memoryview(bytes([0x0A, *size]) + scope))


@pytest.mark.parametrize("cut", range(1, 40))
def test_cut_messages_are_read_or_refused(cut: int) -> None:
    data = metrics_data(gauge("a", 0.5, topic="t"), delta("b", 3))
    with contextlib.suppress(DecodeError):
        read_points(memoryview(data)[:-cut])


def test_the_series_of_all_clients_together_are_bounded_and_go_with_their_client() -> None:
    received = ReceivedMetrics()
    received.keep("one", "c", [Point(f"m{number}", (), 1.0, False) for number in range(MAX_SERIES)])
    received.keep("two", "c", [Point("late", (), 1.0, False)])
    assert (len(list(received.series())), received.dropped_series) == (MAX_SERIES, 1)
    received.forget("one")
    received.keep("two", "c", [Point("late", (), 1.0, False)])
    assert [each.metric for each in received.series()] == ["late"]
