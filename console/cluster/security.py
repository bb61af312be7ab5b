"""Users, ACLs and quotas of a cluster, asked by Kafka's protocol."""

from __future__ import annotations

from typing import Any

from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.kafka.cluster import KafkaCluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.wire.structures import Struct


async def ask(kafka: KafkaCluster, api: ClientApi, request: Struct) -> Any:
    """Send a request to any broker and return its answer, refused or not. Raises ClientError."""
    connection = await kafka.any_connection()
    return await connection.request(api, request)


def ensure_answered(error: ErrorCode, message: str | None) -> None:
    """Raise RefusedError for an answer, or an item of one, that is a refusal."""
    if error is ErrorCode.NONE:
        return
    sentence = (message or reason_of(error)).removesuffix(".")
    if error is ErrorCode.SECURITY_DISABLED:
        sentence += ": set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    raise RefusedError(error, sentence)
