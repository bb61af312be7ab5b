"""Heartbeat (key 12): keeps a member's session alive. REBALANCE_IN_PROGRESS tells it to join again.

GROUP_AUTHORIZATION_FAILED if the client may not READ the group. UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID and
ILLEGAL_GENERATION for a member that is not of the generation. While the group's records are loaded, the response has no
error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.groups.membership import ClassicMembership
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class HeartbeatHandler:
    """Serves Heartbeat."""

    def __init__(self, groups: ClassicMembership, probe: ApiProbe) -> None:
        self._groups = groups
        self._probe = probe

    def __call__(self, session: Session, request: HeartbeatRequest) -> HeartbeatResponse:
        """Answer one Heartbeat request as the module docstring specifies."""
        access = session.access
        if access is not None and not access.read_group[request.group_id]:
            ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, ApiKey.HEARTBEAT)
        code = self._groups.heartbeat(
            request.group_id, request.member_id, request.group_instance_id, request.generation
        )
        if code != ErrorCode.NONE:
            self._probe.count_error(code.name.lower())
        return HeartbeatResponse(error=code)
