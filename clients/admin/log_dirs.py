"""Log directories of a broker: describing them, and moving partitions between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import NO_LEADER, Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import command_any, with_retries
from barnabas.clients.network.routing import ask_brokers
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.cleaning import CleaningRequest, CleaningResponse, CompactedLog
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsTopic,
    LogDirPartition,
    LogDirResult,
)
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """A partition's log in a directory, or (`is_future`) the copy that a move fills; `offset_lag` is -1 if unknown.

    For a compacted topic of Barnabas also `clean_offset`, below which a key has one record at most (-1 before the first
    cleaning), `dirty_ratio`, and `cleaning_state`; for others -1, -1.0 and "".
    """

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool
    clean_offset: int = -1
    dirty_ratio: float = -1.0
    cleaning_state: str = ""


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory of `broker`; `error` NONE: online.

    With its file system's `total_bytes` and `usable_bytes` (-1: unknown).
    """

    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    replicas: tuple[ReplicaDescription, ...]
    broker: int


async def describe_log_dirs(
    cluster: Cluster, config: ClientConfig, partitions: Iterable[TopicPartition] | None
) -> list[LogDirDescription]:
    """Describe the log directories of all brokers, with these partitions (None: all)."""
    topics = None
    if partitions is not None:
        topics = [DescribeLogDirsTopic(name=name, partitions=numbers) for name, numbers in by_topic(partitions).items()]
    request = DescribeLogDirsRequest(topics=topics)

    async def ask(connection: Connection) -> Sequence[LogDirResult]:
        response: DescribeLogDirsResponse = await connection.request(request)
        if response.error is not ErrorCode.NONE:
            raise RefusedError(response.error, f"log directories cannot be described: {reason_of(response.error)}")
        return response.results

    answers = await ask_brokers(cluster, config, request.api_key.label, ask)
    cleaning = await _cleaning(cluster, config, None if topics is None else [each.name for each in topics])
    return [_description(node_id, result, cleaning) for node_id, results in answers.items() for result in results]


def _description(
    node_id: int, result: LogDirResult, cleaning: Mapping[TopicPartition, CompactedLog]
) -> LogDirDescription:
    return LogDirDescription(
        result.path,
        result.error,
        result.total_bytes,
        result.usable_bytes,
        tuple(
            _replica(TopicPartition(topic.name, entry.partition), entry, cleaning)
            for topic in result.topics
            for entry in topic.partitions
        ),
        node_id,
    )


def _replica(
    topic_partition: TopicPartition, found: LogDirPartition, cleaning: Mapping[TopicPartition, CompactedLog]
) -> ReplicaDescription:
    described = ReplicaDescription(topic_partition, found.size_bytes, found.offset_lag, found.is_future)
    cleaned = None if found.is_future else cleaning.get(topic_partition)
    if cleaned is None:
        return described
    return replace(
        described,
        clean_offset=cleaned.first_dirty_offset,
        dirty_ratio=cleaned.dirty_ratio,
        cleaning_state=cleaned.cleaning_state,
    )


async def _cleaning(
    cluster: Cluster, config: ClientConfig, topics: Sequence[str] | None
) -> dict[TopicPartition, CompactedLog]:
    """Return what the cleaner knows of the compacted logs; empty where the broker is not Barnabas."""

    async def attempt() -> dict[TopicPartition, CompactedLog]:
        connection = await cluster.connections.any_connection()
        if connection.version_of(CleaningRequest.api_key) is None:
            return {}
        response: CleaningResponse = await connection.request(CleaningRequest(topics=topics))
        if response.error is not ErrorCode.NONE:
            raise RefusedError(response.error, f"the cleaner cannot be asked: {reason_of(response.error)}")
        return {TopicPartition(each.topic, each.partition): each for each in response.logs}

    return await with_retries(config, CleaningRequest.api_key.label, attempt)


async def alter_replica_log_dirs(
    cluster: Cluster, config: ClientConfig, targets: Mapping[TopicPartition, str], broker: int | None
) -> dict[TopicPartition, RefusedError | None]:
    """Start moving each partition's replica at a broker (None: at its leader) to a directory.

    Returns the broker's error for each, or None.
    """
    by_node: dict[int | None, list[TopicPartition]] = {broker: list(targets)}
    if broker is None:
        by_node = await _by_leader(cluster, config, targets)
    found: dict[TopicPartition, RefusedError | None] = {}
    for node_id, partitions in by_node.items():
        request = _move_request({each: targets[each] for each in partitions})
        response: AlterReplicaLogDirsResponse = await command_any(
            cluster, config, request, config.request_timeout_ms, node_id=node_id
        )
        for topic in response.topics:
            for result in topic.partitions:
                moved = TopicPartition(topic.name, result.partition)
                found[moved] = refusal_of(moved, result.error, result.message)
    return {topic_partition: answer_for(found, topic_partition) for topic_partition in targets}


async def _by_leader(
    cluster: Cluster, config: ClientConfig, partitions: Iterable[TopicPartition]
) -> dict[int | None, list[TopicPartition]]:
    """Return the partitions by leader; by None those without one, which any broker refuses."""
    wanted = by_topic(partitions)
    await with_retries(config, MetadataRequest.api_key.label, lambda: cluster.load(wanted))
    found: dict[int | None, list[TopicPartition]] = {}
    for each in (TopicPartition(name, number) for name, numbers in wanted.items() for number in numbers):
        leader = cluster.leader(each)
        found.setdefault(None if leader == NO_LEADER else leader, []).append(each)
    return found


def _move_request(targets: Mapping[TopicPartition, str]) -> AlterReplicaLogDirsRequest:
    by_path: dict[str, list[TopicPartition]] = {}
    for topic_partition, path in targets.items():
        by_path.setdefault(path, []).append(topic_partition)
    return AlterReplicaLogDirsRequest(
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
