"""ACLs as rows of a table and as JSON, with Kafka's names of the codes."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.messages.security.acls import Acl, code_name
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType

COLUMNS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def acl_row(acl: Acl) -> list[str]:
    """Return the cells of an ACL, in the order of COLUMNS. A code of a newer Kafka is shown as its number."""
    return [
        code_name(ResourceType, acl.resource_type),
        acl.resource_name,
        code_name(PatternType, acl.pattern_type),
        acl.principal,
        acl.host,
        code_name(Operation, acl.operation),
        code_name(Permission, acl.permission),
    ]


def acl_json(acl: Acl) -> dict[str, Any]:
    """Return an ACL for programs."""
    return dict(zip(COLUMNS, acl_row(acl), strict=True))
