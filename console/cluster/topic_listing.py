"""Topics with offsets and sizes, asked of every broker of a cluster."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from barnabas.clients.admin.admin import Admin
from barnabas.clients.errors import ClientError, reason_of
from barnabas.clients.kafka.cluster import KafkaCluster
from barnabas.console.cluster.offsets import offsets_at
from barnabas.console.cluster.snapshot import DirectoryFacts, PartitionFacts, TopicFacts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.describe_log_dirs import DESCRIBE_LOG_DIRS
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.messages.topics.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.topics.metadata import MetadataResponse, TopicMetadata
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text


class _Log(NamedTuple):
    size_bytes: int
    path: str
    dirty_ratio: float | None = None
    cleaning_state: str = ""


class Listing(NamedTuple):
    """Topics and directories, with sentences about what could not be asked."""

    metadata: MetadataResponse
    topics: list[TopicFacts]
    directories: list[DirectoryFacts]
    problems: list[str]


async def list_all(kafka: KafkaCluster, admin: Admin | None) -> Listing:
    """Ask for everything. Raises ClientError if the metadata cannot be had."""
    metadata = await kafka.metadata(None)
    problems: list[str] = []
    leaders = {
        TopicPartition(topic.topic_name, each.partition): each.leader
        for topic in metadata.topics
        for each in topic.partitions
    }
    starts, ends, (logs, directories) = await asyncio.gather(
        offsets_at(kafka, leaders, EARLIEST_TIMESTAMP, problems),
        offsets_at(kafka, leaders, LATEST_TIMESTAMP, problems),
        _logs(kafka, admin, problems),
    )
    topics = [_topic(each, starts, ends, logs) for each in metadata.topics]
    topics.sort(key=lambda topic: topic.name)
    return Listing(metadata, topics, directories, list(dict.fromkeys(problems)))


def _topic(
    topic: TopicMetadata,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    logs: dict[TopicPartition, _Log],
) -> TopicFacts:
    partitions = []
    for each in sorted(topic.partitions, key=lambda partition: partition.partition):
        key = TopicPartition(topic.topic_name, each.partition)
        log = logs.get(key)
        partitions.append(
            PartitionFacts(
                each.partition,
                each.leader,
                each.leader_epoch,
                each.replicas,
                each.isr,
                starts.get(key),
                ends.get(key),
                None if log is None else log.size_bytes,
                "" if log is None else log.path,
                None if log is None else log.dirty_ratio,
                "" if log is None else log.cleaning_state,
            )
        )
    error = None if topic.error is ErrorCode.NONE else reason_of(topic.error)
    return TopicFacts(topic.topic_name, uuid_text(topic.topic_id), topic.is_internal, partitions, error=error)


async def _logs(
    kafka: KafkaCluster, admin: Admin | None, problems: list[str]
) -> tuple[dict[TopicPartition, _Log], list[DirectoryFacts]]:
    """Ask every broker for its directories; Barnabas in its own dialect, which also tells how dirty a log is."""
    logs: dict[TopicPartition, _Log] = {}
    directories: list[DirectoryFacts] = []
    if admin is not None:
        try:
            described = await admin.describe_log_dirs()
        except ClientError as error:
            problems.append(f"log directories: {error}")
            return logs, directories
        node_id = min(kafka.node_ids, default=-1)  # Barnabas is one broker
        for each in described:
            for replica in each.replicas:
                if not replica.is_future:
                    ratio = None if replica.dirty_ratio < 0 else replica.dirty_ratio
                    logs[replica.topic_partition] = _Log(replica.size_bytes, each.path, ratio, replica.cleaning_state)
            size = sum(replica.size_bytes for replica in each.replicas)
            directories.append(
                DirectoryFacts(node_id, each.path, each.total_bytes, each.usable_bytes, size, _reason(each.error))
            )
        return logs, directories
    for node_id in kafka.node_ids:
        try:
            answer: DescribeLogDirsResponse = await kafka.ask(node_id, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest())
        except ClientError as error:
            problems.append(f"log directories of broker {node_id}: {error}")
            continue
        if answer.error is not ErrorCode.NONE:
            problems.append(f"log directories of broker {node_id}: {reason_of(answer.error)}")
        for result in answer.results:
            size = 0
            for topic in result.topics:
                for partition in topic.partitions:
                    size += partition.size_bytes
                    if not partition.is_future:
                        logs[TopicPartition(topic.name, partition.partition)] = _Log(partition.size_bytes, result.path)
            directories.append(
                DirectoryFacts(
                    node_id, result.path, result.total_bytes, result.usable_bytes, size, _reason(result.error)
                )
            )
    return logs, directories


def _reason(error: ErrorCode) -> str:
    return "" if error is ErrorCode.NONE else reason_of(error)
