"""JoinGroup (key 11): a client joins its group, and gets the group's next generation.

The leader's response has every member's metadata, so that it can assign partitions; other responses have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode

NO_GENERATION = -1
NO_MEMBER_ID = ""


class GroupProtocol(NamedTuple):
    """An assignor that a member supports, and the member's metadata (a subscription) as opaque bytes."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class JoinGroupRequest:
    """Timeouts in ms.

    member_id                  empty at the first join
    group_instance_id          of a static member
    protocols                  in the order of preference
    requires_known_member_id   the client expects MEMBER_ID_REQUIRED at its first join (version 4 and later)
    can_skip_assignment        the client understands `skip_assignment` (version 9 and later)
    """

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: Sequence[GroupProtocol]
    reason: str | None = None
    requires_known_member_id: bool = True
    can_skip_assignment: bool = False


class JoinedMember(NamedTuple):
    """A member as the leader sees it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResponse(NamedTuple):
    """`skip_assignment`: the leader came back, and the present assignment stays."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str = NO_MEMBER_ID
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = NO_MEMBER_ID
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()
