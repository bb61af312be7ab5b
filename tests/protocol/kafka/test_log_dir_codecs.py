"""DescribeLogDirs and AlterReplicaLogDirs: refusals of a whole request."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsTopic,
    DescribeLogDirsRequest,
)
from tests.protocol.kafka.codecs import refused, versions_of


@pytest.mark.parametrize(("api", "version"), versions_of(ApiKey.DESCRIBE_LOG_DIRS))
def test_directories_are_refused_by_a_code_or_by_none(api: ApiKey, version: int) -> None:
    answer = refused(api, version, DescribeLogDirsRequest(), ErrorCode.UNKNOWN_SERVER_ERROR, "bug")
    assert (answer["results"], answer.get("error_code", -1)) == ([], -1)


@pytest.mark.parametrize(("api", "version"), versions_of(ApiKey.ALTER_REPLICA_LOG_DIRS))
def test_moves_are_refused_for_every_partition(api: ApiKey, version: int) -> None:
    topic = AlterReplicaLogDirsTopic(name="a", partitions=[0, 2])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/b", topics=[topic])])
    (refusal,) = refused(api, version, request, ErrorCode.KAFKA_STORAGE_ERROR, "disk")["results"]
    assert [(each["partition_index"], each["error_code"]) for each in refusal["partitions"]] == [(0, 56), (2, 56)]
