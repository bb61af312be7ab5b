"""DescribeLogDirs and AlterReplicaLogDirs in Kafka's protocol, every version both ways."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopic,
    AlterReplicaLogDirsTopicResult,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsTopic,
    LogDirPartition,
    LogDirResult,
    LogDirTopic,
)
from tests.protocol.kafka.codecs import decoded, encoded, refused, row, subset, versions_of

DESCRIBE, MOVE = ApiKey.DESCRIBE_LOG_DIRS, ApiKey.ALTER_REPLICA_LOG_DIRS


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE))
def test_all_or_some_partitions_are_requested(api: ApiKey, version: int) -> None:
    assert decoded(api, version, topics=None) == DescribeLogDirsRequest()
    topic = row(api, version, "DescribableLogDirTopic", topic="a", partitions=(0, 2))
    assert decoded(api, version, topics=(topic,)) == DescribeLogDirsRequest([DescribeLogDirsTopic("a", [0, 2])])


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE))
def test_directories_are_described_with_their_partitions_and_bytes(api: ApiKey, version: int) -> None:
    partition = LogDirPartition(2, 1 << 40, 7, is_future=True, first_dirty_offset=3, dirty_ratio=0.5)
    results = [
        LogDirResult("/a", topics=[LogDirTopic("t", [partition])], total_bytes=9 << 40, usable_bytes=8 << 40),
        LogDirResult("/b", ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    good, bad = encoded(api, version, DescribeLogDirsResponse(results))["results"]
    expected = {
        "error_code": 0,
        "log_dir": "/a",
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partition_index": 2, "partition_size": 1 << 40, "offset_lag": 7, "is_future_key": True}
                ],
            }
        ],
        "total_bytes": 9 << 40,
        "usable_bytes": 8 << 40,
        "is_cordoned": False,
    }
    assert good == subset(expected, good)
    assert ("total_bytes" in good) == (version >= 4)
    assert (bad["error_code"], bad["log_dir"], bad["topics"]) == (56, "/b", [])
    answer = refused(api, version, None, ErrorCode.UNKNOWN_SERVER_ERROR, "bug")
    assert answer["results"] == []
    assert answer.get("error_code", -1) == -1


@pytest.mark.parametrize(("api", "version"), versions_of(MOVE))
def test_moves_both_ways(api: ApiKey, version: int) -> None:
    topic = row(api, version, "AlterReplicaLogDirTopic", name="a", partitions=(0, 2))
    request = decoded(api, version, dirs=(row(api, version, "AlterReplicaLogDir", path="/b", topics=(topic,)),))
    assert request == AlterReplicaLogDirsRequest([AlterReplicaLogDir("/b", [AlterReplicaLogDirsTopic("a", [0, 2])])])
    results = [
        AlterReplicaLogDirsPartitionResult(0),
        AlterReplicaLogDirsPartitionResult(2, ErrorCode.LOG_DIR_NOT_FOUND, "where"),
    ]
    response = AlterReplicaLogDirsResponse([AlterReplicaLogDirsTopicResult("a", results)])
    assert encoded(api, version, response)["results"] == [
        {
            "topic_name": "a",
            "partitions": [{"partition_index": 0, "error_code": 0}, {"partition_index": 2, "error_code": 57}],
        }
    ]
    (refusal,) = refused(api, version, request, ErrorCode.KAFKA_STORAGE_ERROR, "disk")["results"]
    assert [each["error_code"] for each in refusal["partitions"]] == [56, 56]
