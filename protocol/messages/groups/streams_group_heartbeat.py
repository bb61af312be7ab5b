"""StreamsGroupHeartbeat (key 88): a member of a streams group joins, stays, reports its tasks, and leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.streams_topology import Endpoint, KeyValue, Tasks, Topology

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2

UNCHANGED_TIMEOUT: Final = -1


class StatusCode(IntEnum):
    """What a member is told about its group beside its tasks."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(slots=True)
class GroupStatus:
    """A status with its explanation for people."""

    code: StatusCode
    detail: str


@dataclass(slots=True)
class StreamsGroupHeartbeatRequest:
    """None, and -1 as `rebalance_timeout_ms`, mean unchanged."""

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED_TIMEOUT
    topology: Topology | None = None
    active_tasks: Tasks | None = None
    standby_tasks: Tasks | None = None
    warmup_tasks: Tasks | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: Sequence[KeyValue] | None = None
    task_offsets: Sequence[object] | None = None
    task_end_offsets: Sequence[object] | None = None
    shutdown_application: bool = False


class EndpointPartitions(NamedTuple):
    """The partitions, by topic, whose state a member's active and standby tasks have."""

    endpoint: Endpoint
    active: Mapping[str, Sequence[int]]
    standby: Mapping[str, Sequence[int]]


@dataclass(slots=True)
class StreamsGroupHeartbeatResponse:
    """The three kinds of tasks are those that the member may run from now on; None: unchanged."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    status: list[GroupStatus] | None = field(default_factory=list)
    active_tasks: Tasks | None = None
    standby_tasks: Tasks | None = None
    warmup_tasks: Tasks | None = None
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointPartitions] | None = None
