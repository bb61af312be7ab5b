"""ACLs, and the requests DescribeAcls (29), CreateAcls (30) and DeleteAcls (31).

Codes are those of `resources`. A code that this program does not know is kept as a number: it comes from a newer Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.resources import WILDCARD, Operation, PatternType, Permission, ResourceType


class Acl(NamedTuple):
    """One access control entry; codes as in `resources`."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        """In words: `User:alice from host * may READ TOPIC orders`. A newer Kafka's code is its number."""
        is_denial = self.permission == Permission.DENY
        if self.operation == Operation.ALL:
            may = "may not do anything with" if is_denial else "may do everything with"
        else:
            may = f"{'may not' if is_denial else 'may'} {code_name(Operation, self.operation)}"
        return f"{self.principal} from host {self.host} {may} {self._resources()}"

    def _resources(self) -> str:
        kind = code_name(ResourceType, self.resource_type)
        if self.pattern_type == PatternType.PREFIXED:
            return f"every {kind} that begins with {self.resource_name}"
        if self.pattern_type != PatternType.LITERAL:
            return f"{code_name(PatternType, self.pattern_type)} {kind} {self.resource_name}"
        return f"every {kind}" if self.resource_name == WILDCARD else f"{kind} {self.resource_name}"


def code_name(kind: type[IntEnum], code: int) -> str:
    """Return the name of a code, or its number if it is unknown."""
    try:
        return kind(code).name
    except ValueError:
        return str(code)


class AclFilter(NamedTuple):
    """A filter of ACLs. ANY and None match everything.

    The pattern type MATCH finds the ACLs that concern a resource of that name: literal, wildcard and prefixed ones.
    """

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Return whether the filter selects the ACL, as Kafka's AclBindingFilter does."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        name = self.resource_name
        if name is None or name == acl.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name == WILDCARD


@dataclass(slots=True)
class DescribeAclsRequest:
    """Lists the ACLs that a filter selects."""

    filter: AclFilter


@dataclass(slots=True)
class DescribeAclsResponse:
    """The selected ACLs, in any order."""

    acls: list[Acl] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class CreateAclsRequest:
    """Creates ACLs."""

    acls: list[Acl]


@dataclass(slots=True)
class AclResult:
    """The result of one creation."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class CreateAclsResponse:
    """One result for each ACL, in the order of the request."""

    results: list[AclResult]


@dataclass(slots=True)
class DeleteAclsRequest:
    """Deletes the ACLs that any of the filters selects."""

    filters: list[AclFilter]


@dataclass(slots=True)
class AclFilterResult:
    """The result of one filter: the deleted ACLs. An ACL that several filters select is in each of their results."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    deleted: list[Acl] = field(default_factory=list)


@dataclass(slots=True)
class DeleteAclsResponse:
    """One result for each filter, in the order of the request."""

    results: list[AclFilterResult]
