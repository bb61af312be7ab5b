"""DescribeAcls (29), versions 1-3. Version 3 came with the resource type USER; its fields are those of version 2."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, MESSAGE, NO_THROTTLE, Array, Computed, Message, Struct, rows
from barnabas.protocol.kafka.security.acl_fields import ENTRY, FILTER, PATTERN, by_resource
from barnabas.protocol.messages.security.acls import AclFilter, DescribeAclsRequest, DescribeAclsResponse


def _request(**fields: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(AclFilter(**fields))


REQUEST = Message(2, _request, **FILTER)
RESPONSE = Message(
    2,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    resources=Computed(Array(Struct(**PATTERN, acls=rows(**ENTRY))), lambda response: by_resource(response.acls)),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeAclsRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal without ACLs."""
    return RESPONSE.write(version, DescribeAclsResponse([], code, message))
