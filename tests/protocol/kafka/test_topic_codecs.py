"""CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords in Kafka's protocol, every version both ways."""

from __future__ import annotations

import uuid

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import ConfigEntry
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    ReplicaAssignment,
    TopicReference,
    TopicResult,
    TopicsResponse,
)
from barnabas.protocol.uuids import ZERO_UUID
from tests.protocol.kafka.codecs import SECOND, decoded, encoded, refused, row, subset, versions_of

CREATE, DELETE, GROW, TRIM = (
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_RECORDS,
)
ID = bytes(range(16))


@pytest.mark.parametrize(("api", "version"), versions_of(CREATE))
def test_topics_to_create_are_read_with_configs_and_assignments(api: ApiKey, version: int) -> None:
    topics = (
        row(
            api,
            version,
            "CreatableTopic",
            name="a",
            num_partitions=3,
            replication_factor=1,
            assignments=(),
            configs=(
                row(api, version, "CreatableTopicConfig", name="retention.ms", value="5"),
                row(api, version, "CreatableTopicConfig", name="flush.ms", value=None),
            ),
        ),
        row(
            api,
            version,
            "CreatableTopic",
            name="b",
            num_partitions=-1,
            replication_factor=-1,
            configs=(),
            assignments=(row(api, version, "CreatableReplicaAssignment", partition_index=0, broker_ids=(1, 2)),),
        ),
    )
    assert decoded(api, version, topics=topics, timeout=SECOND, validate_only=True) == CreateTopicsRequest(
        [
            NewTopic("a", 3, 1, {"retention.ms": "5", "flush.ms": None}, []),
            NewTopic("b", -1, -1, {}, [ReplicaAssignment(0, (1, 2))]),
        ],
        1000,
        validate_only=True,
        describe=version >= 5,
        is_quota_strict=version >= 6,
    )


@pytest.mark.parametrize(("api", "version"), versions_of(CREATE))
def test_created_topics_are_described_from_version_5_on(api: ApiKey, version: int) -> None:
    configs = [
        ConfigEntry("b", "2", "DEFAULT_CONFIG", "int", "", is_default=True),
        ConfigEntry("a", None, "DYNAMIC_TOPIC_CONFIG", "password", "", read_only=True, sensitive=True),
    ]
    answer = encoded(
        api,
        version,
        TopicsResponse(
            [
                TopicResult("good", ErrorCode.NONE, "a warning", ID, 4, 1, configs),
                TopicResult("twice", ErrorCode.INVALID_REQUEST, "twice"),
                TopicResult("twice", ErrorCode.INVALID_REQUEST, "twice"),
            ]
        ),
    )
    good, twice = answer["topics"]
    expected = {
        "name": "good",
        "topic_id": uuid.UUID(bytes=ID),
        "error_code": 0,
        "error_message": None,
        "topic_config_error_code": 0,
        "num_partitions": 4,
        "replication_factor": 1,
        "configs": [
            {"name": "a", "value": None, "read_only": True, "config_source": 1, "is_sensitive": True},
            {"name": "b", "value": "2", "read_only": False, "config_source": 5, "is_sensitive": False},
        ],
    }
    assert good == subset(expected, good)
    assert ("configs" in good, "topic_id" in good) == (version >= 5, version >= 7)
    assert (twice["name"], twice["error_code"], twice["error_message"]) == ("twice", 42, "twice")


@pytest.mark.parametrize(("api", "version"), versions_of(DELETE))
def test_topics_to_delete_are_read_by_name_and_by_id(api: ApiKey, version: int) -> None:
    if version < 6:
        request = decoded(api, version, topic_names=("a", "b"), timeout=SECOND)
        assert request == DeleteTopicsRequest(["a", "b"], 1000, is_quota_strict=version >= 5)
        return
    topics = (
        row(api, version, "DeleteTopicState", name="a", topic_id=None),
        row(api, version, "DeleteTopicState", name=None, topic_id=uuid.UUID(bytes=ID)),
    )
    assert decoded(api, version, topics=topics, timeout=SECOND) == DeleteTopicsRequest(
        [], 1000, [TopicReference("a", ZERO_UUID), TopicReference(None, ID)]
    )


