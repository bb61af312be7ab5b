"""Checks of the authorizer, as the handlers make them. Without an authorizer (`session.access` None) all pass.

A denial is answered with the code of its resource type and Kafka's text of that code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.authorized_operations import CLUSTER_OPERATIONS, GROUP_OPERATIONS, TOPIC_OPERATIONS
from barnabas.protocol.messages.security.resources import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.api_key import ApiKey

_ERRORS: Final = {
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    ResourceType.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
    ResourceType.DELEGATION_TOKEN: (
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        "Delegation Token authorization failed.",
    ),
}


def denial(resource: ResourceType) -> BrokerError:
    """Return the error of a denied operation on a resource of a type."""
    return BrokerError(*_ERRORS[resource])


def is_allowed(
    session: Session,
    operation: Operation,
    resource: ResourceType,
    name: str,
    api: ApiKey,
    *,
    log_denied: bool = True,
) -> bool:
    """Return whether the session's client may do this."""
    access = session.access
    return access is None or access.allows(operation, resource, name, api=api, log_denied=log_denied)


def is_cluster_allowed(session: Session, operation: Operation, api: ApiKey, *, log_denied: bool = True) -> bool:
    """Return whether the session's client may do this with the cluster."""
    return is_allowed(session, operation, ResourceType.CLUSTER, CLUSTER_NAME, api, log_denied=log_denied)


def ensure_allowed(session: Session, operation: Operation, resource: ResourceType, name: str, api: ApiKey) -> None:
    """Raise BrokerError with the resource type's code if the session's client may not do this."""
    access = session.access
    if access is not None and not access.allows(operation, resource, name, api=api):
        raise denial(resource)


def ensure_cluster_allowed(session: Session, operation: Operation, api: ApiKey) -> None:
    """Raise BrokerError CLUSTER_AUTHORIZATION_FAILED if the session's client may not do this with the cluster."""
    ensure_allowed(session, operation, ResourceType.CLUSTER, CLUSTER_NAME, api)


def denied_names(
    session: Session,
    operation: Operation,
    resource: ResourceType,
    names: Iterable[str],
    api: ApiKey,
    *,
    log_denied: bool = True,
) -> frozenset[str]:
    """Return the names on which the session's client may not do this. Each name is decided, and audited, once."""
    access = session.access
    if access is None:
        return frozenset()
    return frozenset(
        name
        for name in dict.fromkeys(names)
        if not access.allows(operation, resource, name, api=api, log_denied=log_denied)
    )


def topic_operations(session: Session, topic: str) -> int:
    """Return the bit field of the operations that the session's client may do on a topic."""
    return TOPIC_OPERATIONS if session.access is None else session.access.operations(ResourceType.TOPIC, topic)


def group_operations(session: Session, group_id: str) -> int:
    """Return the bit field of the operations that the session's client may do on a group."""
    return GROUP_OPERATIONS if session.access is None else session.access.operations(ResourceType.GROUP, group_id)


def cluster_operations(session: Session, api: ApiKey) -> int:
    """Return the bit field of the operations that the session's client may do on the cluster.

    0 if it may not DESCRIBE the cluster, as in Kafka.
    """
    if session.access is None:
        return CLUSTER_OPERATIONS
    if not is_cluster_allowed(session, Operation.DESCRIBE, api):
        return 0
    return session.access.operations(ResourceType.CLUSTER, CLUSTER_NAME)
