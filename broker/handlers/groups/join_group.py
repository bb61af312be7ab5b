"""JoinGroup (key 11): a member joins, and waits until its group's next generation is formed.

Checks in this order: GROUP_AUTHORIZATION_FAILED if the client may not READ the group; INVALID_GROUP_ID for an empty
group id; COORDINATOR_LOAD_IN_PROGRESS while the group's records are loaded; INVALID_SESSION_TIMEOUT for a session
timeout outside group.min.session.timeout.ms and group.max.session.timeout.ms; INVALID_GROUP_ID or INVALID_REQUEST for
texts that are too long; then the checks of `groups.classic.joining`. Differs from Kafka: if a member joins again while
its first join waits, the first one is answered REBALANCE_IN_PROGRESS, where Kafka never answers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.groups.membership import ClassicMembership
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse


class JoinGroupHandler:
    """Serves JoinGroup."""

    def __init__(self, groups: ClassicMembership) -> None:
        self._groups = groups

    def __call__(self, session: Session, request: JoinGroupRequest) -> Deferred[JoinGroupResponse]:
        """Answer one JoinGroup request as the module docstring specifies."""
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, ApiKey.JOIN_GROUP)
        return self._groups.join(request, JoiningClient.of(session))