@pytest.mark.parametrize(("api", "version"), versions_of(DELETE))
def test_results_of_deleted_topics(api: ApiKey, version: int) -> None:
    unknown = None if version >= 6 else "c"  # earlier versions have names only
    results = [
        TopicResult("a", topic_id=ID),
        TopicResult(unknown, ErrorCode.UNKNOWN_TOPIC_ID, "who", bytes(reversed(ID))),
        TopicResult("b", ErrorCode.TOPIC_DELETION_DISABLED, "no"),
    ]
    rows = encoded(api, version, TopicsResponse(results))["responses"]
    assert [each["error_code"] for each in rows] == [0, 100, 73 if version >= 3 else 42]
    assert [each["name"] for each in rows] == ["a", unknown, "b"]
    if version >= 5:
        assert [each["error_message"] for each in rows] == [None, "who", "no"]
    if version >= 6:
        assert [each["topic_id"] for each in rows] == [uuid.UUID(bytes=ID), uuid.UUID(bytes=bytes(reversed(ID))), None]


@pytest.mark.parametrize(("api", "version"), versions_of(GROW))
def test_growing_topics_both_ways(api: ApiKey, version: int) -> None:
    topics = (
        row(api, version, "CreatePartitionsTopic", name="a", count=4, assignments=None),
        row(
            api,
            version,
            "CreatePartitionsTopic",
            name="b",
            count=2,
            assignments=(row(api, version, "CreatePartitionsAssignment", broker_ids=(1,)),),
        ),
    )
    assert decoded(api, version, topics=topics, timeout=SECOND, validate_only=True) == CreatePartitionsRequest(
        [NewPartitions("a", 4), NewPartitions("b", 2, [(1,)])], 1000, validate_only=True, is_quota_strict=version >= 3
    )
    results = [TopicResult("a", message="warned"), TopicResult("b", ErrorCode.INVALID_PARTITIONS, "fewer")]
    assert encoded(api, version, TopicsResponse(results))["results"] == [
        {"name": "a", "error_code": 0, "error_message": None},
        {"name": "b", "error_code": 37, "error_message": "fewer"},
    ]


@pytest.mark.parametrize(("api", "version"), versions_of(TRIM))
def test_deleting_records_both_ways(api: ApiKey, version: int) -> None:
    partitions = (
        row(api, version, "DeleteRecordsPartition", partition_index=0, offset=1 << 40),
        row(api, version, "DeleteRecordsPartition", partition_index=1, offset=-1),
    )
    topic = row(api, version, "DeleteRecordsTopic", name="a", partitions=partitions)
    request = decoded(api, version, topics=(topic,), timeout=SECOND)
    assert request == DeleteRecordsRequest(
        [DeleteRecordsTopic("a", [DeleteRecordsPartition(0, 1 << 40), DeleteRecordsPartition(1, -1)])], 1000
    )
    results = [
        DeleteRecordsPartitionResult(0, low_watermark=1 << 40),
        DeleteRecordsPartitionResult(1, ErrorCode.OFFSET_OUT_OF_RANGE, "no"),
    ]
    answer = encoded(api, version, DeleteRecordsResponse([DeleteRecordsTopicResult("a", results)]))
    assert answer["topics"] == [
        {
            "name": "a",
            "partitions": [
                {"partition_index": 0, "low_watermark": 1 << 40, "error_code": 0},
                {"partition_index": 1, "low_watermark": -1, "error_code": 1},
            ],
        }
    ]
    (topic,) = refused(api, version, request, ErrorCode.UNKNOWN_SERVER_ERROR, "bug")["topics"]
    assert [each["error_code"] for each in topic["partitions"]] == [-1, -1]


@pytest.mark.parametrize(("api", "version"), versions_of(CREATE, DELETE, GROW))
def test_a_request_refused_as_a_whole_is_refused_for_every_topic(api: ApiKey, version: int) -> None:
    request = {
        CREATE: CreateTopicsRequest([NewTopic("a"), NewTopic("b")]),
        DELETE: DeleteTopicsRequest(["a"], references=[TopicReference("b")]),
        GROW: CreatePartitionsRequest([NewPartitions("a", 1), NewPartitions("b", 1)]),
    }[api]
    answer = refused(api, version, request, ErrorCode.KAFKA_STORAGE_ERROR, "disk")
    rows = answer.get("topics") or answer.get("responses") or answer.get("results")
    assert [(each["name"], each["error_code"]) for each in rows or ()] == [("a", 56), ("b", 56)]
