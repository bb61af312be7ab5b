"""LeaveGroup (key 13): members leave, named by member id or, static ones, by instance id; the rest rebalances once.

GROUP_AUTHORIZATION_FAILED if the client may not READ the group; UNKNOWN_MEMBER_ID for an unknown member,
FENCED_INSTANCE_ID for a static one under another member id; the other members of the request leave. Admin clients
remove static members with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.groups.membership import ClassicMembership
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse


class LeaveGroupHandler:
    """Serves LeaveGroup."""

    def __init__(self, groups: ClassicMembership, probe: ApiProbe) -> None:
        self._groups = groups
        self._probe = probe

    def __call__(
        self, session: Session, request: LeaveGroupRequest
    ) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
        """Answer one LeaveGroup request as the module docstring specifies."""
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, ApiKey.LEAVE_GROUP)
        response = self._groups.leave(request)
        if isinstance(response, Deferred):  # a consumer group's records have to be written first
            return response
        for member in response.members:
            if member.error != ErrorCode.NONE:
                self._probe.count_error(member.error.name.lower())
        return response
