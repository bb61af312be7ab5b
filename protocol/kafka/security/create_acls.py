"""CreateAcls (30), versions 1-3. Version 3 came with the resource type USER; its fields are those of version 2."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, MESSAGE, NO_THROTTLE, Message, rows
from barnabas.protocol.kafka.security.acl_fields import ACL
from barnabas.protocol.messages.security.acls import Acl, AclResult, CreateAclsRequest, CreateAclsResponse

REQUEST = Message(2, CreateAclsRequest, acls=rows(Acl, **ACL))
RESPONSE = Message(2, throttle_ms=NO_THROTTLE, results=rows(error=INT16, message=MESSAGE))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: CreateAclsRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal at every ACL."""
    return RESPONSE.write(version, CreateAclsResponse([AclResult(code, message)] * len(request.acls)))
