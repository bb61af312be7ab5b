"""Mirrored topics refuse every change by clients, through both request paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    OP_SET,
    TOPIC_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.cluster.mirrors import MirrorAction, MirrorsRequest
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    NewPartitions,
)
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer
from tests.support.mirrored_topics import add_mirror, broker_config
from tests.support.wire import WireClient

POLICY = ErrorCode.POLICY_VIOLATION
SENTENCE = (
    "topic 'orders' is read-only: it is copied by mirror 'east'; "
    "`barnabas mirror promote east` makes its topics writable"
)


def mirrored_data(directory: Path) -> None:
    """Prepare a broker with topics of a paused mirror that follows configs, and `free` of one that does not."""
    with start_daemon(directory) as daemon:
        assert daemon.stop() == 0
    config = broker_config(directory / "data")
    add_mirror(config, "east", {"orders": 2, "doomed": 1}, configs={"min.insync.replicas": "2"})
    add_mirror(config, "west", {"free": 1}, follow_configs=False)


@pytest.fixture(scope="module", params=["compiled", "python"])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("mirrored")
    mirrored_data(directory)
    environ = {"BARNABAS_KERNEL": "python"} if request.param == "python" else None
    with start_daemon(directory, environ=environ) as daemon:
        yield daemon


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[WireClient]:
    with WireClient(daemon.host, daemon.port) as client:
        yield client


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


def test_native_produce_is_refused_with_the_mirror_and_the_next_step(wire: WireClient, batch: Batch) -> None:
    answer = wire.produce("orders", batch())
    assert (answer.error, answer.message) == (POLICY, SENTENCE)
    assert wire.end_offset("orders") == 0


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [9, 13])
def test_kafka_produce_is_refused_before_replicas_are_counted(
    kafka: KafkaWire, batch: Batch, version: int, acks: int
) -> None:
    answer = kafka.produce(version, "orders", batch(), partition=1, acks=acks)
    assert (answer.error_code, answer.error_message) == (POLICY, SENTENCE)


def test_a_transaction_gets_no_mirrored_partition_and_ends_without_it(kafka: KafkaWire, wire: WireClient) -> None:
    wire.create_topic("ours")
    old = WireProducer(kafka, "old", level=0)
    assert old.init() == 0
    assert old.add_partitions(("orders", 0), ("ours", 0)) in (POLICY, ErrorCode.OPERATION_NOT_ATTEMPTED)
    new = WireProducer(kafka, "new")
    assert new.init() == 0
    assert new.write("ours", 0, b"x") == 0
    assert new.write("orders", 0, b"x") == POLICY
    (described,) = kafka.call("describe_transactions", 0, transactional_ids=("new",)).transaction_states
    assert [topic.topic for topic in described.topics] == ["ours"]
    assert new.end(is_commit=True) == 0
    assert wire.end_offset("orders") == 0


def test_records_are_not_deleted_and_partitions_not_added(wire: WireClient) -> None:
    deleted = wire.call(
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition(partition=0, offset=-1)])]
        ),
    )
    result = deleted.topics[0].partitions[0]
    assert result.error == POLICY
    (grown,) = wire.call(CreatePartitionsRequest(topics=[NewPartitions(name="orders", count=3)])).topics
    assert (grown.error, grown.message) == (POLICY, SENTENCE)


def set_config(wire: WireClient, topic: str, name: str, value: str) -> tuple[ErrorCode, str | None]:
    resource = AlterConfigsResource(
        type=TOPIC_RESOURCE, name=topic, operations=[AlterConfigOp(name=name, operation=OP_SET, value=value)]
    )
    (result,) = wire.call(IncrementalAlterConfigsRequest(resources=[resource])).results
    return result.error, result.message


def test_followed_configs_are_refused_and_local_ones_changed(wire: WireClient) -> None:
    error, message = set_config(wire, "orders", "retention.ms", "1000")
    assert (error, message) == (
        POLICY,
        "retention.ms of topic 'orders' cannot be changed: the topic is copied by mirror 'east'; "
        "change the source's topic instead",
    )
    assert set_config(wire, "orders", "min.insync.replicas", "1")[0] is ErrorCode.NONE
    assert set_config(wire, "free", "retention.ms", "1000")[0] is ErrorCode.NONE


def test_a_deleted_topic_may_be_created_by_clients_and_is_written(wire: WireClient, batch: Batch) -> None:
    deleted = wire.delete_topic("doomed")
    assert deleted.error is ErrorCode.NONE
    (east,) = wire.call(MirrorsRequest(action=MirrorAction.DESCRIBE, names=["east"])).mirrors
    assert [(each.topic, each.state) for each in east.topics] == [("doomed", "deleted_here"), ("orders", "mirrored")]
    wire.create_topic("doomed")
    assert wire.produce("doomed", batch()).error is ErrorCode.NONE


def test_released_topics_are_written_immediately(wire: WireClient, kafka: KafkaWire, batch: Batch) -> None:
    refused = wire.call(MirrorsRequest(action=MirrorAction.DELETE, names=["west"]))
    assert refused.error is POLICY
    assert wire.produce("free", batch()).error is POLICY
    deleted = wire.call(MirrorsRequest(action=MirrorAction.DELETE, names=["west"], releases_topics=True))
    assert (deleted.error, deleted.released) == (ErrorCode.NONE, ["free"])
    assert kafka.produce(9, "free", batch()).error_code == ErrorCode.NONE
    assert wire.end_offset("free") == 1


def test_new_producer_ids_are_of_the_clusters_own_range(kafka: KafkaWire) -> None:
    producer = WireProducer(kafka, "own-range")
    assert producer.init() == 0
    assert producer.producer_id >= 2**40
