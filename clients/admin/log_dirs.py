"""Log directories of a broker: describing them, and moving partitions between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any, command_any
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.log_dirs import (
    NO_DIRTY_OFFSET,
    NO_DIRTY_RATIO,
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsTopic,
)
from barnabas.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """A partition's log in a directory, or (`is_future`) the copy that a move fills; `offset_lag` is -1 if unknown.

    For a compacted topic also `clean_offset`, below which a key has one record at most (-1 before the first cleaning),
    `dirty_ratio`, and `cleaning_state`; for others -1, -1.0 and "".
    """

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool
    clean_offset: int = NO_DIRTY_OFFSET
    dirty_ratio: float = NO_DIRTY_RATIO
    cleaning_state: str = ""


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory, with its file system's `total_bytes` and `usable_bytes` (-1: unknown); `error` NONE: online."""

    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    replicas: tuple[ReplicaDescription, ...]


async def describe_log_dirs(
    cluster: Cluster, config: ClientConfig, partitions: Iterable[TopicPartition] | None
) -> list[LogDirDescription]:
    """Describe all log directories, with these partitions (None: all)."""
    topics = None
    if partitions is not None:
        topics = [DescribeLogDirsTopic(name=name, partitions=numbers) for name, numbers in by_topic(partitions).items()]
    response: DescribeLogDirsResponse = await ask_any(cluster, config, DescribeLogDirsRequest(topics=topics))
    if response.error is not ErrorCode.NONE:
        raise RefusedError(response.error, f"log directories cannot be described: {reason_of(response.error)}")
    return [
        LogDirDescription(
            result.path,
            result.error,
            result.total_bytes,
            result.usable_bytes,
            tuple(
                ReplicaDescription(
                    TopicPartition(topic.name, entry.partition),
                    entry.size_bytes,
                    entry.offset_lag,
                    entry.is_future,
                    entry.first_dirty_offset,
                    entry.dirty_ratio,
                    entry.cleaning_state,
                )
                for topic in result.topics
                for entry in topic.partitions
            ),
        )
        for result in response.results
    ]


async def alter_replica_log_dirs(
    cluster: Cluster, config: ClientConfig, targets: Mapping[TopicPartition, str]
) -> dict[TopicPartition, RefusedError | None]:
    """Start moving each partition to a directory. Returns the broker's error for each, or None."""
    by_path: dict[str, list[TopicPartition]] = {}
    for topic_partition, path in targets.items():
        by_path.setdefault(path, []).append(topic_partition)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirsTopic(name=name, partitions=numbers)
                    for name, numbers in by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
    )
    response: AlterReplicaLogDirsResponse = await command_any(cluster, config, request, config.request_timeout_ms)
    found = {
        TopicPartition(topic.name, result.partition): refusal_of(
            TopicPartition(topic.name, result.partition), result.error, result.message
        )
        for topic in response.topics
        for result in topic.partitions
    }
    return {topic_partition: answer_for(found, topic_partition) for topic_partition in targets}


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, in the order given."""
    topics: dict[str, list[int]] = {}
    for name, number in partitions:
        topics.setdefault(name, []).append(number)
    return topics


def refusal_of(topic_partition: TopicPartition, error: ErrorCode, message: str | None) -> RefusedError | None:
    """The exception for a partition's error code; None for NONE."""
    return None if error is ErrorCode.NONE else RefusedError.of_partition(topic_partition, error, message)


def answer_for(
    found: Mapping[TopicPartition, RefusedError | None], topic_partition: TopicPartition
) -> RefusedError | None:
    """The partition's result; an error if the broker left it out."""
    if topic_partition in found:
        return found[topic_partition]
    return RefusedError.of_partition(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left it out")
