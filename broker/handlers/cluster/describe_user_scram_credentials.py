"""DescribeUserScramCredentials (key 50): mechanisms and iterations of SCRAM users. Salts and keys are never answered.

CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE the cluster. Errors per user: RESOURCE_NOT_FOUND for an
unknown one, DUPLICATE_RESOURCE for one that is listed twice. Source: Kafka ScramImage.describe.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.security.scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialInfo,
    ScramUserResult,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session


class DescribeUserScramCredentialsHandler:
    """Serves DescribeUserScramCredentials."""

    def __init__(self, store: MetadataView) -> None:
        self._store = store

    def __call__(
        self, session: Session, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse | Coroutine[Any, Any, DescribeUserScramCredentialsResponse]:
        """Answer one DescribeUserScramCredentials request as the module docstring specifies; of many users in turns."""
        return in_turns(self._describe(session, request))

    async def _describe(
        self, session: Session, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        turns = Turns()
        ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
        known: dict[str, list[ScramCredentialInfo]] = {}
        for (user, mechanism), credential in sorted(self._store.image.security.scram.items()):
            known.setdefault(user, []).append(
                ScramCredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            )
        asked = Counter(request.names or list(known))
        results = []
        for user, times in asked.items():
            if turns.is_over:
                await turns.next()
            results.append(_result(user, times, known.get(user)))
        return DescribeUserScramCredentialsResponse(results=results)


def _result(user: str, times: int, credentials: list[ScramCredentialInfo] | None) -> ScramUserResult:
    if times > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return ScramUserResult(user=user, error=ErrorCode.DUPLICATE_RESOURCE, message=message)
    if credentials is None:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return ScramUserResult(user=user, error=ErrorCode.RESOURCE_NOT_FOUND, message=message)
    return ScramUserResult(user=user, credentials=credentials)
