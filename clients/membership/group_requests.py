"""A member's requests to its group's coordinator, without retries; `consumer_membership` handles the answers.

A join waits at the broker until the group's other members have joined, and later requests on its connection wait too.
So a member has a connection of its own (Purpose.GROUP), and leaves on another one, past a waiting join.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import BrokerConnectionError, ClientError, ClosedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.node_connections import Purpose
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.groups.consumer_protocol import CONSUMER
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeavingMember
from barnabas.protocol.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.wire.structures import Request

ABOUT_THE_MEMBER: Final = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
)
"""Codes after which a member joins again."""

NO_COORDINATOR: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Codes after which a member looks for its coordinator."""

JOIN_HEADROOM_MS: Final = 5_000
"""Time for a join's answer on top of the rebalance timeout, within which the broker sends it."""

LEAVE_TIMEOUT_MS: Final = 5_000
"""Short, because leaving is a courtesy: the session would end by itself."""


class GroupRequests:
    """Requests raise BrokerConnectionError, BrokerTimeoutError, or RefusedError for a refusal of the whole request."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, group: str) -> None:
        self._cluster = cluster
        self._config = config
        self._group = group
        self._connection: Connection | None = None

    async def join(self, member_id: str, subscriptions: Sequence[GroupProtocol]) -> JoinGroupResponse:
        """Join, waiting for the next generation for at most max_poll_interval_ms."""
        config = self._config
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=config.session_timeout_ms,
            sent_rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=CONSUMER,
            protocols=subscriptions,
        )
        timeout_ms = max(config.request_timeout_ms, config.max_poll_interval_ms + JOIN_HEADROOM_MS)
        response: JoinGroupResponse = await self._ask(request, timeout_ms)
        return response

    async def sync(
        self, member_id: str, generation: int, assignor: str | None, assignments: Mapping[str, bytes]
    ) -> SyncGroupResponse:
        """Wait for the leader's assignment; the leader itself sends `assignments`."""
        request = SyncGroupRequest(
            group_id=self._group,
            generation=generation,
            member_id=member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=CONSUMER,
            protocol=assignor,
            assignments=[MemberAssignment(member_id=each, assignment=data) for each, data in assignments.items()],
        )
        timeout_ms = max(self._config.request_timeout_ms, self._config.max_poll_interval_ms + JOIN_HEADROOM_MS)
        response: SyncGroupResponse = await self._ask(request, timeout_ms)
        return response

    async def heartbeat(self, member_id: str, generation: int) -> HeartbeatResponse:
        """Keep the session alive and learn whether the generation is still current."""
        request = HeartbeatRequest(
            group_id=self._group,
            generation=generation,
            member_id=member_id,
            group_instance_id=self._config.group_instance_id,
        )
        timeout_ms = min(self._config.request_timeout_ms, self._config.session_timeout_ms)
        response: HeartbeatResponse = await self._ask(request, timeout_ms)
        return response

    async def leave(self, member_id: str, reason: str) -> None:
        """Leave the group, so that it need not wait for the session's end. Raises ClientError."""
        request = LeaveGroupRequest(group_id=self._group, members=[LeavingMember(member_id=member_id, reason=reason)])
        connection = await self._cluster.coordinator(GROUP_KEY, self._group)
        await connection.request(request, timeout_ms=LEAVE_TIMEOUT_MS)

    def close(self) -> None:
        """Cut off a waiting join by closing the connection."""
        if self._connection is not None:
            self._connection.close()

    async def _ask(self, request: Request[Any], timeout_ms: int) -> Any:
        """Send a request to the coordinator, which is looked for again after one that is none has answered."""
        connection = await self._coordinator()
        try:
            response = await connection.request(request, timeout_ms=timeout_ms)
        except asyncio.CancelledError:
            connection.close(ClosedError("the consumer has left its group"))
            raise
        except ClosedError as error:
            raise ClientError(f"the consumer's group connection was closed: {error}") from error
        if response.error in NO_COORDINATOR:
            self._cluster.forget_coordinators()
            self._connection = None
        return response

    async def _coordinator(self) -> Connection:
        if self._connection is None or self._connection.closed:
            try:
                self._connection = await self._cluster.coordinator(GROUP_KEY, self._group, Purpose.GROUP)
            except BrokerConnectionError:
                self._cluster.forget_coordinators()
                raise
        return self._connection
