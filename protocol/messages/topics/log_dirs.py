"""DescribeLogDirs (35): the logs in each log directory. AlterReplicaLogDirs (34): move partitions to another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since, unwired
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int32, Int64, Nullable, String

UNKNOWN_BYTES = -1
NO_OFFSET_LAG = -1


class LogDirPartition(Struct):
    """A partition's log, or the future log of a move (`is_future`).

    `offset_lag`: how many offsets the log lags the high watermark, or the future log the log; -1 unknown.
    """

    partition: Int32
    size_bytes: Int64
    offset_lag: Int64 = 0
    is_future: Bool = False


class LogDirTopic(Struct):
    """Logs of one topic in a directory."""

    name: String
    partitions: Sequence[LogDirPartition]


class LogDirResult(Struct):
    """One log directory. `total_bytes` and `usable_bytes` are its file system's, -1 unknown."""

    error: Error = ErrorCode.NONE
    path: String
    topics: Sequence[LogDirTopic] = ()
    total_bytes: Int64 = since(4, default=UNKNOWN_BYTES)
    usable_bytes: Int64 = since(4, default=UNKNOWN_BYTES)
    is_cordoned: Bool = since(5, default=False)


class DescribeLogDirsResponse(Struct, flexible=2):
    """All configured log directories, in the order of log.dirs. Below version 3 a refusal looks like none."""

    throttle_ms: Int32 = 0
    error: Error = since(3, default=ErrorCode.NONE)
    results: Sequence[LogDirResult] = ()


class DescribeLogDirsTopic(Struct):
    """Requested partitions of one topic."""

    name: String
    partitions: Sequence[Int32]


class DescribeLogDirsRequest(Request[DescribeLogDirsResponse], api=ApiKey.DESCRIBE_LOG_DIRS, flexible=2):
    """`topics` None: all partitions."""

    topics: Annotated[Sequence[DescribeLogDirsTopic] | None, Nullable()] = None

    def refused(self, code: ErrorCode, message: str) -> DescribeLogDirsResponse:
        """The code."""
        return DescribeLogDirsResponse(error=code)


class AlterReplicaLogDirsPartitionResult(Struct):
    """No error: the move has begun, or nothing has to move. `message`: only in the native dialect."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: str | None = unwired(default=None)


class AlterReplicaLogDirsTopicResult(Struct):
    """Results of one topic."""

    name: String
    partitions: Sequence[AlterReplicaLogDirsPartitionResult]


class AlterReplicaLogDirsResponse(Struct, flexible=2):
    """Topics in the order in which the request names them first."""

    throttle_ms: Int32 = 0
    topics: Sequence[AlterReplicaLogDirsTopicResult]


class AlterReplicaLogDirsTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[Int32]


class AlterReplicaLogDir(Struct):
    """`path`: the log directory to move the partitions to."""

    path: String
    topics: Sequence[AlterReplicaLogDirsTopic]


class AlterReplicaLogDirsRequest(Request[AlterReplicaLogDirsResponse], api=ApiKey.ALTER_REPLICA_LOG_DIRS, flexible=2):
    """A partition that occurs twice moves to its last directory."""

    dirs: Sequence[AlterReplicaLogDir]

    def refused(self, code: ErrorCode, message: str) -> AlterReplicaLogDirsResponse:
        """The same refusal for every partition."""
        return AlterReplicaLogDirsResponse(
            topics=[
                AlterReplicaLogDirsTopicResult(
                    name=topic.name,
                    partitions=[
                        AlterReplicaLogDirsPartitionResult(partition=each, error=code) for each in topic.partitions
                    ],
                )
                for target in self.dirs
                for topic in target.topics
            ]
        )
