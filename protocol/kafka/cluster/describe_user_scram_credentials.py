"""DescribeUserScramCredentials (50), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT8,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    Array,
    Message,
    Struct,
    rows,
)
from barnabas.protocol.messages.cluster.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramUserResult,
)

REQUEST = Message(
    0,
    lambda users: DescribeUserScramCredentialsRequest(users or []),
    users=Array(Struct(lambda name: name, name=STRING), nullable_from=0),
)
_USER = Struct(user=STRING, error=INT16, message=MESSAGE, credentials=rows(mechanism=INT8, iterations=INT32))
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, error=INT16, message=MESSAGE, results=Array(_USER))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeUserScramCredentialsRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal of the whole request and, as in Kafka without its name, of each user."""
    results = [ScramUserResult("", error=code, message=message) for _ in request.users or ()]
    return RESPONSE.write(version, DescribeUserScramCredentialsResponse(results, code, message))
