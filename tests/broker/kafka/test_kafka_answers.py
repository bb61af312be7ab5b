"""Slightly wrong requests get the same answers as from Apache Kafka 4.3.0.

Each row was recorded from a real broker of that release; the API version is the one used in the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.wire import WireClient

UNKNOWN_RANGE = (-1, -1, -1)
RECORDS = 4
_NUMBERS = count()


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as client:
        yield client


@pytest.fixture
def topic(wire: WireClient, batch: Batch) -> str:
    """Create a topic for one test with two partitions, and records in the first."""
    name = f"t{next(_NUMBERS)}"
    wire.create_topic(name, 2)
    wire.produce(name, batch(*[b"v"] * RECORDS))
    return name


def fetch(
    kafka: KafkaWire, version: int, *topics: tuple[str, list[tuple[int, int]]], isolation: int = 0, epoch: int = -1
) -> Any:
    kio = schema("fetch", version, "request")
    entries = tuple(
        kio.FetchTopic(
            topic=name,
            partitions=tuple(
                kio.FetchPartition(
                    partition=number, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
                )
                for number, offset in partitions
            ),
        )
        for name, partitions in topics
    )
    return kafka.call(
        "fetch",
        version,
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=entries,
        forgotten_topics_data=(),
        session_epoch=-1,
        rack_id="",
    )


def list_offsets(kafka: KafkaWire, version: int, topic: str, timestamp: int, **fields: Any) -> Any:
    kio = schema("list_offsets", version, "request")
    epoch = {"current_leader_epoch": fields.pop("epoch", -1)} if version >= 4 else {}
    entry = kio.ListOffsetsPartition(partition_index=0, timestamp=timestamp, **epoch)
    topics = (kio.ListOffsetsTopic(name=topic, partitions=(entry,)),)
    isolation = {"isolation_level": fields.pop("isolation", 0)} if version >= 2 else {}
    answer = kafka.call("list_offsets", version, replica_id=-1, topics=topics, **isolation)
    return answer.topics[0].partitions[0]


def delete_records(kafka: KafkaWire, *topics: tuple[str, list[tuple[int, int]]]) -> list[tuple[str, int, int, int]]:
    kio = schema("delete_records", 2, "request")
    answer = kafka.call(
        "delete_records",
        2,
        timeout=timedelta(seconds=5),
        topics=tuple(
            kio.DeleteRecordsTopic(
                name=name,
                partitions=tuple(kio.DeleteRecordsPartition(partition_index=n, offset=offset) for n, offset in asked),
            )
            for name, asked in topics
        ),
    )
    return [
        (topic.name, each.partition_index, each.error_code, each.low_watermark)
        for topic in answer.topics
        for each in topic.partitions
    ]


@pytest.mark.parametrize(
    ("partition", "offset", "epoch", "code"),
    [
        (0, 100, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, -2, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, 0, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (7, 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_refused_partition_of_a_fetch_does_not_tell_the_logs_range(
    kafka: KafkaWire, topic: str, partition: int, offset: int, epoch: int, code: ErrorCode
) -> None:
    (found,) = fetch(kafka, 11, (topic, [(partition, offset)]), epoch=epoch).responses[0].partitions
    assert found.error_code == code
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == UNKNOWN_RANGE


def test_a_partition_that_a_fetch_names_twice_is_answered_once_and_the_last_one_counts(
    kafka: KafkaWire, topic: str
) -> None:
    answer = fetch(kafka, 11, (topic, [(0, 100), (1, 0), (0, 0)]), ("empty", []), (topic, [(1, 100)]))
    (found,) = answer.responses
    rows = [(each.partition_index, each.error_code) for each in found.partitions]
    assert rows == [(0, ErrorCode.NONE), (1, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert found.partitions[0].records


@pytest.mark.parametrize("version", [11, 12])
def test_only_who_reads_what_is_committed_gets_a_list_of_aborted_transactions(
    kafka: KafkaWire, topic: str, version: int
) -> None:
    for isolation, none_aborted in ((0, None), (1, ())):
        answer = fetch(kafka, version, (topic, [(0, 0), (1, 0), (7, 0)]), isolation=isolation)
        (found,) = answer.responses
        told = [(each.partition_index, each.aborted_transactions) for each in found.partitions]
        assert told == [(0, none_aborted), (1, none_aborted), (7, ())]


def test_an_isolation_level_that_is_none_is_answered_and_the_connection_stays(kafka: KafkaWire, topic: str) -> None:
    assert fetch(kafka, 11, (topic, [(0, 0)]), isolation=2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert list_offsets(kafka, 5, topic, -1, isolation=-1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert fetch(kafka, 11, (topic, [(0, 0)])).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("name", "epoch"), [("nowhere", -1), (None, 5)])
def test_a_timestamp_of_a_later_version_is_refused_before_the_partition_is_looked_at(
    kafka: KafkaWire, topic: str, name: str | None, epoch: int
) -> None:
    found = list_offsets(kafka, 5, name or topic, -4, epoch=epoch)
    assert (found.error_code, found.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


def test_a_partition_whose_records_are_deleted_twice_is_answered_once(kafka: KafkaWire, topic: str) -> None:
    rows = delete_records(kafka, (topic, [(0, 100), (1, 0)]), (topic, [(0, 2)]), ("nowhere", []))
    assert rows == [(topic, 0, ErrorCode.NONE, 2), (topic, 1, ErrorCode.NONE, 0)]


def test_records_of_the_offsets_topic_are_not_deleted_once_it_is_there(kafka: KafkaWire, topic: str) -> None:
    kio = schema("offset_commit", 2, "request")
    entry = kio.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    answer = kafka.call(
        "offset_commit",
        2,
        group_id="makes-the-topic",
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time=timedelta(milliseconds=-1),
        topics=(kio.OffsetCommitRequestTopic(name=topic, partitions=(entry,)),),
    )
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, answer
    codes = {code for _, _, code, _ in delete_records(kafka, ("__consumer_offsets", [(n, 0) for n in range(50)]))}
    assert ErrorCode.INVALID_TOPIC_EXCEPTION in codes
    assert ErrorCode.NONE not in codes


@pytest.mark.parametrize(
    ("transactional_id", "producer", "code"),
    [
        ("", (-1, -1), ErrorCode.INVALID_REQUEST),
        (None, (5, -1), ErrorCode.INVALID_REQUEST),
        (None, (-1, 0), ErrorCode.INVALID_REQUEST),
        (None, (5, 0), ErrorCode.NONE),
        (None, (-1, -1), ErrorCode.NONE),
    ],
)
def test_a_producer_is_refused_that_has_half_an_identity(
    kafka: KafkaWire, transactional_id: str | None, producer: tuple[int, int], code: ErrorCode
) -> None:
    answer = kafka.call(
        "init_producer_id",
        4,
        transactional_id=transactional_id,
        transaction_timeout=timedelta(seconds=1),
        producer_id=producer[0],
        producer_epoch=producer[1],
    )
    assert (answer.error_code, answer.producer_epoch) == (code, -1 if code else 0)


@pytest.mark.parametrize(("kind", "name"), [(None, "range"), ("consumer", None)])
@pytest.mark.parametrize("group", ["nobodys", ""])
def test_a_sync_without_protocol_is_refused_whoever_asks(
    kafka: KafkaWire, group: str, kind: str | None, name: str | None
) -> None:
    answer = kafka.call(
        "sync_group",
        5,
        group_id=group,
        generation_id=1,
        member_id="m",
        group_instance_id=None,
        protocol_type=kind,
        protocol_name=name,
        assignments=(),
    )
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_that_is_deleted_twice_in_a_request_is_answered_once(kafka: KafkaWire) -> None:
    answer = kafka.call("delete_groups", 2, groups_names=("nobodys", "nobodys"))
    assert [(each.group_id, each.error_code) for each in answer.results] == [("nobodys", ErrorCode.GROUP_ID_NOT_FOUND)]


@pytest.mark.parametrize("broker", ["1", ""])
@pytest.mark.parametrize(
    ("name", "value"), [("log.dirs", "/x"), ("log.retention.ms", "x"), ("background.threads", "0")]
)
def test_a_bad_property_of_a_broker_is_an_invalid_request(kafka: KafkaWire, broker: str, name: str, value: str) -> None:
    kio = schema("incremental_alter_configs", 1, "request")
    change = kio.AlterableConfig(name=name, config_operation=0, value=value)
    resource = kio.AlterConfigsResource(resource_type=4, resource_name=broker, configs=(change,))
    answer = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=True)
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("topic", "value", "code"),
    [
        ("nowhere", "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nowhere", "x", ErrorCode.INVALID_CONFIG),
        ("nowhere", None, ErrorCode.INVALID_REQUEST),
        ("a b", "x", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", None, ErrorCode.INVALID_REQUEST),
        ("", "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_topics_configs_are_checked_before_its_existence(
    kafka: KafkaWire, topic: str, value: str | None, code: ErrorCode
) -> None:
    kio = schema("incremental_alter_configs", 1, "request")
    change = kio.AlterableConfig(name="retention.ms", config_operation=0, value=value)
    resource = kio.AlterConfigsResource(resource_type=2, resource_name=topic, configs=(change,))
    answer = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=True)
    assert answer.responses[0].error_code == code


def test_the_type_of_a_listed_group_is_written_in_small_letters(kafka: KafkaWire, topic: str) -> None:
    kio = schema("join_group", 3, "request")
    kafka.call(
        "join_group",
        3,
        group_id="listed",
        session_timeout=timedelta(seconds=10),
        rebalance_timeout=timedelta(seconds=10),
        member_id="",
        protocol_type="consumer",
        protocols=(kio.JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    groups = kafka.call("list_groups", 5, states_filter=(), types_filter=("CLASSIC",)).groups
    assert {each.group_type for each in groups if each.group_id == "listed"} == {"classic"}


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("key", [{"topic_id": UUID(int=1), "name": "t"}, {"topic_id": None, "name": None}])
def test_metadata_by_topic_id_is_refused_for_each_topic_of_a_version_without_it(
    kafka: KafkaWire, version: int, key: dict[str, Any]
) -> None:
    kio = schema("metadata", version, "request")
    operations = {"include_cluster_authorized_operations": False} if version < 11 else {}
    answer = kafka.call(
        "metadata",
        version,
        topics=(kio.MetadataRequestTopic(**key),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
        **operations,
    )
    assert [each.error_code for each in answer.topics] == [ErrorCode.INVALID_REQUEST]
