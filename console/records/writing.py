"""Writes one record through Kafka's protocol."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.producer.partitioner import partition_for_key
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.topic_partition import TopicPartition

_ACKS_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_BATCH_BYTES: Final = 1 << 20


class NewRecord(NamedTuple):
    """A record to write. `partition` None: chosen by the key as Kafka's producers do, without a key at random."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    partition: int | None


async def produce(kafka: Cluster, topic: str, partitions: int, record: NewRecord) -> tuple[TopicPartition, int]:
    """Write a record, acknowledged by all in-sync replicas; return its partition and offset. Raises ClientError."""
    number = record.partition
    if number is None:
        number = random.randrange(partitions) if record.key is None else partition_for_key(record.key, partitions)
    key = TopicPartition(topic, number)
    await kafka.load((topic,))
    leader = kafka.leader_of(key)
    if leader is None:
        raise ClientError(f"{key} has no leader")
    builder = RecordBatchBuilder(max_bytes=_BATCH_BYTES)
    builder.append(time.time_ns() // 1_000_000, record.key, record.value, record.headers)
    batch = ProducePartition(number, memoryview(builder.build()))
    request = ProduceRequest(
        acks=_ACKS_ALL, timeout_ms=_TIMEOUT_MS, topics=[ProduceTopic(name=topic, partitions=[batch])]
    )
    answer: ProduceResponse = await kafka.ask(leader.node_id, request)
    (result,) = (each for found in answer.topics for each in found.partitions)
    if result.error is not ErrorCode.NONE:
        raise RefusedError(result.error, f"{key}: {result.message or reason_of(result.error)}")
    return key, result.base_offset
