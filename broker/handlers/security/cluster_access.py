"""The check of a cluster operation that a whole request needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.resources import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.api_key import ApiKey


def require_on_cluster(session: Session, operation: Operation, api: ApiKey) -> None:
    """Raise BrokerError CLUSTER_AUTHORIZATION_FAILED unless the session's principal may do it."""
    access = session.access
    if access is not None and not access.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, api=api):
        message = f"{session.principal} has no ACL for {operation.name} on the cluster"
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
