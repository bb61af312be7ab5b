"""Fields of ACLs and of their filters, which the messages about ACLs share."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from barnabas.protocol.kafka.schema import INT8, NULLABLE_STRING, STRING, Type
from barnabas.protocol.messages.security.acls import Acl

ACL: Final[dict[str, Type]] = {
    "resource_type": INT8,
    "resource_name": STRING,
    "pattern_type": INT8,
    "principal": STRING,
    "host": STRING,
    "operation": INT8,
    "permission": INT8,
}
FILTER: Final[dict[str, Type]] = ACL | dict.fromkeys(("resource_name", "principal", "host"), NULLABLE_STRING)
PATTERN: Final = {name: ACL[name] for name in ("resource_type", "resource_name", "pattern_type")}
ENTRY: Final = {name: kind for name, kind in ACL.items() if name not in PATTERN}


class AclsOfResource(NamedTuple):
    """A resource's pattern with its ACLs, as DescribeAcls answers them."""

    resource_type: int
    resource_name: str
    pattern_type: int
    acls: list[Acl]


def by_resource(acls: Iterable[Acl]) -> list[AclsOfResource]:
    """Group ACLs by resource."""
    groups = groupby(sorted(acls), key=itemgetter(0, 1, 2))
    return [AclsOfResource(kind, name, pattern, list(group)) for (kind, name, pattern), group in groups]


def of_resource(resource_type: int, resource_name: str, pattern_type: int, acls: list[dict[str, Any]]) -> list[Acl]:
    """Return the ACLs of one resource of an answer."""
    return [Acl(resource_type, resource_name, pattern_type, **entry) for entry in acls]
