"""ListOffsets (key 2): the offset for a timestamp.

    timestamp   offset
    -1          high watermark; under read_committed the last stable offset
    -2, -4      log start offset (-4: earliest local offset, the same without tiered storage)
    -3          first record with the maximum timestamp
    -5, -6      -1: they concern tiered storage, which is not supported
    0 and up    first record at or after the timestamp; -1 and timestamp -1 if there is none below the high watermark

Errors per partition: TOPIC_AUTHORIZATION_FAILED, before all others, if the client may not DESCRIBE the topic;
UNSUPPORTED_VERSION for any other timestamp, as Kafka answers one that its version does not
define, whether or not the partition exists; FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH for another leader epoch;
INVALID_REQUEST for each occurrence of a partition that is listed twice, because a lookup reads the log, and a small
request must not cause thousands of them. An unknown isolation level is, as in Kafka, UNKNOWN_SERVER_ERROR for the whole
request.

Lookups that read the log, perhaps from a slow disk, run on the blocking-I/O executor.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import denial
from barnabas.broker.handlers.data.isolation import ensure_isolation
from barnabas.broker.handlers.repetitions import repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import READ_COMMITTED
from barnabas.protocol.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResult,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Executor

    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe


class ListOffsetsHandler:
    """Serves ListOffsets."""

    def __init__(self, partitions: PartitionRegistry, blocking_io: Executor, probe: ApiProbe) -> None:
        self._partitions = partitions
        self._blocking_io = blocking_io
        self._probe = probe

    def __call__(
        self, session: Session, request: ListOffsetsRequest
    ) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
        """Look up the offsets. Returns a coroutine if a lookup must read the log, or if there are many."""
        ensure_isolation(request.isolation)
        if any(
            entry.timestamp >= 0 or entry.timestamp == MAX_TIMESTAMP
            for topic in request.topics
            for entry in topic.partitions
        ):
            return self._on_executor(session, request)
        return in_turns(self._in_turns(session, request))

    async def _on_executor(self, session: Session, request: ListOffsetsRequest) -> ListOffsetsResponse:
        denied = await _denied(Turns(), session, request)
        return await asyncio.get_running_loop().run_in_executor(self._blocking_io, self._answer, request, denied)

    async def _in_turns(self, session: Session, request: ListOffsetsRequest) -> ListOffsetsResponse:
        turns = Turns()
        denied = await _denied(turns, session, request)
        twice = _listed_twice(request)
        topics = []
        for topic in request.topics:
            results = []
            for entry in topic.partitions:
                if turns.is_over:
                    await turns.next()
                results.append(self._result(request, topic.name, entry, denied, twice))
            topics.append(ListOffsetsTopicResult(name=topic.name, partitions=results))
        return ListOffsetsResponse(topics=topics)

    def _answer(self, request: ListOffsetsRequest, denied: frozenset[str]) -> ListOffsetsResponse:
        twice = _listed_twice(request)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResult(
                    name=topic.name,
                    partitions=[self._result(request, topic.name, entry, denied, twice) for entry in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _result(
        self,
        request: ListOffsetsRequest,
        topic: str,
        entry: ListOffsetsPartition,
        denied: frozenset[str],
        twice: frozenset[tuple[str, int]],
    ) -> ListOffsetsPartitionResult:
        try:
            if topic in denied:
                raise denial(ResourceType.TOPIC)
            if (topic, entry.partition) in twice:
                raise repetition_error("partition", 1)
            if not request.knows(entry.timestamp):
                raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {entry.timestamp} has no meaning here")
            partition = self._partitions.get(topic, entry.partition)
            if partition is None:
                raise self._partitions.refusal(topic, entry.partition)
            partition.ensure_current_epoch(entry.current_leader_epoch)
            return _look_up(partition, entry.partition, entry.timestamp, request.isolation == READ_COMMITTED)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ListOffsetsPartitionResult(partition=entry.partition, error=error.code)


async def _denied(turns: Turns, session: Session, request: ListOffsetsRequest) -> frozenset[str]:
    names = (topic.name for topic in request.topics)
    return await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, ApiKey.LIST_OFFSETS)


def _listed_twice(request: ListOffsetsRequest) -> frozenset[tuple[str, int]]:
    return repeated(((topic.name, entry.partition) for topic in request.topics for entry in topic.partitions), 1)


def _look_up(partition: Partition, number: int, timestamp: int, committed_only: bool) -> ListOffsetsPartitionResult:
    log = partition.log
    end = log.last_stable_offset if committed_only else log.high_watermark
    if timestamp == LATEST_TIMESTAMP:
        return ListOffsetsPartitionResult(partition=number, offset=end, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        start = log.log_start_offset
        return ListOffsetsPartitionResult(partition=number, offset=start, leader_epoch=log.leader_epoch_for(start))
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return ListOffsetsPartitionResult(partition=number)
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_for_max_timestamp()
    else:
        found = log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end:
        return ListOffsetsPartitionResult(partition=number)
    return ListOffsetsPartitionResult(
        partition=number,
        error=ErrorCode.NONE,
        offset=found.offset,
        timestamp=found.timestamp,
        leader_epoch=found.leader_epoch,
    )
