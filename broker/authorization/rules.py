"""Rules of one ACL: whether it applies to an action, and what its operation implies.

Source: Apache Kafka's StandardAuthorizerData.findResult.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.messages.security.resources import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Operation,
    Permission,
    ResourceType,
)

if TYPE_CHECKING:
    from barnabas.protocol.messages.security.acls import Acl

IMPLIED_BY: Final[dict[int, frozenset[int]]] = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""Operations whose ALLOW grants the key as well. A DENY implies nothing."""


class Rule(Enum):
    """What decided, with the names that Kafka's audit log uses."""

    SUPER_USER = "SuperUser"
    MATCHING_ACL = "MatchingAcl"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"


class Decision(NamedTuple):
    """Whether an action is allowed, and by which rule; `acl` is the deciding one of MATCHING_ACL."""

    allowed: bool
    rule: Rule
    acl: Acl | None = None


class Action(NamedTuple):
    """An operation that a principal (`User:alice`) at a host (an IP address) wants to do on a resource."""

    principal: str
    host: str
    operation: Operation
    resource: ResourceType
    name: str


def concerns_client(acl: Acl, principal: str, host: str) -> bool:
    """Return whether an ACL is about this principal at this host."""
    return acl.principal in (principal, WILDCARD_PRINCIPAL) and acl.host in (host, WILDCARD)


def covers_operation(acl: Acl, operation: Operation) -> bool:
    """Return whether an ACL is about this operation, by itself or, for an ALLOW, by implication."""
    granted = acl.operation
    if granted in (operation, Operation.ALL):
        return True
    return acl.permission == Permission.ALLOW and granted in IMPLIED_BY.get(operation, ())
