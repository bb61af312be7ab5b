"""explain_group (key 10002): a group's history, its members' deadlines, and what retention leaves it.

Times are wall clock in ms since 1970. DescribeGroups, ConsumerGroupDescribe and OffsetFetch have the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, Message, NullableString, String


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


class GroupEvent(Struct, kw_only=False):
    """One event; without a member where it is about the whole group. `detail`: a reason, shortened; may be empty."""

    time_ms: Int64
    kind: String
    member_id: String = ""
    client_id: String = ""
    client_host: String = ""
    detail: String = ""


class WaitsFor(StrEnum):
    """What a group waits for a member to do."""

    JOIN = "join"
    SYNC = "sync"
    REVOCATION = "revocation"
    HEARTBEAT = "heartbeat"
    """The member has not been told of the new assignment."""
    OTHER_MEMBERS = "other_members"
    """Nothing: the member waits for partitions that others have not given up."""


class MemberTiming(Struct, kw_only=False):
    """A member's session and its part in a rebalance. Remaining times in ms, None without a deadline.

    `waits_for` is a value of WaitsFor, empty if the member has its assignment.
    """

    member_id: String
    instance_id: NullableString
    client_id: String
    client_host: String
    session_timeout_ms: Int32
    session_left_ms: Int64 | None = tagged(0, default=None)
    waits_for: String = ""
    wait_left_ms: Int64 | None = tagged(1, default=None)


class Deletion(Struct, kw_only=False):
    """When retention deletes the records below `end_offset`; None: never. `rule`: the property that decides."""

    end_offset: Int64
    earliest_ms: Int64 | None = tagged(0, default=None)
    latest_ms: Int64 | None = tagged(1, default=None)
    rule: NullableString = None


class PartitionLag(Struct, kw_only=False):
    """A partition with a committed offset.

    `lag_bytes` and `next_timestamp_ms` (of the batch with the record that the group reads next) are None if the group
    has read everything, or if the log cannot be read. `deletions`: of segments with records that the group has not
    read, in order of their offsets.
    """

    topic: String
    partition: Int32
    committed: Int64
    committed_ms: Int64
    log_start_offset: Int64
    high_watermark: Int64
    lag_bytes: Int64 | None = tagged(0, default=None)
    next_timestamp_ms: Int64 | None = tagged(1, default=None)
    deletions: Sequence[Deletion] = ()


class ExplainGroupResponse(Struct, flexible=0):
    """`state_since_ms`: None where it is not known. `events`: the newest, in order of time.

    `problems`: a sentence for each stored config of the group that is not used.
    """

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    now_ms: Int64 = 0
    state: String = ""
    group_type: String = ""
    state_since_ms: Int64 | None = tagged(0, default=None)
    members: Sequence[MemberTiming] = ()
    partitions: Sequence[PartitionLag] = ()
    events: Sequence[GroupEvent] = ()
    problems: Sequence[String] = ()


class ExplainGroupRequest(Request[ExplainGroupResponse], api=ApiKey.EXPLAIN_GROUP, flexible=0):
    """The group."""

    group_id: String

    def refused(self, code: ErrorCode, message: str) -> ExplainGroupResponse:
        """The code and the message."""
        return ExplainGroupResponse(error=code, message=message)
