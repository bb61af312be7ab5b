"""Changes of groups and transactions through Kafka's protocol.

Each raises RefusedError with the reason, and ClientError.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.group_description import GROUP_KEY
from barnabas.console.cluster.offsets import offsets_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.messages.groups.groups import DeleteGroupsRequest
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
)
from barnabas.protocol.topic_partition import TopicPartition

_TRANSACTION_KEY: Final = 1
_LONGEST_TIMEOUT_MS: Final = 60_000
_ATTEMPTS: Final = 50
_PAUSE_S: Final = 0.1


class Target(StrEnum):
    """Where a group is to go on."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSET = "offset"
    SHIFT = "shift"


class Move(NamedTuple):
    """A partition of a reset: the committed offset before, None without one, and after."""

    partition: TopicPartition
    old: int | None
    new: int


async def plan_reset(
    kafka: Cluster,
    committed: Mapping[TopicPartition, int],
    partitions: Sequence[TopicPartition],
    target: Target,
    number: int,
) -> list[Move]:
    """Return the offsets that a reset would commit, within each log's ends.

    `number`: the time in ms, the offset, or by how many records to shift. A shift begins at the committed offset.
    Raises ClientError if an offset cannot be had.
    """
    await kafka.load(sorted({each.topic for each in partitions}))
    found = {each: kafka.leader_of(each) for each in partitions}
    leaders = {key: leader.node_id for key, leader in found.items() if leader is not None}
    problems: list[str] = []
    starts = await offsets_at(kafka, leaders, EARLIEST_TIMESTAMP, problems)
    ends = await offsets_at(kafka, leaders, LATEST_TIMESTAMP, problems)
    by_time = await offsets_at(kafka, leaders, number, problems) if target is Target.TIME else {}
    moves = []
    for key in partitions:
        if key not in starts or key not in ends or (target is Target.TIME and key not in by_time):
            raise ClientError("; ".join([f"the offsets of {key} cannot be had", *problems]))
        start, end, old = starts[key], ends[key], committed.get(key)
        match target:
            case Target.EARLIEST:
                new = start
            case Target.LATEST:
                new = end
            case Target.TIME:
                new = by_time[key] if by_time[key] >= 0 else end
            case Target.OFFSET:
                new = number
            case Target.SHIFT:
                if old is None:
                    continue
                new = old + number
        moves.append(Move(key, old, min(max(new, start), end)))
    return moves


async def commit_offsets(kafka: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets of a group that has no members."""
    topics: dict[str, list[OffsetCommitPartition]] = defaultdict(list)
    for key, offset in offsets.items():
        topics[key.topic].append(OffsetCommitPartition(partition=key.partition, offset=offset, metadata=""))
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitTopic(name=name, partitions=parts) for name, parts in topics.items()]
    )
    answer: OffsetCommitResponse = await (await kafka.coordinator(GROUP_KEY, group, is_sought_again=True)).request(
        request
    )
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error is not ErrorCode.NONE:
                raise RefusedError(each.error, f"{topic.name}-{each.partition}: {_commit_reason(each.error)}")


def _commit_reason(error: ErrorCode) -> str:
    if error in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS}:
        return "the group has members: stop them first"
    return reason_of(error)


async def delete_group(kafka: Cluster, group: str) -> None:
    """Delete a group that has no members, with its offsets."""
    coordinator = await kafka.coordinator(GROUP_KEY, group, is_sought_again=True)
    answer = await coordinator.request(DeleteGroupsRequest(group_ids=[group]))
    for each in answer.results:
        if each.error is not ErrorCode.NONE:
            raise RefusedError(each.error, f"the group {group!r}: {reason_of(each.error)}")


async def abort_transaction(kafka: Cluster, transactional_id: str) -> None:
    """Abort an id's open transaction and fence its producer, as a new producer with this id would."""
    coordinator = await kafka.coordinator(_TRANSACTION_KEY, transactional_id, is_sought_again=True)
    described = await coordinator.request(DescribeTransactionsRequest(transactional_ids=[transactional_id]))
    (found,) = described.transactions
    if found.error is not ErrorCode.NONE:  # otherwise the id would be created
        raise RefusedError(found.error, f"transactional id {transactional_id!r}: {reason_of(found.error)}")
    timeout_ms = min(max(found.timeout_ms, 1), _LONGEST_TIMEOUT_MS)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    for _ in range(_ATTEMPTS):
        answer = await coordinator.request(request)
        if answer.error is not ErrorCode.CONCURRENT_TRANSACTIONS:  # the answer while the coordinator aborts
            break
        await asyncio.sleep(_PAUSE_S)
    if answer.error is not ErrorCode.NONE:
        raise RefusedError(answer.error, f"transactional id {transactional_id!r}: {reason_of(answer.error)}")
