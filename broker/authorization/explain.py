"""Why an action is allowed or denied: the deciding rule, and every ACL of the resource with what kept it from deciding.

The decision is that of `decisions.decide`; this module only reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.authorization.decisions import decide
from barnabas.broker.authorization.rules import Action, Decision, Rule, covers_operation
from barnabas.protocol.messages.security.resources import WILDCARD, WILDCARD_PRINCIPAL, Operation, Permission

if TYPE_CHECKING:
    from collections.abc import Collection

    from barnabas.broker.authorization.index import AclIndex
    from barnabas.protocol.messages.security.acls import Acl


class Considered(NamedTuple):
    """An ACL whose pattern matches the resource, and its effect on the decision."""

    acl: Acl
    effect: str


class Explanation(NamedTuple):
    """A decision, its reason in a sentence, and the ACLs of the resource in the order in which they are searched."""

    decision: Decision
    reason: str
    considered: list[Considered]


def explain(index: AclIndex, action: Action, *, super_users: Collection[str], default: Decision) -> Explanation:
    """Decide about an action, and report why."""
    decision = decide(index, action, super_users=super_users, default=default)
    acls = list(index.matching(action.resource, action.name))
    considered = [Considered(acl, _effect(acl, action, decision)) for acl in acls]
    return Explanation(decision, _reason(action, decision, has_acls=bool(acls)), considered)


def _effect(acl: Acl, action: Action, decision: Decision) -> str:
    if decision.rule is Rule.SUPER_USER:
        return "not looked at: a super user"
    if acl == decision.acl:
        return "decides"
    if acl.principal not in (action.principal, WILDCARD_PRINCIPAL):
        return "about another principal"
    if acl.host not in (action.host, WILDCARD):
        return "about another host"
    if not covers_operation(acl, action.operation):
        return "about another operation"
    if acl.permission == Permission.DENY:
        return "denies too"
    return "allows too" if decision.allowed else "allows, but a denial wins"


def _reason(action: Action, decision: Decision, *, has_acls: bool) -> str:
    resource = f"{action.resource.name} {action.name}"
    if decision.rule is Rule.SUPER_USER:
        return f"{action.principal} is in super.users"
    if decision.acl is not None:
        if not decision.allowed:
            return "an ACL denies it, and a denial wins"
        granted = decision.acl.operation
        if granted not in (action.operation, Operation.ALL):
            return f"an ACL allows {Operation(granted).name}, which implies {action.operation.name}"
        return "an ACL allows it, and none denies it"
    if decision.rule is Rule.DEFAULT_ALLOW:
        return f"no ACL matches {resource}, and allow.everyone.if.no.acl.found is true"
    if has_acls:
        return f"ACLs match {resource}, but none of them allows this"
    return f"no ACL matches {resource}, and allow.everyone.if.no.acl.found is false"
