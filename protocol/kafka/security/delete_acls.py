"""DeleteAcls (31), versions 1-3. Version 3 came with the resource type USER; its fields are those of version 2."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, MESSAGE, NO_THROTTLE, Array, Constant, Message, Struct, rows
from barnabas.protocol.kafka.security.acl_fields import ACL, FILTER
from barnabas.protocol.messages.security.acls import AclFilter, AclFilterResult, DeleteAclsRequest, DeleteAclsResponse

_NO_ERROR: Final = {"error": Constant(INT16, 0), "message": Constant(MESSAGE, None)}

REQUEST = Message(2, DeleteAclsRequest, filters=rows(AclFilter, **FILTER))
RESPONSE = Message(
    2,
    throttle_ms=NO_THROTTLE,
    results=rows(error=INT16, message=MESSAGE, deleted=Array(Struct(**_NO_ERROR, **ACL))),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DeleteAclsRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal at every filter."""
    return RESPONSE.write(version, DeleteAclsResponse([AclFilterResult(code, message)] * len(request.filters)))
