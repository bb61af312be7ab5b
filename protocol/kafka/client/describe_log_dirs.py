"""DescribeLogDirs (35), versions 1-4: the logs in the log directories of one broker."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import BOOL, INT32, INT64, STRING, Message, rows, since
from barnabas.protocol.kafka.topics import describe_log_dirs
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.log_dirs import (
    DescribeLogDirsResponse,
    LogDirPartition,
    LogDirResult,
    LogDirTopic,
)


def _answer(results: list[LogDirResult], error: ErrorCode = ErrorCode.NONE) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(results, error)


DESCRIBE_LOG_DIRS: Final = ClientApi(
    ApiKey.DESCRIBE_LOG_DIRS,
    1,
    4,
    describe_log_dirs.REQUEST,
    Message(
        2,
        _answer,
        _throttle_ms=INT32,
        error=since(3, ERROR),
        results=rows(
            LogDirResult,
            error=ERROR,
            path=STRING,
            topics=rows(
                LogDirTopic,
                name=STRING,
                partitions=rows(LogDirPartition, partition=INT32, size_bytes=INT64, offset_lag=INT64, is_future=BOOL),
            ),
            total_bytes=since(4, INT64),
            usable_bytes=since(4, INT64),
        ),
    ),
)
"""Writes a DescribeLogDirsRequest, reads a DescribeLogDirsResponse."""
