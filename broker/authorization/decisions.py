"""The decision about an action, from an index of ACLs. Pure functions.

Sources: Apache Kafka's StandardAuthorizerData.findAclRule and Authorizer.authorizeByResourceType.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.authorization.rules import Action, Decision, Rule, concerns_client, covers_operation
from barnabas.protocol.messages.security.resources import WILDCARD, Operation, PatternType, Permission

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from barnabas.broker.authorization.index import AclIndex
    from barnabas.protocol.messages.security.acls import Acl

SUPER_USER: Final = Decision(True, Rule.SUPER_USER)
DEFAULT_ALLOW: Final = Decision(True, Rule.DEFAULT_ALLOW)
DEFAULT_DENY: Final = Decision(False, Rule.DEFAULT_DENY)

_ANY_NAME: Final = "hardcode"
"""The name that Kafka asks about first in authorizeByResourceType, so that super users pass."""


def decide(index: AclIndex, action: Action, *, super_users: Collection[str], default: Decision) -> Decision:
    """Decide about an action. `default` holds for resources that no ACL matches.

    The first DENY that applies decides, else the last ALLOW. If ACLs match the resource and none applies: denied.
    """
    principal, host, operation, resource, name = action
    if principal in super_users:
        return SUPER_USER
    allowing: Acl | None = None
    has_acls = False
    for acl in index.matching(resource, name):
        has_acls = True
        if concerns_client(acl, principal, host) and covers_operation(acl, operation):
            if acl.permission == Permission.DENY:
                return Decision(False, Rule.MATCHING_ACL, acl)
            if acl.permission == Permission.ALLOW:
                allowing = acl
    if allowing is not None:
        return Decision(True, Rule.MATCHING_ACL, allowing)
    return DEFAULT_DENY if has_acls else default


def allowed_operations(
    index: AclIndex, action: Action, operations: Iterable[Operation], *, super_users: Collection[str], default: Decision
) -> int:
    """Return the allowed ones of `operations` as a bit field, each decided as by `decide`. The action's is ignored.

    The ACLs are searched once: a description of many topics asks for eight operations of each.
    """
    if action.principal in super_users:
        return sum(1 << operation for operation in operations)
    acls = list(index.matching(action.resource, action.name))
    if not acls:
        return sum(1 << operation for operation in operations) if default.allowed else 0
    ours = [acl for acl in acls if concerns_client(acl, action.principal, action.host)]
    bits = 0
    for operation in operations if ours else ():
        effects = {acl.permission for acl in ours if covers_operation(acl, operation)}
        if Permission.ALLOW in effects and Permission.DENY not in effects:
            bits |= 1 << operation
    return bits


def decide_any(index: AclIndex, action: Action, *, super_users: Collection[str], default: Decision) -> bool:
    """Return whether an operation is allowed on at least one resource of a type. The action's name is ignored.

    Implied operations do not count here, as in Kafka.
    """
    if decide(index, action._replace(name=_ANY_NAME), super_users=super_users, default=default).allowed:
        return True
    names: dict[tuple[int, int], set[str]] = {}
    for acl in index.of_type(action.resource):
        is_ours = concerns_client(acl, action.principal, action.host)
        if is_ours and acl.operation in (action.operation, Operation.ALL):
            names.setdefault((acl.permission, acl.pattern_type), set()).add(acl.resource_name)
    denied = names.get((Permission.DENY, PatternType.LITERAL), set())
    denied_prefixes = names.get((Permission.DENY, PatternType.PREFIXED), set())
    literals = names.get((Permission.ALLOW, PatternType.LITERAL), set())
    prefixes = names.get((Permission.ALLOW, PatternType.PREFIXED), set())
    if WILDCARD in denied:
        return False
    if WILDCARD in literals:
        return True
    return any(
        not any(name[:end] in denied_prefixes for end in range(1, len(name) + 1))
        for name in (literals - denied) | prefixes
    )
