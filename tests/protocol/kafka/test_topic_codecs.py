"""CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords in Kafka's protocol."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    TopicReference,
    config_rows,
)
from tests.protocol.kafka.codecs import SECOND, decoded, refused, versions_of

CREATE, DELETE, GROW = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS


@pytest.mark.parametrize(("api", "version"), versions_of(CREATE, DELETE, GROW))
def test_a_version_tells_what_its_client_knows(api: ApiKey, version: int) -> None:
    knows_quota_error_from = {CREATE: 6, DELETE: 5, GROW: 3}
    request = decoded(api, version, topics=(), topic_names=(), timeout=SECOND, validate_only=True)
    assert request.is_quota_strict == (version >= knows_quota_error_from[api])
    if isinstance(request, CreateTopicsRequest):
        assert request.describe == (version >= 5)
    if isinstance(request, DeleteTopicsRequest):
        disabled = ErrorCode.TOPIC_DELETION_DISABLED
        assert request.known(disabled) is (disabled if version >= 3 else ErrorCode.INVALID_REQUEST)


def test_the_last_value_of_a_config_counts() -> None:
    assert NewTopic(name="a", configs=[*config_rows({"x": "1", "y": "2"}), *config_rows({"x": None})]).values == {
        "x": None,
        "y": "2",
    }


def test_topics_to_delete_have_names_or_ids() -> None:
    by_id = TopicReference(name=None, topic_id=bytes(range(16)))
    request = DeleteTopicsRequest(names=["a"], references=[by_id])
    assert request.topics == [TopicReference(name="a"), by_id]


def test_the_last_offset_of_a_partition_counts() -> None:
    asked = [("a", {0: 1, 1: 2}), ("b", {}), ("c", {0: 3}), ("a", {2: 5, 0: 4})]
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[DeleteRecordsPartition(partition=each, offset=offset) for each, offset in offsets.items()],
            )
            for name, offsets in asked
        ]
    )
    assert request.offsets() == {"a": {0: 4, 1: 2, 2: 5}, "c": {0: 3}}
    refused = request.refused(ErrorCode.UNKNOWN_SERVER_ERROR, "")
    found = [(topic.name, [each.partition for each in topic.partitions]) for topic in refused.topics]
    assert found == [("a", [0, 1, 2]), ("c", [0])]


@pytest.mark.parametrize(("api", "version"), versions_of(CREATE, DELETE, GROW))
def test_a_request_refused_as_a_whole_is_refused_for_every_topic_once(api: ApiKey, version: int) -> None:
    twice = [NewTopic(name="a"), NewTopic(name="b"), NewTopic(name="b")]
    grown = [NewPartitions(name=each.name, count=1) for each in twice]
    request = {
        CREATE: CreateTopicsRequest(topics=twice),
        DELETE: DeleteTopicsRequest(names=["a", "b"], references=[TopicReference(name="b")]),
        GROW: CreatePartitionsRequest(topics=grown),
    }[api]
    answer = refused(api, version, request, ErrorCode.KAFKA_STORAGE_ERROR, "disk")
    rows = answer.get("topics") or answer.get("responses") or answer.get("results")
    assert [(each["name"], each["error_code"]) for each in rows or ()] == [("a", 56), ("b", 56)]
