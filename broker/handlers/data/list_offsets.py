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
from collections import Counter
from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import denial, denied_names
from barnabas.broker.handlers.data.isolation import ensure_isolation
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
    ) -> ListOffsetsResponse | Coroutine[None, None, ListOffsetsResponse]:
        """Look up the offsets. Returns a coroutine if the lookup must read the log."""
        ensure_isolation(request.isolation)
        topic_names = (topic.name for topic in request.topics)
        denied = denied_names(session, Operation.DESCRIBE, ResourceType.TOPIC, topic_names, ApiKey.LIST_OFFSETS)
        reads = any(
            entry.timestamp >= 0 or entry.timestamp == MAX_TIMESTAMP
            for topic in request.topics
            for entry in topic.partitions
        )
        return self._on_executor(request, denied) if reads else self._answer(request, denied)

    async def _on_executor(self, request: ListOffsetsRequest, denied: frozenset[str]) -> ListOffsetsResponse:
        return await asyncio.get_running_loop().run_in_executor(self._blocking_io, self._answer, request, denied)

    def _answer(self, request: ListOffsetsRequest, denied: frozenset[str]) -> ListOffsetsResponse:
        committed_only = request.isolation == READ_COMMITTED
        times_named = Counter((topic.name, entry.partition) for topic in request.topics for entry in topic.partitions)
        topics = []
        for topic in request.topics:
            results = []
            for entry in topic.partitions:
                try:
                    if topic.name in denied:
                        raise denial(ResourceType.TOPIC)
                    if times_named[topic.name, entry.partition] > 1:
                        raise BrokerError(ErrorCode.INVALID_REQUEST, "Each partition must appear at most once.")
                    if entry.timestamp < EARLIEST_PENDING_UPLOAD_TIMESTAMP:
                        raise BrokerError(
                            ErrorCode.UNSUPPORTED_VERSION, f"timestamp {entry.timestamp} has no meaning here"
                        )
                    partition = self._partitions.get(topic.name, entry.partition)
                    if partition is None:
                        raise self._partitions.refusal(topic.name, entry.partition)
                    partition.ensure_current_epoch(entry.current_leader_epoch)
                    results.append(_look_up(partition, entry.partition, entry.timestamp, committed_only))
                except BrokerError as error:
                    self._probe.count_error(error.code.name.lower())
                    results.append(ListOffsetsPartitionResult(entry.partition, error.code))
            topics.append(ListOffsetsTopicResult(topic.name, results))
        return ListOffsetsResponse(topics)


def _look_up(partition: Partition, number: int, timestamp: int, committed_only: bool) -> ListOffsetsPartitionResult:
    log = partition.log
    end = log.last_stable_offset if committed_only else log.high_watermark
    if timestamp == LATEST_TIMESTAMP:
        return ListOffsetsPartitionResult(number, offset=end, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        start = log.log_start_offset
        return ListOffsetsPartitionResult(number, offset=start, leader_epoch=log.leader_epoch_for(start))
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return ListOffsetsPartitionResult(number)
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_for_max_timestamp()
    else:
        found = log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end:
        return ListOffsetsPartitionResult(number)
    return ListOffsetsPartitionResult(number, ErrorCode.NONE, found.offset, found.timestamp, found.leader_epoch)
