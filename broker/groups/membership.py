"""Requests of the classic protocol's members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups.

A classic or consumer group may have classic members: the id's group decides which service answers. An id belongs to
one group at a time. A group of another protocol without members makes room for a classic group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.group import GroupState, GroupType
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.groups.classic.groups import ClassicGroups
    from barnabas.broker.groups.client import JoiningClient
    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.groups.consumer.groups import ConsumerGroups
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.registry import GroupRegistry


class ClassicMembership:
    """Sends each request to the service of its group. In the event loop only."""

    def __init__(
        self,
        registry: GroupRegistry,
        group_log: GroupLog,
        classic: ClassicGroups,
        consumer: Callable[[], ConsumerGroups],
    ) -> None:
        """`consumer` returns the service of consumer groups, which is loaded when there is a first one."""
        self._registry = registry
        self._log = group_log
        self._classic = classic
        self._consumer = consumer

    def join(self, request: JoinGroupRequest, client: JoiningClient) -> Deferred[JoinGroupResponse]:
        """Join; the response comes with the group's next generation. Raises BrokerError."""
        group = self._registry.get(request.group_id)
        if group is not None and group.group_type is GroupType.SHARE:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{printable(request.group_id)} is a share group")
        if group is None or group.group_type is GroupType.CLASSIC:
            return self._classic.join(request, client)
        self._classic.ensure_within_limits(request, client)
        if group.state is not GroupState.EMPTY:
            consumer_group = self._consumer_group(request.group_id)
            if consumer_group is None:
                what = group.group_type.value.lower()
                raise BrokerError(
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    f"{printable(request.group_id)} is a {what} group with members",
                )
            return self._consumer().join(consumer_group, request, client)
        self._classic.ensure_serving(request.group_id)
        answer: Deferred[JoinGroupResponse] = Deferred()

        def cleared(error: BrokerError | None) -> None:
            try:
                if error is not None:
                    raise error
                self.join(request, client).then(answer.resolve)  # another client may have created the group meanwhile
            except BrokerError as refused:
                answer.resolve(request.refused(refused.code, refused.message))

        self._log.append(request.group_id, group.tombstones()).then(cleared)
        return answer

    def sync(self, request: SyncGroupRequest) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
        """Sync; the response comes with the member's assignment. Raises BrokerError."""
        group = self._consumer_group(request.group_id)
        return self._classic.sync(request) if group is None else self._consumer().sync(group, request)

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """Return the answer to a member's heartbeat. Raises BrokerError."""
        group = self._consumer_group(group_id)
        if group is None:
            return self._classic.heartbeat(group_id, member_id, group_instance_id, generation)
        return self._consumer().classic_heartbeat(group, member_id, group_instance_id, generation)

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
        """Remove members, and return the result for each. Raises BrokerError."""
        group = self._consumer_group(request.group_id)
        return self._classic.leave(request) if group is None else self._consumer().leave(group, request)

    def describe(self, group_id: str) -> DescribedGroup | None:
        """Return a classic group, a refusal for a consumer group, or None if there is no group.

        Raises BrokerError while a classic group's records are loaded.
        """
        group = self._registry.get(group_id)
        if group is None or group.group_type is GroupType.CLASSIC:
            return self._classic.describe(group_id)
        return DescribedGroup(
            group_id=group_id,
            state=GroupState.DEAD.value,
            error=ErrorCode.GROUP_ID_NOT_FOUND,
            message=f"group {printable(group_id)} is not a classic group",
        )

    def _consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """Return the group if it is a consumer group. Raises BrokerError while its records are loaded."""
        group = self._registry.get(group_id)
        if group is None or group.group_type is not GroupType.CONSUMER:
            return None
        consumer = self._consumer()
        consumer.ensure_serving(group_id)
        return consumer.get(group_id)
