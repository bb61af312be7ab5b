"""ACLs, and the messages DescribeAcls (29), CreateAcls (30) and DeleteAcls (31).

Version 3 of these APIs came with the resource type USER; its fields are those of version 2.
Codes are those of `resources`. A code that this program does not know is kept as a number: it comes from a newer Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, Self

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int8, Int32, Message, NullableString, String


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


class AclFilter(Struct):
    """A filter of ACLs. ANY and None match everything.

    The pattern type MATCH finds the ACLs that concern a resource of that name: literal, wildcard and prefixed ones.
    """

    resource_type: Int8 = ResourceType.ANY
    resource_name: NullableString = None
    pattern_type: Int8 = PatternType.ANY
    principal: NullableString = None
    host: NullableString = None
    operation: Int8 = Operation.ANY
    permission: Int8 = Permission.ANY

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


_NAMES: Final = Acl._fields


def _fields(value: Any) -> dict[str, Any]:
    """Return the seven fields that ACLs, their filters and their rows in messages have."""
    return {name: getattr(value, name) for name in _NAMES}


class DescribedAcl(Struct):
    """An ACL without its resource."""

    principal: String
    host: String
    operation: Int8
    permission: Int8


class DescribedResource(Struct):
    """A resource's pattern with its ACLs."""

    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    acls: Sequence[DescribedAcl]


class DescribeAclsResponse(Struct, flexible=2):
    """The selected ACLs by resource, in any order."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    resources: Sequence[DescribedResource] = ()

    @property
    def acls(self) -> list[Acl]:
        """The ACLs one by one."""
        return [
            Acl(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                pattern_type=each.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission=acl.permission,
            )
            for each in self.resources
            for acl in each.acls
        ]


class DescribeAclsRequest(Request[DescribeAclsResponse], api=ApiKey.DESCRIBE_ACLS, flexible=2):
    """Lists the ACLs that a filter selects."""

    resource_type: Int8
    resource_name: NullableString
    pattern_type: Int8
    principal: NullableString
    host: NullableString
    operation: Int8
    permission: Int8

    @classmethod
    def of(cls, selected: AclFilter) -> Self:
        """Return the request with a filter."""
        return cls(**_fields(selected))

    @property
    def filter(self) -> AclFilter:
        """The filter."""
        return AclFilter(**_fields(self))

    def refused(self, code: ErrorCode, message: str) -> DescribeAclsResponse:
        """The code and the message, without ACLs."""
        return DescribeAclsResponse(error=code, message=message)


class AclResult(Struct):
    """The result of one creation."""

    error: Error = ErrorCode.NONE
    message: Message = None


class CreateAclsResponse(Struct, flexible=2):
    """One result for each ACL, in the order of the request."""

    throttle_ms: Int32 = 0
    results: Sequence[AclResult]


class AclCreation(Struct):
    """An ACL to create."""

    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission: Int8


class CreateAclsRequest(Request[CreateAclsResponse], api=ApiKey.CREATE_ACLS, flexible=2):
    """Creates ACLs."""

    creations: Sequence[AclCreation]

    @classmethod
    def of(cls, acls: Iterable[Acl]) -> Self:
        """Return the request that creates these ACLs."""
        return cls(creations=[AclCreation(**_fields(acl)) for acl in acls])

    @property
    def acls(self) -> list[Acl]:
        """The ACLs to create."""
        return [Acl(**_fields(each)) for each in self.creations]

    def refused(self, code: ErrorCode, message: str) -> CreateAclsResponse:
        """The refusal at every ACL."""
        return CreateAclsResponse(results=[AclResult(error=code, message=message)] * len(self.creations))


class DeletedAcl(Struct):
    """A deleted ACL. `error` is never set: the deletion of a filter's ACLs succeeds or fails as a whole."""

    error: Error = ErrorCode.NONE
    message: Message = None
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission: Int8


class AclFilterResult(Struct):
    """The result of one filter: the deleted ACLs. An ACL that several filters select is in each of their results."""

    error: Error = ErrorCode.NONE
    message: Message = None
    matching: Sequence[DeletedAcl] = ()

    @classmethod
    def of(cls, deleted: Iterable[Acl]) -> Self:
        """Return the result with deleted ACLs."""
        return cls(matching=[DeletedAcl(**_fields(acl)) for acl in deleted])

    @property
    def deleted(self) -> list[Acl]:
        """The deleted ACLs."""
        return [Acl(**_fields(each)) for each in self.matching]


class DeleteAclsResponse(Struct, flexible=2):
    """One result for each filter, in the order of the request."""

    throttle_ms: Int32 = 0
    results: Sequence[AclFilterResult]


class DeleteAclsRequest(Request[DeleteAclsResponse], api=ApiKey.DELETE_ACLS, flexible=2):
    """Deletes the ACLs that any of the filters selects."""

    filters: Sequence[AclFilter]

    def refused(self, code: ErrorCode, message: str) -> DeleteAclsResponse:
        """The refusal at every filter."""
        return DeleteAclsResponse(results=[AclFilterResult(error=code, message=message)] * len(self.filters))
