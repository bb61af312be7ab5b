"""DescribeLogDirs (key 35): every configured log directory with its partitions, all or the listed ones.

CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE the cluster. An offline directory is answered
KAFKA_STORAGE_ERROR, without partitions. A partition that is being moved is listed twice: in its directory, and as
`is_future` in the target, with the number of offsets that the copy lacks. The metadata log is not listed, as in Kafka.
Sizes are those of the segments' batches.

Cleaning (key 10005): the compacted logs, of all or of the listed topics, with what the cleaner knows of each.
CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE the cluster. Topics that do not exist, and logs in offline
directories, are left out.

AlterReplicaLogDirs (key 34): move partitions to another log directory of this broker. CLUSTER_AUTHORIZATION_FAILED for
every partition if the client may not ALTER the cluster. Order of checks per partition: the name of its -future
directory fits a file system (INVALID_TOPIC_EXCEPTION); the path is in log.dirs (LOG_DIR_NOT_FOUND) and online
(KAFKA_STORAGE_ERROR); the partition exists (UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR if its directory is
offline). Kafka's answer has no message: the log says what the code does not. The partition's current directory changes
nothing, or cancels its move; a third directory replaces the move; while any directory is offline no move begins
(KAFKA_STORAGE_ERROR). NONE means that the move has begun: DescribeLogDirs shows its end.

Differs from Kafka: a target for a partition that does not exist yet is not remembered; a path may be relative or end in
a slash, since it is compared as a path.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.network.unsaid_refusals import log_unsaid
from barnabas.broker.repeated_warnings import RepeatedWarnings
from barnabas.broker.storage.files.file_system import file_system_bytes
from barnabas.broker.storage.files.partition_directory import MAX_NAME_BYTES, future_directory_name
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.topics.cleaning import CleaningRequest, CleaningResponse, CompactedLog
from barnabas.protocol.messages.topics.log_dirs import (
    NO_OFFSET_LAG,
    UNKNOWN_BYTES,
    AlterReplicaLogDirsPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopicResult,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LogDirPartition,
    LogDirResult,
    LogDirTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.storage.cleaning.cleaner_manager import CleaningDescription
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs


class DescribeLogDirsHandler:
    """Serves DescribeLogDirs."""

    def __init__(self, log_manager: ServedLogs[ReadableLog], blocking_io: Executor, probe: ApiProbe) -> None:
        self._log_manager = log_manager
        self._blocking_io = blocking_io
        self._probe = probe

    async def __call__(self, session: Session, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        """Answer one DescribeLogDirs request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.DESCRIBE_LOG_DIRS)
        return await asyncio.get_running_loop().run_in_executor(self._blocking_io, self._answer, request)

    def _answer(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        wanted = None
        if request.topics is not None:
            wanted = {TopicPartition(topic.name, number) for topic in request.topics for number in topic.partitions}
        by_directory: dict[Path, list[ReadableLog]] = {}
        for log in self._log_manager.logs_and_copies():
            if wanted is None or log.topic_partition in wanted:
                by_directory.setdefault(log.log_dir, []).append(log)
        live = set(self._log_manager.live_directories)
        results = []
        for path in self._log_manager.config.log_dirs:
            if path in live:
                results.append(self._describe(path, by_directory.get(path, [])))
            else:
                self._probe.count_error(ErrorCode.KAFKA_STORAGE_ERROR.name.lower())
                results.append(LogDirResult(path=os.path.abspath(path), error=ErrorCode.KAFKA_STORAGE_ERROR))
        return DescribeLogDirsResponse(results=results)

    def _describe(self, path: Path, logs: Iterable[ReadableLog]) -> LogDirResult:
        topics: dict[str, list[LogDirPartition]] = {}
        for log in sorted(logs, key=lambda log: log.topic_partition):
            topics.setdefault(log.topic_partition.topic, []).append(self._partition(log))
        result = LogDirResult(
            path=os.path.abspath(path),
            topics=[LogDirTopic(name=name, partitions=entries) for name, entries in topics.items()],
        )
        result.total_bytes, result.usable_bytes = _file_system_bytes(path)
        return result

    def _partition(self, log: ReadableLog) -> LogDirPartition:
        number = log.topic_partition.partition
        moves = self._log_manager.moves
        if moves is None or not moves.is_future(log):
            return LogDirPartition(partition=number, size_bytes=log.size_bytes)
        current = self._log_manager.get(log.topic_partition)
        lag = NO_OFFSET_LAG if current is None else max(current.log_end_offset - log.log_end_offset, 0)
        return LogDirPartition(partition=number, size_bytes=log.size_bytes, offset_lag=lag, is_future=True)


class CleaningHandler:
    """Serves Cleaning."""

    def __init__(self, log_manager: ServedLogs[ReadableLog], blocking_io: Executor) -> None:
        self._log_manager = log_manager
        self._blocking_io = blocking_io

    async def __call__(self, session: Session, request: CleaningRequest) -> CleaningResponse:
        """Answer one Cleaning request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.CLEANING)
        return await asyncio.get_running_loop().run_in_executor(self._blocking_io, self._answer, request)

    def _answer(self, request: CleaningRequest) -> CleaningResponse:
        cleaner = self._log_manager.cleaner
        if cleaner is None:
            return CleaningResponse()
        wanted = None if request.topics is None else set(request.topics)
        places = {path: place for place, path in enumerate(self._log_manager.live_directories)}
        found = [
            log
            for log in self._log_manager.logs()
            if log.config.compact and log.log_dir in places and (wanted is None or log.topic_partition.topic in wanted)
        ]
        found.sort(key=lambda log: (places[log.log_dir], log.topic_partition))
        return CleaningResponse(logs=[_compacted(log, cleaner.describe(log)) for log in found])


class AlterReplicaLogDirsHandler:
    """Serves AlterReplicaLogDirs."""

    def __init__(
        self,
        log_manager: ServedLogs[ReadableLog],
        partitions: PartitionRegistry,
        blocking_io: Executor,
        probe: ApiProbe,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._log_manager = log_manager
        self._partitions = partitions
        self._blocking_io = blocking_io
        self._probe = probe
        self._warnings = RepeatedWarnings(loop)
        self._paths = {os.path.abspath(path): path for path in log_manager.config.log_dirs}

    async def __call__(self, session: Session, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
        """Answer one AlterReplicaLogDirs request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.ALTER, ApiKey.ALTER_REPLICA_LOG_DIRS)
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(self._blocking_io, self._answer, request)
        for topic in response.topics:
            for each in topic.partitions:
                if each.message is not None:
                    error = BrokerError(each.error, each.message)
                    log_unsaid(self._warnings, session, ApiKey.ALTER_REPLICA_LOG_DIRS, error)
        return response

    def _answer(self, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
        targets = {
            TopicPartition(topic.name, number): target.path
            for target in request.dirs
            for topic in target.topics
            for number in topic.partitions
        }
        topics: dict[str, list[AlterReplicaLogDirsPartitionResult]] = {}
        for topic_partition, path in targets.items():
            topics.setdefault(topic_partition.topic, []).append(self._alter(topic_partition, path))
        return AlterReplicaLogDirsResponse(
            topics=[AlterReplicaLogDirsTopicResult(name=name, partitions=results) for name, results in topics.items()]
        )

    def _alter(self, topic_partition: TopicPartition, path: str) -> AlterReplicaLogDirsPartitionResult:
        try:
            if len(future_directory_name(topic_partition).encode()) > MAX_NAME_BYTES:
                raise BrokerError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"the name of topic {topic_partition.topic} is too long for the directory of a copy",
                )
            log_dir = self._live_directory(path)
            if self._partitions.get(*topic_partition) is None:
                raise self._partitions.refusal(*topic_partition)
            self._log_manager.move(topic_partition, log_dir)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return AlterReplicaLogDirsPartitionResult(
                partition=topic_partition.partition, error=error.code, message=error.message
            )
        return AlterReplicaLogDirsPartitionResult(partition=topic_partition.partition)

    def _live_directory(self, path: str) -> Path:
        directory = self._paths.get(os.path.abspath(path)) if path else None
        if directory is None:
            raise BrokerError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"{path!r} is not in log.dirs, which are {', '.join(self._paths)}"
            )
        if directory not in self._log_manager.live_directories:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {path} is offline")
        return directory


def _compacted(log: ReadableLog, described: CleaningDescription) -> CompactedLog:
    topic, number = log.topic_partition
    path = os.path.abspath(log.log_dir)
    return CompactedLog(path, topic, number, described.first_dirty_offset, described.dirty_ratio, described.state)


def _file_system_bytes(path: Path) -> tuple[int, int]:
    """Return the size of the file system, and the bytes of it that this process may still use."""
    try:
        return file_system_bytes(path)
    except OSError:
        return UNKNOWN_BYTES, UNKNOWN_BYTES  # the next write there takes the directory offline
