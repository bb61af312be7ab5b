"""JoinGroup (key 11): a client joins its group, and gets the group's next generation.

The leader's response has every member's metadata, so that it can assign partitions; other responses have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Bytes, Error, Int32, Nullable, NullableString, String

NO_GENERATION = -1
NO_MEMBER_ID = ""

_NULL_PROTOCOL_FROM: Final = 7


class JoinedMember(Struct):
    """A member as the leader sees it."""

    member_id: String
    group_instance_id: NullableString = since(5, default=None)
    metadata: Bytes


class JoinGroupResponse(Struct, flexible=6):
    """`skip_assignment`: the leader came back, and the present assignment stays."""

    throttle_ms: Int32 = since(2, default=0)
    error: Error = ErrorCode.NONE
    generation: Int32 = NO_GENERATION
    protocol_type: NullableString = since(7, default=None)
    protocol: Annotated[String | None, Nullable(_NULL_PROTOCOL_FROM)] = None
    leader: String = NO_MEMBER_ID
    skip_assignment: Bool = since(9, default=False)
    member_id: String = NO_MEMBER_ID
    members: Sequence[JoinedMember] = ()

    def encode(self, version: int) -> bytes:
        """Return the bytes. Before version 7 the name of no protocol is empty."""
        if self.protocol is None and version < _NULL_PROTOCOL_FROM:
            return self.replaced(protocol="").encode(version)
        return super().encode(version)


class GroupProtocol(Struct):
    """An assignor that a member supports, and the member's metadata (a subscription) as opaque bytes."""

    name: String
    metadata: Bytes


class JoinGroupRequest(Request[JoinGroupResponse], api=ApiKey.JOIN_GROUP, flexible=6):
    """Timeouts in ms.

    member_id           empty at the first join
    group_instance_id   of a static member
    protocols           in the order of preference
    """

    group_id: String
    session_timeout_ms: Int32
    sent_rebalance_timeout_ms: Int32 = since(1, default=-1)
    member_id: String
    group_instance_id: NullableString = since(5, default=None)
    protocol_type: String
    protocols: Sequence[GroupProtocol]
    reason: NullableString = since(8, default=None)

    @property
    def rebalance_timeout_ms(self) -> int:
        """In version 0 the session timeout."""
        return self.session_timeout_ms if self.version < 1 else self.sent_rebalance_timeout_ms

    @property
    def requires_known_member_id(self) -> bool:
        """Whether the client expects MEMBER_ID_REQUIRED at its first join."""
        return self.version >= 4

    @property
    def can_skip_assignment(self) -> bool:
        """Whether the client understands `skip_assignment`."""
        return self.version >= 9

    def refused(self, code: ErrorCode, message: str) -> JoinGroupResponse:
        """The refusal, with the member id of the request."""
        return JoinGroupResponse(error=code, member_id=self.member_id)
