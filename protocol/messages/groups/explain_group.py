"""explain_group (key 10002): a group's history, its members' deadlines, and what retention leaves it.

Times are wall clock in ms since 1970. DescribeGroups, ConsumerGroupDescribe and OffsetFetch have the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class GroupEventKind(StrEnum):
    """What happened in a group."""

    JOINED = "joined"
    JOINED_AGAIN = "joined_again"
    """A member that leads or has new metadata joined, and so began a rebalance; or a static member came back."""
    LEFT = "left"
    SESSION_ENDED = "session_ended"
    """No heartbeat came within the session timeout."""
    JOIN_TIMED_OUT = "join_timed_out"
    """The member did not join the rebalance within the rebalance timeout."""
    SYNC_TIMED_OUT = "sync_timed_out"
    """The member joined, and did not ask for its assignment within the rebalance timeout."""
    REVOCATION_TIMED_OUT = "revocation_timed_out"
    """The member of the consumer protocol did not give partitions up within its rebalance timeout."""
    REBALANCE_BEGAN = "rebalance_began"
    STABLE = "stable"
    """Every member has its assignment."""
    EMPTY = "empty"
    """The last member went."""
    UPGRADED = "upgraded"
    """The classic group became a consumer group (group.consumer.migration.policy)."""
    DOWNGRADED = "downgraded"
    """The consumer group became a classic group, when its last member of the consumer protocol went."""


class GroupEvent(NamedTuple):
    """One event; without a member where it is about the whole group. `detail`: a reason, shortened; may be empty."""

    time_ms: int
    kind: str
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    detail: str = ""


class WaitsFor(StrEnum):
    """What a group waits for a member to do."""

    JOIN = "join"
    SYNC = "sync"
    REVOCATION = "revocation"
    HEARTBEAT = "heartbeat"
    """The member has not been told of the new assignment."""
    OTHER_MEMBERS = "other_members"
    """Nothing: the member waits for partitions that others have not given up."""


class MemberTiming(NamedTuple):
    """A member's session and its part in a rebalance. Remaining times in ms, None without a deadline.

    `waits_for` is a value of WaitsFor, empty if the member has its assignment.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    session_left_ms: int | None
    waits_for: str = ""
    wait_left_ms: int | None = None


class Deletion(NamedTuple):
    """When retention deletes the records below `end_offset`; None: never. `rule`: the property that decides."""

    end_offset: int
    earliest_ms: int | None
    latest_ms: int | None
    rule: str | None


class PartitionLag(NamedTuple):
    """A partition with a committed offset.

    `lag_bytes` and `next_timestamp_ms` (of the batch with the record that the group reads next) are None if the group
    has read everything, or if the log cannot be read. `deletions`: of segments with records that the group has not
    read, in order of their offsets.
    """

    topic: str
    partition: int
    committed: int
    committed_ms: int
    log_start_offset: int
    high_watermark: int
    lag_bytes: int | None = None
    next_timestamp_ms: int | None = None
    deletions: Sequence[Deletion] = ()


@dataclass(slots=True)
class ExplainGroupRequest:
    """The group."""

    group_id: str


@dataclass(slots=True)
class ExplainGroupResponse:
    """`state_since_ms`: None where it is not known. `events`: the newest, in order of time.

    `problems`: a sentence for each stored config of the group that is not used.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    now_ms: int = 0
    state: str = ""
    group_type: str = ""
    state_since_ms: int | None = None
    members: Sequence[MemberTiming] = ()
    partitions: Sequence[PartitionLag] = ()
    events: Sequence[GroupEvent] = ()
    problems: Sequence[str] = ()
