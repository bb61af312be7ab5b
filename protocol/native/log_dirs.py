"""describe_log_dirs (35) and alter_replica_log_dirs (34): the logs in each directory, and moving them.

35 request   topics [[name, [partition]]] or nil = all
   response  dirs [[path, error, total_bytes, usable_bytes, [[name, [[partition, size_bytes, offset_lag, is_future,
             first_dirty_offset, dirty_ratio, cleaning_state]]]]]]
34 request   dirs [[path, [[name, [partition]]]]]
   response  topics [[name, [[partition, error, message]]]]
"""

from __future__ import annotations

from typing import Any

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
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    array,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    number,
    partition_number,
    row,
    text,
    topics_of,
)


def encode_describe(request: DescribeLogDirsRequest) -> dict[str, Any]:
    """The body of a describe_log_dirs request."""
    topics = request.topics
    return {"topics": None if topics is None else [[topic.name, list(topic.partitions)] for topic in topics]}


def decode_describe(body: dict[str, Any]) -> DescribeLogDirsRequest:
    """Raises DecodeError, naming the field."""
    topics = field(body, "topics", None)
    if topics is None:
        return DescribeLogDirsRequest()
    return DescribeLogDirsRequest(
        topics=topics_of(
            topics, lambda name, partitions: DescribeLogDirsTopic(name=name, partitions=partitions), partition_number
        )
    )


def encode_describe_response(response: DescribeLogDirsResponse) -> dict[str, Any]:
    """The body of an answer to describe_log_dirs."""
    return {
        "dirs": [
            [
                result.path,
                int(result.error),
                result.total_bytes,
                result.usable_bytes,
                [[topic.name, [_partition_row(each) for each in topic.partitions]] for topic in result.topics],
            ]
            for result in response.results
        ]
    }


def decode_describe_response(body: dict[str, Any]) -> DescribeLogDirsResponse:
    """Raises DecodeError, naming the field."""
    return DescribeLogDirsResponse(results=[_directory(entry) for entry in array(field(body, "dirs"), "dirs")])


def encode_alter(request: AlterReplicaLogDirsRequest) -> dict[str, Any]:
    """The body of an alter_replica_log_dirs request."""
    return {
        "dirs": [
            [target.path, [[topic.name, list(topic.partitions)] for topic in target.topics]] for target in request.dirs
        ]
    }


def decode_alter(body: dict[str, Any]) -> AlterReplicaLogDirsRequest:
    """Raises DecodeError, naming the field."""
    dirs = []
    for entry in array(field(body, "dirs"), "dirs"):
        path, topics = row(entry, "dirs[]", 2)
        named = topics_of(
            topics,
            lambda name, partitions: AlterReplicaLogDirsTopic(name=name, partitions=partitions),
            partition_number,
        )
        dirs.append(AlterReplicaLogDir(path=text(path, "path"), topics=named))
    return AlterReplicaLogDirsRequest(dirs=dirs)


def encode_alter_response(response: AlterReplicaLogDirsResponse) -> dict[str, Any]:
    """The body of an answer to alter_replica_log_dirs."""
    return {
        "topics": [
            [topic.name, [[each.partition, int(each.error), each.message] for each in topic.partitions]]
            for topic in response.topics
        ]
    }


def decode_alter_response(body: dict[str, Any]) -> AlterReplicaLogDirsResponse:
    """Raises DecodeError, naming the field."""
    return AlterReplicaLogDirsResponse(
        topics=topics_of(
            field(body, "topics"),
            lambda name, partitions: AlterReplicaLogDirsTopicResult(name=name, partitions=partitions),
            _alter_result,
        )
    )


def _partition_row(each: LogDirPartition) -> list[Any]:
    return [
        each.partition,
        each.size_bytes,
        each.offset_lag,
        each.is_future,
        each.first_dirty_offset,
        each.dirty_ratio,
        each.cleaning_state,
    ]


def _directory(entry: Any) -> LogDirResult:
    path, error, total_bytes, usable_bytes, topics = row(entry, "dirs[]", 5)
    return LogDirResult(
        path=text(path, "path"),
        error=error_code(error, "error"),
        topics=topics_of(topics, lambda name, partitions: LogDirTopic(name=name, partitions=partitions), _partition),
        total_bytes=integer(total_bytes, "total_bytes", INT64),
        usable_bytes=integer(usable_bytes, "usable_bytes", INT64),
    )


def _partition(entry: Any) -> LogDirPartition:
    partition, size_bytes, offset_lag, is_future, first_dirty_offset, dirty_ratio, cleaning_state = row(
        entry, "partitions[]", 7
    )
    return LogDirPartition(
        partition=integer(partition, "partition", INT32),
        size_bytes=integer(size_bytes, "size_bytes", INT64),
        offset_lag=integer(offset_lag, "offset_lag", INT64),
        is_future=boolean(is_future, "is_future"),
        first_dirty_offset=integer(first_dirty_offset, "first_dirty_offset", INT64),
        dirty_ratio=number(dirty_ratio, "dirty_ratio"),
        cleaning_state=long_text(cleaning_state, "cleaning_state") or "",
    )


def _alter_result(entry: Any) -> AlterReplicaLogDirsPartitionResult:
    partition, error, message = row(entry, "partitions[]", 3)
    return AlterReplicaLogDirsPartitionResult(
        partition=integer(partition, "partition", INT32),
        error=error_code(error, "error"),
        message=long_text(message, "message"),
    )
