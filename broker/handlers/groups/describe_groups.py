"""DescribeGroups (key 15): classic groups with their members, their metadata and assignments.

GROUP_AUTHORIZATION_FAILED for a group that the client may not DESCRIBE. An unknown group is Dead, from version 6 on
with GROUP_ID_NOT_FOUND. A group that only has committed offsets is Empty, as in Kafka. The members' metadata and the
assignor are shown while the group is stable. Differs from Kafka: INVALID_REQUEST for each occurrence of a group that is
listed more than ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.groups.group import GroupState
from barnabas.broker.handlers.authorization import denial, group_operations, is_allowed
from barnabas.broker.handlers.repetitions import DESCRIBED_MAX, repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from barnabas.broker.groups.membership import ClassicMembership
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class DescribeGroupsHandler:
    """Serves DescribeGroups. `has_offsets` returns whether a group has committed offsets."""

    def __init__(self, groups: ClassicMembership, has_offsets: Callable[[str], bool], probe: ApiProbe) -> None:
        self._groups = groups
        self._has_offsets = has_offsets
        self._probe = probe

    def __call__(
        self, session: Session, request: DescribeGroupsRequest
    ) -> DescribeGroupsResponse | Coroutine[Any, Any, DescribeGroupsResponse]:
        """Answer one DescribeGroups request as the module docstring specifies; of many groups in several turns."""
        return in_turns(self._describe_all(session, request))

    async def _describe_all(self, session: Session, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        turns = Turns()
        refused = repeated(request.groups, DESCRIBED_MAX)
        groups = []
        for group_id in request.groups:
            if turns.is_over:
                await turns.next()
            if not is_allowed(session, Operation.DESCRIBE, ResourceType.GROUP, group_id, ApiKey.DESCRIBE_GROUPS):
                group = self._refuse(group_id, denial(ResourceType.GROUP).code)
            elif group_id in refused:
                error = repetition_error("group", DESCRIBED_MAX)
                group = self._refuse(group_id, error.code, error.message)
            else:
                group = self._describe(group_id, unknown_is_error=request.unknown_is_error)
                if request.include_authorized_operations and not group.error:
                    group.authorized_operations = group_operations(session, group_id)
            groups.append(group)
        return DescribeGroupsResponse(groups=groups)

    def _refuse(self, group_id: str, code: ErrorCode, message: str | None = None) -> DescribedGroup:
        self._probe.count_error(code.name.lower())
        return DescribedGroup(group_id=group_id, error=code, message=message)

    def _describe(self, group_id: str, *, unknown_is_error: bool) -> DescribedGroup:
        try:
            group = self._groups.describe(group_id)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return DescribedGroup(group_id=group_id, error=error.code, message=error.message)
        if group is not None:  # a classic group, or the refusal of a consumer group
            is_dead = group.error == ErrorCode.GROUP_ID_NOT_FOUND and not unknown_is_error
            return DescribedGroup(group_id=group_id, state=group.state) if is_dead else group
        if self._has_offsets(group_id):
            return DescribedGroup(group_id=group_id, state=GroupState.EMPTY.value)
        if not unknown_is_error:
            return DescribedGroup(group_id=group_id, state=GroupState.DEAD.value)
        self._probe.count_error(ErrorCode.GROUP_ID_NOT_FOUND.name.lower())
        return DescribedGroup(
            group_id=group_id,
            state=GroupState.DEAD.value,
            error=ErrorCode.GROUP_ID_NOT_FOUND,
            message=f"there is no group {printable(group_id)}",
        )
