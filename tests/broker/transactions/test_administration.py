"""ListTransactions, DescribeTransactions and WriteTxnMarkers through the wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.repeated_warnings import LINES
from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import create_topic
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.wire_producer import WireProducer
from tests.support.metrics import metric
from tests.support.transactions.committed_reads import end_offset, fetch_committed


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory: Path = tmp_path_factory.mktemp("administration")
    with start_daemon(directory, "transaction.state.log.num.partitions=3") as daemon:
        yield daemon


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as wire:
        yield wire


def opened(kafka: KafkaWire, transactional_id: str, topic: str) -> WireProducer:
    """Return a producer with an open transaction in two partitions of a new topic."""
    create_topic(kafka, topic, 2)
    producer = WireProducer(kafka, transactional_id)
    assert producer.init() == 0
    assert producer.write_many({(topic, 0): (b"a",), (topic, 1): (b"b",)}) == 0
    return producer


def listed(kafka: KafkaWire, **filters: Any) -> dict[str, tuple[int, str]]:
    version = filters.pop("version", 2)
    answer = kafka.call("list_transactions", version, **{"state_filters": (), "producer_id_filters": (), **filters})
    assert answer.error_code == 0, answer
    return {each.transactional_id: (each.producer_id, each.transaction_state) for each in answer.transaction_states}


def test_transactions_are_listed_by_state_producer_age_and_pattern(kafka: KafkaWire) -> None:
    first, second = opened(kafka, "list.first", "listed"), WireProducer(kafka, "list.second")
    assert second.init() == 0
    both = {"list.first": (first.producer_id, "Ongoing"), "list.second": (second.producer_id, "Empty")}
    pattern = {"transactional_id_pattern": "list\\..*"}
    assert listed(kafka, **pattern) == both
    assert listed(kafka, transactional_id_pattern="list") == {}
    assert listed(kafka, state_filters=("Ongoing",), **pattern).keys() == {"list.first"}
    assert listed(kafka, producer_id_filters=(second.producer_id,)).keys() == {"list.second"}
    assert listed(kafka, version=1, duration_filter=3_600_000, state_filters=("Ongoing",)) == {}
    assert both.items() <= listed(kafka, version=0).items()
    answer = kafka.call("list_transactions", 0, state_filters=("Ongoing", "Sleeping"), producer_id_filters=())
    assert answer.unknown_state_filters == ("Sleeping",)
    answer = kafka.call("list_transactions", 2, state_filters=(), producer_id_filters=(), transactional_id_pattern="(")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert first.end(is_commit=False) == 0
    assert listed(kafka, **pattern)["list.first"] == (first.producer_id, "CompleteAbort")


def test_a_transaction_is_described_with_its_partitions(kafka: KafkaWire) -> None:
    producer = opened(kafka, "described", "described")
    answer = kafka.call("describe_transactions", 0, transactional_ids=("described", "unknown", "", "described"))
    found, unknown, empty, again = answer.transaction_states
    assert (found.error_code, found.transactional_id, found.transaction_state) == (0, "described", "Ongoing")
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.epoch)
    assert found.transaction_timeout.total_seconds() == 60
    assert {each.topic: set(each.partitions) for each in found.topics} == {"described": {0, 1}}
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST
    assert again == found
    assert producer.end(is_commit=True) == 0


@pytest.mark.parametrize("version", [1, 2])
def test_markers_of_an_administrator_end_a_transaction_in_each_partition(kafka: KafkaWire, version: int) -> None:
    topic = f"marked-{version}"
    producer = opened(kafka, topic, topic)
    assert end_offset(kafka, topic, 0, committed=True) == 0
    epoch = producer.epoch + (1 if version == 2 else 0)
    codes = write_markers(kafka, version, producer.producer_id, epoch, {topic: (0, 1, 9), "no-topic": (0,)})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {(topic, 0): 0, (topic, 1): 0, (topic, 9): unknown, ("no-topic", 0): unknown}
    found = fetch_committed(kafka, topic, 0, 0)
    assert (found.values, len(found.markers)) == ([], 1)
    late = write_markers(kafka, version, producer.producer_id, producer.epoch - 1, {topic: (0,)})
    assert late == {(topic, 0): ErrorCode.INVALID_PRODUCER_EPOCH}


def test_the_metrics_count_transactions_by_their_end(daemon: Daemon, kafka: KafkaWire) -> None:
    names = ("open", "committed_total", "aborted_total", "replaced_total", "timed_out_total", "fencings_total")

    def counted() -> list[float]:
        return [metric(daemon, f"barnabas_transactions_{name}") or 0 for name in names]

    before = counted()
    producer = opened(kafka, "counted", "counted")
    assert producer.end(is_commit=True) == 0
    assert producer.write("counted", 0, b"c") == 0
    assert producer.end(is_commit=False) == 0
    assert producer.write("counted", 0, b"d") == 0
    assert counted() == [before[0] + 1, before[1] + 1, before[2] + 1, *before[3:]]
    assert (metric(daemon, "barnabas_transactions_oldest_open_seconds") or 0) > 0
    successor = WireProducer(kafka, "counted")
    assert successor.init() == 0
    assert producer.end(is_commit=True) == ErrorCode.PRODUCER_FENCED
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [0, 1, 1, 1, 0, 1]
    assert "a producer is refused, transactional.id=counted: PRODUCER_FENCED" in daemon.log


def test_refused_producers_have_few_lines_in_the_log(daemon: Daemon, kafka: KafkaWire) -> None:
    def end(transactional_id: str) -> int:
        values = {"transactional_id": transactional_id, "producer_id": 7, "producer_epoch": 0, "committed": True}
        return int(kafka.call("end_txn", 3, **values).error_code)

    for _ in range(3):
        assert end("repeats") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for number in range(5 * LINES):
        assert end(f"made-up-{number}") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    lines = [line for line in daemon.log.splitlines() if "INVALID_PRODUCER_ID_MAPPING" in line]
    assert len([line for line in lines if "transactional.id=repeats:" in line]) == 1
    assert len(lines) == LINES


def test_errors_of_transactional_requests_are_counted(daemon: Daemon, kafka: KafkaWire) -> None:
    def count(api: str, error: str) -> float:
        return metric(daemon, f'barnabas_request_errors_total{{api="{api}",error="{error}"}}') or 0

    create_topic(kafka, "errors", 3)
    producer = WireProducer(kafka, "errors", level=0)
    assert producer.init() == 0
    assert producer.write("errors", 2, b"a") == 0
    assert WireProducer(kafka, "errors").init() == 0
    fenced = ("add_partitions_to_txn", "add_offsets_to_txn", "end_txn")
    before = [count(api, "producer_fenced") for api in fenced]
    assert producer.add_partitions(("errors", 0), ("errors", 1)) == ErrorCode.PRODUCER_FENCED
    assert producer.commit_offsets("errors", "errors", {0: 1}) == ErrorCode.PRODUCER_FENCED
    assert producer.end(is_commit=True) == ErrorCode.PRODUCER_FENCED
    after = [count(api, "producer_fenced") for api in fenced]
    assert [now - then for now, then in zip(after, before, strict=True)] == [2, 1, 1]
    assert count("init_producer_id", "concurrent_transactions") > 0  # the start that fenced the producer


def write_markers(
    kafka: KafkaWire, version: int, producer_id: int, epoch: int, topics: dict[str, tuple[int, ...]]
) -> dict[tuple[str, int], int]:
    """Write abort markers; return the error by partition."""
    kio = schema("write_txn_markers", version, "request")
    marker = kio.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=False,
        topics=tuple(
            kio.WritableTxnMarkerTopic(name=name, partition_indexes=numbers) for name, numbers in topics.items()
        ),
        coordinator_epoch=0,
        **({"transaction_version": 2} if version == 2 else {}),
    )
    (result,) = kafka.call("write_txn_markers", version, markers=(marker,)).markers
    assert result.producer_id == producer_id
    return {(topic.name, each.partition_index): each.error_code for topic in result.topics for each in topic.partitions}
