"""SyncGroup (key 14): the leader sends the assignment, and all members wait until it is written.

From version 5 on a request without protocol type or name is INCONSISTENT_GROUP_PROTOCOL, whatever the member. Then
GROUP_AUTHORIZATION_FAILED if the client may not READ the group. UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID and
ILLEGAL_GENERATION for a member that is not of the generation, INCONSISTENT_GROUP_PROTOCOL for another protocol than the
generation's, REBALANCE_IN_PROGRESS if the next rebalance has begun. A member that the leader's assignment leaves out
gets an empty assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.groups.membership import ClassicMembership
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse


class SyncGroupHandler:
    """Serves SyncGroup."""

    def __init__(self, groups: ClassicMembership) -> None:
        self._groups = groups

    def __call__(self, session: Session, request: SyncGroupRequest) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
        """Answer one SyncGroup request as the module docstring specifies."""
        request.check()
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, ApiKey.SYNC_GROUP)
        return self._groups.sync(request)
