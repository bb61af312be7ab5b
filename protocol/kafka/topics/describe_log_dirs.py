"""DescribeLogDirs (35), versions 1-5: an error as a whole from version 3 on, the file system's bytes from 4 on."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.topics.log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsTopic,
    LogDirResult,
    LogDirTopic,
)

_API: Final = "describe_log_dirs"


def decode_request(version: int, body: memoryview) -> DescribeLogDirsRequest:
    """Raises DecodeError."""
    topics = entities.read_request(_API, version, body).topics
    if topics is None:
        return DescribeLogDirsRequest()
    return DescribeLogDirsRequest([DescribeLogDirsTopic(each.topic, list(each.partitions)) for each in topics])


def encode_response(version: int, response: DescribeLogDirsResponse) -> bytes:
    """A row for each directory."""
    return _encode(version, ErrorCode.NONE, response.results)


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal, which versions below 3 cannot tell from no directories."""
    return _encode(version, code, [])


def _encode(version: int, code: ErrorCode, results: list[LogDirResult]) -> bytes:
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(
            schema.DescribeLogDirsResponse,
            throttle_time=entities.NO_THROTTLE,
            error_code=code,
            results=tuple(_row(schema, result) for result in results),
        )
    )


def _row(schema: Any, result: LogDirResult) -> Any:
    return entities.make(
        schema.DescribeLogDirsResult,
        error_code=result.error,
        log_dir=result.path,
        topics=tuple(_topic(schema, topic) for topic in result.topics),
        total_bytes=result.total_bytes,
        usable_bytes=result.usable_bytes,
        is_cordoned=False,
    )


def _topic(schema: Any, topic: LogDirTopic) -> Any:
    return schema.DescribeLogDirsTopic(
        name=topic.name,
        partitions=tuple(
            schema.DescribeLogDirsPartition(
                partition_index=each.partition,
                partition_size=each.size_bytes,
                offset_lag=each.offset_lag,
                is_future_key=each.is_future,
            )
            for each in topic.partitions
        ),
    )
