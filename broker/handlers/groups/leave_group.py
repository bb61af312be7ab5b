"""LeaveGroup (key 13): members go, each by its id or, a static one, by its instance id; the rest rebalances once.

UNKNOWN_MEMBER_ID for one that is none, FENCED_INSTANCE_ID for a static one whose id is another's; the others leave all
the same. An admin client removes static members so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.groups.directory import GroupDirectory
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse


class LeaveGroupHandler:
    """Serves LeaveGroup."""

    def __init__(self, groups: GroupDirectory, probe: ApiProbe) -> None:
        self._groups = groups
        self._probe = probe

    def __call__(
        self, session: Session, request: LeaveGroupRequest
    ) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
        """The answer to one request; the contract is at the top of the file."""
        response = self._groups.leave(request)
        if isinstance(response, Deferred):  # of a consumer group, whose records say so
            return response
        for member in response.members:
            if member.error != ErrorCode.NONE:
                self._probe.count_error(member.error.name.lower())
        return response
