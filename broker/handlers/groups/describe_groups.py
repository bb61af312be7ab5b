"""DescribeGroups (key 15): groups with their members, their metadata and assignments.

A group that there is not is Dead, and from version 6 on GROUP_ID_NOT_FOUND. One that only has committed offsets is
Empty, as in Kafka. The members' metadata and the assignor are shown while the group is stable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.state import GroupState
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.authorized_operations import GROUP_OPERATIONS
from barnabas.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.groups.directory import GroupDirectory
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class DescribeGroupsHandler:
    """Serves DescribeGroups. `has_offsets` says whether a group has committed any."""

    def __init__(self, groups: GroupDirectory, has_offsets: Callable[[str], bool], probe: ApiProbe) -> None:
        self._groups = groups
        self._has_offsets = has_offsets
        self._probe = probe

    def __call__(self, session: Session, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        """The answer to one request; the contract is at the top of the file."""
        groups = [self._describe(group_id, unknown_is_error=request.unknown_is_error) for group_id in request.groups]
        if request.include_authorized_operations:
            groups = [
                group if group.error else group._replace(authorized_operations=GROUP_OPERATIONS) for group in groups
            ]
        return DescribeGroupsResponse(groups)

    def _describe(self, group_id: str, *, unknown_is_error: bool) -> DescribedGroup:
        try:
            group = self._groups.describe(group_id)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return DescribedGroup(group_id, error=error.code, message=error.message)
        if group is not None:  # of a consumer group this is its refusal
            is_dead = group.error == ErrorCode.GROUP_ID_NOT_FOUND and not unknown_is_error
            return DescribedGroup(group_id, group.state) if is_dead else group
        if self._has_offsets(group_id):
            return DescribedGroup(group_id, GroupState.EMPTY.value)
        if not unknown_is_error:
            return DescribedGroup(group_id, GroupState.DEAD.value)
        self._probe.count_error(ErrorCode.GROUP_ID_NOT_FOUND.name.lower())
        return DescribedGroup(
            group_id,
            GroupState.DEAD.value,
            error=ErrorCode.GROUP_ID_NOT_FOUND,
            message=f"there is no group {printable(group_id)}",
        )
