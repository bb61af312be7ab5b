"""AlterUserScramCredentials (51), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BYTES, INT8, INT16, INT32, MESSAGE, NO_THROTTLE, STRING, Message, rows
from barnabas.protocol.messages.security.scram_credentials import (
    AlteredScramUser,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramDeletion,
    ScramUpsertion,
)

REQUEST = Message(
    0,
    AlterUserScramCredentialsRequest,
    deletions=rows(ScramDeletion, name=STRING, mechanism=INT8),
    upsertions=rows(ScramUpsertion, name=STRING, mechanism=INT8, iterations=INT32, salt=BYTES, salted_password=BYTES),
)
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, results=rows(user=STRING, error=INT16, message=MESSAGE))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal at every user."""
    names = dict.fromkeys(change.name for change in request.changes())
    results = [AlteredScramUser(name, code, message) for name in names]
    return RESPONSE.write(version, AlterUserScramCredentialsResponse(results))
