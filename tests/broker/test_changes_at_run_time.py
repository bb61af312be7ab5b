"""Topics and configs that change while clients produce and fetch."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    OP_DELETE,
    OP_SET,
    TOPIC_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    NewPartitions,
    NewTopic,
)
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.wire import WireClient

WAIT_S = 20


class Scope(NamedTuple):
    """The resource on which a config is set."""

    kind: int
    name: str


ALL_BROKERS = Scope(BROKER_RESOURCE, "")
THIS_BROKER = Scope(BROKER_RESOURCE, "1")


def topic(name: str) -> Scope:
    return Scope(TOPIC_RESOURCE, name)


def alter(
    client: WireClient, scope: Scope, config: str, value: str | None, *, validate_only: bool = False
) -> ErrorCode:
    """Set `config`, or delete it (None)."""
    operation = AlterConfigOp(name=config, operation=OP_DELETE if value is None else OP_SET, value=value)
    resource = AlterConfigsResource(type=scope[0], name=scope[1], operations=[operation])
    error: ErrorCode = (
        client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)).results[0].error
    )
    return error


def start_offset(client: WireClient, name: str) -> int:
    request = ListOffsetsRequest(
        isolation=0, topics=[ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition=0, timestamp=-2)])]
    )
    offset: int = client.call(request).topics[0].partitions[0].offset
    return offset


@pytest.mark.parametrize("scope", [topic("aging"), ALL_BROKERS, THIS_BROKER])
def test_retention_is_applied_at_run_time(tmp_path: Path, batch: Batch, scope: Scope) -> None:
    config = "retention.ms" if scope.kind == TOPIC_RESOURCE else "log.retention.ms"
    with (
        start_daemon(tmp_path, "log.retention.check.interval.ms=100", "log.initial.task.delay.ms=10") as daemon,
        WireClient(daemon.host, daemon.port) as client,
    ):
        client.create_topic("aging", segment_bytes="2000")
        client.create_topic("kept", segment_bytes="2000", retention_ms="-1")
        old = int(time.time() * 1000) - 60_000
        for name in ("aging", "kept"):
            for _ in range(10):
                client.produce(name, batch(b"x" * 500, timestamp=old))
        assert alter(client, scope, config, "1000", validate_only=True) == ErrorCode.NONE
        assert start_offset(client, "aging") == 0
        assert alter(client, scope, config, "1000") == ErrorCode.NONE
        deadline = time.monotonic() + WAIT_S
        while start_offset(client, "aging") < 10:
            assert time.monotonic() < deadline
        assert start_offset(client, "kept") == 0


@pytest.mark.parametrize("scope", [topic("sized"), ALL_BROKERS, THIS_BROKER])
def test_the_largest_message_is_applied_at_run_time_and_taken_back(
    wire: WireClient, batch: Batch, scope: Scope
) -> None:
    config = "max.message.bytes" if scope.kind == TOPIC_RESOURCE else "message.max.bytes"
    name = f"sized{scope.kind}{scope.name}"
    scope = topic(name) if scope.kind == TOPIC_RESOURCE else scope
    wire.create_topic(name)
    assert alter(wire, scope, config, "400", validate_only=True) == ErrorCode.NONE
    assert wire.produce(name, batch(b"x" * 500)).error == ErrorCode.NONE
    assert alter(wire, scope, config, "400") == ErrorCode.NONE
    assert wire.produce(name, batch(b"x" * 500)).error == ErrorCode.MESSAGE_TOO_LARGE
    assert alter(wire, scope, config, None) == ErrorCode.NONE
    assert wire.produce(name, batch(b"x" * 500)).error == ErrorCode.NONE


def test_the_timestamp_type_and_the_segment_size_are_applied_at_run_time(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("stamped")
    assert wire.produce("stamped", batch(b"x" * 1500)).log_append_time_ms == -1
    assert alter(wire, topic("stamped"), "message.timestamp.type", "LogAppendTime") == ErrorCode.NONE
    assert wire.produce("stamped", batch(b"x" * 1500)).log_append_time_ms > 1_700_000_000_000
    directory = daemon.data_directory / "stamped-0"
    wire.produce("stamped", batch(b"x" * 1500))
    before = len(list(directory.glob("*.log")))
    assert alter(wire, topic("stamped"), "segment.bytes", "2000") == ErrorCode.NONE
    assert wire.produce("stamped", batch(b"x" * 1500)).error == ErrorCode.NONE
    assert len(list(directory.glob("*.log"))) == before + 1


def test_a_read_only_or_unknown_property_or_a_bad_value_changes_nothing(wire: WireClient) -> None:
    for config, value in (("listeners", "x:1"), ("no.such", "1"), ("log.retention.ms", "soon")):
        assert alter(wire, THIS_BROKER, config, value) == ErrorCode.INVALID_REQUEST
    described = wire.call(
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(type=THIS_BROKER[0], name=THIS_BROKER[1], names=["log.retention.ms"])]
        ),
    )
    assert "DYNAMIC" not in described.results[0].entries[0].source


def test_validate_only_makes_no_topic_and_no_partition(daemon: Daemon, wire: WireClient) -> None:
    wire.create_topic("real")
    create = CreateTopicsRequest(topics=[NewTopic(name="imagined", partitions=1)], validate_only=True)
    assert wire.call(create).topics[0].error == ErrorCode.NONE
    grow = CreatePartitionsRequest(topics=[NewPartitions(name="real", count=3)], validate_only=True)
    assert wire.call(grow).topics[0].error == ErrorCode.NONE
    topics = {each.name: each for each in wire.call(MetadataRequest.of_names(None)).topics}
    assert "imagined" not in topics
    assert len(topics["real"].partitions) == 1
    assert not list(daemon.data_directory.glob("imagined-*")) + list(daemon.data_directory.glob("real-1"))


def test_metadata_creates_what_is_missing_where_both_sides_allow_it(wire: WireClient, batch: Batch) -> None:
    assert wire.call(MetadataRequest.of_names(["asked"])).topics[0].error == 3
    made, bad = wire.call(MetadataRequest.of_names(["made", "bad/name"], allow_auto_creation=True)).topics
    assert (made.error, len(made.partitions), bad.error) == (0, 1, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert wire.produce("made", batch()).error == ErrorCode.NONE


def test_many_clients_may_ask_for_the_same_missing_topic_at_once(daemon: Daemon) -> None:
    def ask(_: int) -> int:
        with WireClient(daemon.host, daemon.port) as client:
            request = MetadataRequest.of_names(["wanted"], allow_auto_creation=True)
            error: int = client.call(request).topics[0].error
            return error

    with ThreadPoolExecutor(8) as clients:
        assert list(clients.map(ask, range(40))) == [ErrorCode.NONE] * 40


def test_topics_come_and_go_while_clients_produce_and_fetch(tmp_path: Path, batch: Batch) -> None:
    """Every response is an expected one, no request stays unanswered, and the stop is clean."""
    done = threading.Event()
    one = batch(b"x" * 2000)

    def work(daemon: Daemon, number: int) -> Counter[ErrorCode]:
        errors: Counter[ErrorCode] = Counter()
        with WireClient(daemon.host, daemon.port) as client:
            while not done.is_set():
                partition = errors.total() % 4
                if number % 2:
                    errors[client.produce("churn", one, partition).error] += 1
                else:
                    errors[client.fetch("churn", 0, partition, max_wait_ms=50).error] += 1
        return errors

    with start_daemon(tmp_path) as daemon, ThreadPoolExecutor(6) as clients:
        workers = [clients.submit(work, daemon, number) for number in range(6)]
        try:
            with WireClient(daemon.host, daemon.port) as admin:
                for turn in range(30):
                    admin.create_topic("churn", partitions=2, segment_bytes="5000", flush_messages=str(1 + turn % 2))
                    grow = CreatePartitionsRequest(topics=[NewPartitions(name="churn", count=4)])
                    assert admin.call(grow).topics[0].error == ErrorCode.NONE
                    assert alter(admin, topic("churn"), "segment.bytes", "6000") == ErrorCode.NONE
                    assert admin.produce("churn", one, turn % 4).error == ErrorCode.NONE
                    deleted = admin.delete_topic("churn")
                    assert deleted.error == ErrorCode.NONE
        finally:
            done.set()
        errors = sum([worker.result(WAIT_S) for worker in workers], Counter())
        expected = {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
        assert set(errors) <= expected
        assert errors[ErrorCode.NONE] > 0
        assert "a bug" not in daemon.log
        assert "goes offline" not in daemon.log
        assert daemon.stop() == 0
