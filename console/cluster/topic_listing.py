"""Topics with offsets and sizes, asked of every broker of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.clients.errors import ClientError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.offsets import offsets_at
from barnabas.console.cluster.snapshot import DirectoryFacts, PartitionFacts, TopicFacts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.messages.topics.cleaning import CleaningRequest, CleaningResponse, CompactedLog
from barnabas.protocol.messages.topics.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.topics.metadata import MetadataResponse, TopicMetadata
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text


class _Log(NamedTuple):
    size_bytes: int
    path: str


_Cleaning = Mapping[TopicPartition, CompactedLog]


class Listing(NamedTuple):
    """Topics and directories, with sentences about what could not be asked."""

    metadata: MetadataResponse
    topics: list[TopicFacts]
    directories: list[DirectoryFacts]
    problems: list[str]


async def list_all(kafka: Cluster, *, is_barnabas: bool) -> Listing:
    """Ask for everything, and Barnabas how dirty its compacted logs are. Raises ClientError for the metadata."""
    metadata = await kafka.load(None)
    problems: list[str] = []
    leaders = {
        TopicPartition(topic.topic_name, each.partition): each.leader
        for topic in metadata.topics
        for each in topic.partitions
    }
    starts, ends, (logs, directories), cleaning = await asyncio.gather(
        offsets_at(kafka, leaders, EARLIEST_TIMESTAMP, problems),
        offsets_at(kafka, leaders, LATEST_TIMESTAMP, problems),
        _logs(kafka, problems),
        _cleaning(kafka, problems, is_barnabas=is_barnabas),
    )
    topics = [_topic(each, starts, ends, logs, cleaning) for each in metadata.topics]
    topics.sort(key=lambda topic: topic.name)
    return Listing(metadata, topics, directories, list(dict.fromkeys(problems)))


def _topic(
    topic: TopicMetadata,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    logs: dict[TopicPartition, _Log],
    cleaning: _Cleaning,
) -> TopicFacts:
    partitions = []
    for each in sorted(topic.partitions, key=lambda partition: partition.partition):
        key = TopicPartition(topic.topic_name, each.partition)
        log, cleaned = logs.get(key), cleaning.get(key)
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
                None if cleaned is None or cleaned.dirty_ratio < 0 else cleaned.dirty_ratio,
                "" if cleaned is None else cleaned.cleaning_state,
            )
        )
    error = None if topic.error is ErrorCode.NONE else reason_of(topic.error)
    return TopicFacts(topic.topic_name, uuid_text(topic.topic_id), topic.is_internal, partitions, error=error)


async def _logs(kafka: Cluster, problems: list[str]) -> tuple[dict[TopicPartition, _Log], list[DirectoryFacts]]:
    """Ask every broker for its directories."""
    logs: dict[TopicPartition, _Log] = {}
    directories: list[DirectoryFacts] = []
    for node_id in kafka.node_ids:
        try:
            answer: DescribeLogDirsResponse = await kafka.ask(node_id, DescribeLogDirsRequest())
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


async def _cleaning(kafka: Cluster, problems: list[str], *, is_barnabas: bool) -> _Cleaning:
    """Ask Barnabas, which is one broker, about its compacted logs."""
    if not is_barnabas:
        return {}
    try:
        answer: CleaningResponse = await kafka.ask_any(CleaningRequest())
    except ClientError as error:
        problems.append(f"compacted logs: {error}")
        return {}
    if answer.error is not ErrorCode.NONE:
        problems.append(f"compacted logs: {reason_of(answer.error)}")
    return {TopicPartition(each.topic, each.partition): each for each in answer.logs}


def _reason(error: ErrorCode) -> str:
    return "" if error is ErrorCode.NONE else reason_of(error)
