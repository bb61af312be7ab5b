"""ConsumerGroupHeartbeat (key 68): the one request by which members of the consumer protocol join, live and leave.

UNSUPPORTED_VERSION where group.coordinator.rebalance.protocols leaves the protocol out; then the checks of
`groups/consumer_group_heartbeat`, in the order that it gives. What changed is durable, as `__consumer_offsets` is
flushed, before the member is told. Differs from Kafka: an expression is resolved before the answer, not after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.joining import JoiningClient
from barnabas.broker.groups.join_limits import ensure_short
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.groups import ConsumerGroups
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )


class ConsumerGroupHeartbeatHandler:
    """Serves ConsumerGroupHeartbeat."""

    def __init__(self, groups: ConsumerGroups, probe: ApiProbe) -> None:
        self._groups = groups
        self._probe = probe

    def __call__(
        self, session: Session, request: ConsumerGroupHeartbeatRequest
    ) -> Deferred[ConsumerGroupHeartbeatResponse]:
        """The answer to one request; the contract is at the top of the file."""
        ensure_enabled(self._groups)
        ensure_short(request)
        host = session.peer.rpartition(":")[0].removeprefix("::ffff:")
        return self._groups.heartbeat(request, JoiningClient(session.client_id or "", f"/{host}"), self._probe)


def ensure_enabled(groups: ConsumerGroups) -> None:
    """Raises BrokerError UNSUPPORTED_VERSION."""
    if not groups.is_enabled:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "group.coordinator.rebalance.protocols does not name consumer")
