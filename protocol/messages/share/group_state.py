"""The APIs of share partitions' states (keys 83 to 87), by which brokers talk to the share coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class StateBatchOfApi:
    """Offsets in one state: 0 available, 2 acknowledged, 4 archived."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


@dataclass(slots=True)
class InitializedPartition:
    """A state to begin."""

    partition: int
    state_epoch: int
    start_offset: int


@dataclass(slots=True)
class ReadPartition:
    """A state to read, by a leader of that epoch."""

    partition: int
    leader_epoch: int


@dataclass(slots=True)
class WrittenPartition:
    """A change of a state."""

    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    batches: list[StateBatchOfApi]
    delivery_complete_count: int = -1


@dataclass(slots=True)
class DeletedPartition:
    """A state to delete."""

    partition: int


@dataclass(slots=True)
class StateTopic:
    """Partitions of one topic: of requests as above, of responses PartitionState."""

    topic_id: bytes
    partitions: list[Any]


@dataclass(slots=True)
class GroupStateRequest:
    """A request of any of the APIs."""

    group_id: str
    topics: list[StateTopic]


@dataclass(slots=True)
class PartitionState:
    """The answer for one partition; what an API does not return keeps its default."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    batches: Sequence[Any] = ()


@dataclass(slots=True)
class GroupStateResponse:
    """In the order of the request."""

    topics: list[StateTopic]


def refused(request: GroupStateRequest, code: ErrorCode, message: str | None) -> GroupStateResponse:
    """Return the response that refuses every partition of a request."""
    return GroupStateResponse(
        [
            StateTopic(topic.topic_id, [PartitionState(each.partition, code, message) for each in topic.partitions])
            for topic in request.topics
        ]
    )
