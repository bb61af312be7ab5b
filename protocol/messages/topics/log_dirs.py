"""DescribeLogDirs (35): the logs in each log directory. AlterReplicaLogDirs (34): move partitions to another one."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode

UNKNOWN_BYTES = -1
NO_OFFSET_LAG = -1
NO_DIRTY_OFFSET = -1
NO_DIRTY_RATIO = -1.0


@dataclass(slots=True)
class DescribeLogDirsTopic:
    """Requested partitions of one topic."""

    name: str
    partitions: list[int]


@dataclass(slots=True)
class DescribeLogDirsRequest:
    """`topics` None: all partitions."""

    topics: list[DescribeLogDirsTopic] | None = None


@dataclass(slots=True)
class LogDirPartition:
    """A partition's log, or the future log of a move (`is_future`).

    `offset_lag`: how many offsets the log lags the high watermark, or the future log the log; -1 unknown. The cleaner's
    three fields are only in the native dialect: `first_dirty_offset` of its checkpoint (-1 none), `dirty_ratio` (-1.0
    for a topic that is not compacted) and `cleaning_state`: idle, in progress, paused, aborted, or `uncleanable: ` and
    the reason; empty for a topic that is not compacted.
    """

    partition: int
    size_bytes: int
    offset_lag: int = 0
    is_future: bool = False
    first_dirty_offset: int = NO_DIRTY_OFFSET
    dirty_ratio: float = NO_DIRTY_RATIO
    cleaning_state: str = ""


@dataclass(slots=True)
class LogDirTopic:
    """Logs of one topic in a directory."""

    name: str
    partitions: list[LogDirPartition]


@dataclass(slots=True)
class LogDirResult:
    """One log directory. `total_bytes` and `usable_bytes` are its file system's, -1 unknown."""

    path: str
    error: ErrorCode = ErrorCode.NONE
    topics: list[LogDirTopic] = field(default_factory=list)
    total_bytes: int = UNKNOWN_BYTES
    usable_bytes: int = UNKNOWN_BYTES


@dataclass(slots=True)
class DescribeLogDirsResponse:
    """All configured log directories, in the order of log.dirs."""

    results: list[LogDirResult]
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class AlterReplicaLogDirsTopic:
    """Partitions of one topic."""

    name: str
    partitions: list[int]


@dataclass(slots=True)
class AlterReplicaLogDir:
    """`path`: the log directory to move the partitions to."""

    path: str
    topics: list[AlterReplicaLogDirsTopic]


@dataclass(slots=True)
class AlterReplicaLogDirsRequest:
    """A partition that occurs twice moves to its last directory."""

    dirs: list[AlterReplicaLogDir]


@dataclass(slots=True)
class AlterReplicaLogDirsPartitionResult:
    """No error: the move has begun, or nothing has to move. The Kafka dialect has no field for `message`."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class AlterReplicaLogDirsTopicResult:
    """Results of one topic."""

    name: str
    partitions: list[AlterReplicaLogDirsPartitionResult]


@dataclass(slots=True)
class AlterReplicaLogDirsResponse:
    """Topics in the order in which the request names them first."""

    topics: list[AlterReplicaLogDirsTopicResult]
