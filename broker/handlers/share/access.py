"""What ShareFetch and ShareAcknowledge check first, in Kafka's order.

UNSUPPORTED_VERSION while the feature share.version is 0; INVALID_REQUEST without a group id;
GROUP_AUTHORIZATION_FAILED unless the client may READ the group; INVALID_REQUEST for a member id that is empty or longer
than 36 characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import denial, ensure_allowed, is_allowed
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.api_key import ApiKey

_SHARE_VERSION: Final = "share.version"
_MEMBER_ID_CHARACTERS: Final = 36


def ensure_member(
    store: MetadataView, session: Session, group_id: str | None, member_id: str | None, api: ApiKey
) -> tuple[str, str]:
    """Return the group and the member of a request. Raises BrokerError."""
    if store.image.features.get(_SHARE_VERSION, 0) < 1:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "the feature share.version is 0: there are no share groups")
    if group_id is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    ensure_allowed(session, Operation.READ, ResourceType.GROUP, group_id, api)
    if not member_id or len(member_id) > _MEMBER_ID_CHARACTERS:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return group_id, member_id


def usable(store: MetadataView, session: Session, api: ApiKey) -> Callable[[bytes, int], None]:
    """Return a check of partitions, which raises BrokerError.

    UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED unless the client may READ the topic, UNKNOWN_TOPIC_OR_PARTITION.
    """
    allowed: dict[str, bool] = {}

    def ensure_usable(topic_id: bytes, number: int) -> None:
        image = store.image
        name = image.names.get(topic_id)
        if name is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "unknown topic id")
        if name not in allowed:
            allowed[name] = is_allowed(session, Operation.READ, ResourceType.TOPIC, name, api)
        if not allowed[name]:
            raise denial(ResourceType.TOPIC)
        if number not in image.topics[name].partitions:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")

    return ensure_usable
