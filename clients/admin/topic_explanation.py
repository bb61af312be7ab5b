"""When retention deletes what a topic has, and where its settings come from."""

from __future__ import annotations

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicRequest, ExplainTopicResponse


async def explain_topic(cluster: Cluster, config: ClientConfig, request: ExplainTopicRequest) -> ExplainTopicResponse:
    """Send the request. Raises RefusedError."""
    response: ExplainTopicResponse = await ask_any(cluster, config, request)
    if response.error is not ErrorCode.NONE:
        raise RefusedError(response.error, response.message or reason_of(response.error))
    return response
