"""Users, ACLs and quotas of a cluster, asked by Kafka's protocol."""

from __future__ import annotations

from barnabas.clients.errors import RefusedError, reason_of
from barnabas.protocol.errors import ErrorCode


def ensure_answered(error: ErrorCode, message: str | None) -> None:
    """Raise RefusedError for an answer, or an item of one, that is a refusal."""
    if error is ErrorCode.NONE:
        return
    sentence = (message or reason_of(error)).removesuffix(".")
    if error is ErrorCode.SECURITY_DISABLED:
        sentence += ": set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    raise RefusedError(error, sentence)
