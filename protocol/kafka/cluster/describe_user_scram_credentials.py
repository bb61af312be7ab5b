"""DescribeUserScramCredentials (50), version 0."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.cluster.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_API: Final = "describe_user_scram_credentials"


def decode_request(version: int, body: memoryview) -> DescribeUserScramCredentialsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return DescribeUserScramCredentialsRequest([each.name for each in request.users or ()])


def encode_response(version: int, response: DescribeUserScramCredentialsResponse) -> bytes:
    """A row for each user."""
    schema = entities.response_schema(_API, version)
    results = tuple(
        schema.DescribeUserScramCredentialsResult(
            user=each.user,
            error_code=each.error,
            error_message=entities.sentence(each.message),
            credential_infos=tuple(
                schema.CredentialInfo(mechanism=info.mechanism, iterations=info.iterations) for info in each.credentials
            ),
        )
        for each in response.results
    )
    return _encode(version, ErrorCode.NONE, None, results)


def encode_error(version: int, request: DescribeUserScramCredentialsRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return _encode(version, code, entities.sentence(message), ())


def _encode(version: int, code: ErrorCode, message: str | None, results: tuple[Any, ...]) -> bytes:
    schema = entities.response_schema(_API, version)
    return entities.write(
        schema.DescribeUserScramCredentialsResponse(
            throttle_time=entities.NO_THROTTLE, error_code=code, error_message=message, results=results
        )
    )
