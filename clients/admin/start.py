"""What a broker's last start did."""

from __future__ import annotations

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.explain_start import ExplainStartRequest, ExplainStartResponse


async def explain_start(
    cluster: Cluster, config: ClientConfig, *, client_metrics: bool = False
) -> ExplainStartResponse:
    """Ask for the last start. Raises RefusedError."""
    request = ExplainStartRequest(client_metrics=client_metrics)
    response: ExplainStartResponse = await ask_any(cluster, config, request)
    if response.error is not ErrorCode.NONE:
        raise RefusedError(response.error, response.message or reason_of(response.error))
    return response
