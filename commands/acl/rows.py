"""ACLs as rows of a table and as JSON, with Kafka's names of the codes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from barnabas.protocol.messages.security.acls import Acl
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType

COLUMNS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def acl_row(acl: Acl) -> list[str]:
    """Return the cells of an ACL, in the order of COLUMNS. A code of a newer Kafka is shown as its number."""
    return [
        _name(ResourceType, acl.resource_type),
        acl.resource_name,
        _name(PatternType, acl.pattern_type),
        acl.principal,
        acl.host,
        _name(Operation, acl.operation),
        _name(Permission, acl.permission),
    ]


def acl_json(acl: Acl) -> dict[str, Any]:
    """Return an ACL for programs."""
    return dict(zip(COLUMNS, acl_row(acl), strict=True))


def acl_sentence(acl: Acl) -> str:
    """Return an ACL in words: `User:alice from * may READ the LITERAL TOPIC orders`."""
    may = "may not" if acl.permission == Permission.DENY else "may"
    kind, pattern = _name(ResourceType, acl.resource_type), _name(PatternType, acl.pattern_type)
    operation = _name(Operation, acl.operation)
    return f"{acl.principal} from host {acl.host} {may} {operation} {pattern} {kind} {acl.resource_name}"


def _name(kind: type[IntEnum], code: int) -> str:
    try:
        return kind(code).name
    except ValueError:
        return str(code)
