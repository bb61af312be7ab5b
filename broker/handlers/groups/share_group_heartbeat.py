"""ShareGroupHeartbeat (key 76): the request with which members of share groups join, stay and leave.

UNSUPPORTED_VERSION while share.version is 0; GROUP_AUTHORIZATION_FAILED if the client may not READ the group;
INVALID_REQUEST for a member id that is empty or longer than 36 characters; TOPIC_AUTHORIZATION_FAILED if it may not
DESCRIBE each of the named topics; then the checks of `groups.share.heartbeat`, in the order given there. A change is as
durable as the flush settings of `__consumer_offsets` demand before the member gets the response.

Differs from Kafka: a member whose partitions have no state yet is told to send its next heartbeat soon, so that it has
its partitions a fraction of a second after it joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.join_limits import MAX_CHOSEN_ID, ensure_share_heartbeat_is_storable
from barnabas.broker.handlers.authorization import denial, denied_names, ensure_allowed
from barnabas.broker.share.feature import ensure_share_groups
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.groups.share.groups import ShareGroups
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.groups.share_group_heartbeat import (
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
    )


class ShareGroupHeartbeatHandler:
    """Serves ShareGroupHeartbeat."""

    def __init__(self, groups: ShareGroups, store: MetadataView, probe: ApiProbe) -> None:
        self._groups = groups
        self._store = store
        self._probe = probe

    def __call__(self, session: Session, request: ShareGroupHeartbeatRequest) -> Deferred[ShareGroupHeartbeatResponse]:
        """Answer one ShareGroupHeartbeat request as the module docstring specifies."""
        ensure_share_groups(self._store.image)
        api = ApiKey.SHARE_GROUP_HEARTBEAT
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, api)
        if not 0 < len(request.member_id) <= MAX_CHOSEN_ID:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        if request.topic_names and denied_names(
            session, Operation.DESCRIBE, ResourceType.TOPIC, request.topic_names, api
        ):
            raise denial(ResourceType.TOPIC)
        ensure_share_heartbeat_is_storable(request)
        return self._groups.heartbeat(request, JoiningClient.of(session), self._probe)
