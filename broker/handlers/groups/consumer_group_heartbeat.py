"""ConsumerGroupHeartbeat (key 68): the request with which members of the consumer protocol join, stay and leave.

UNSUPPORTED_VERSION if group.coordinator.rebalance.protocols does not name the protocol; GROUP_AUTHORIZATION_FAILED if
the client may not READ the group; TOPIC_AUTHORIZATION_FAILED if it may not DESCRIBE each of the named topics; then the
checks of `groups.consumer.heartbeat`, in the order given there. A change is as durable as the flush settings of
`__consumer_offsets` demand before the member gets the response. Differs from Kafka: an expression is resolved before
the response, not after it. It matches only topics that the client of the heartbeat may DESCRIBE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.join_limits import ensure_heartbeat_is_storable
from barnabas.broker.handlers.authorization import denial, denied_names, ensure_allowed
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType

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
        """Answer one ConsumerGroupHeartbeat request as the module docstring specifies."""
        ensure_enabled(self._groups)
        api = ApiKey.CONSUMER_GROUP_HEARTBEAT
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, api)
        if request.topic_names and denied_names(
            session, Operation.DESCRIBE, ResourceType.TOPIC, request.topic_names, api
        ):
            raise denial(ResourceType.TOPIC)
        ensure_heartbeat_is_storable(request)
        return self._groups.heartbeat(request, JoiningClient.of(session), self._probe)


def ensure_enabled(groups: ConsumerGroups) -> None:
    """Raise BrokerError UNSUPPORTED_VERSION if the protocol is not served."""
    if not groups.is_enabled:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "group.coordinator.rebalance.protocols does not name consumer")
