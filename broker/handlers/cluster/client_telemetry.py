"""GetTelemetrySubscriptions (key 71) and PushTelemetry (key 72), version 0: metrics of clients (KIP-714).

broker/client_metrics/manager.py has the checks and their codes. ApiVersions lists both with client.metrics.enable=true
only, as Kafka lists them only with a metrics reporter that takes them, and clients ask for what is listed. As in Kafka,
a client that asks nevertheless is answered, and there is no check of ACLs. Metrics are decoded on a thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.client_metrics.manager import ClientMetrics, decoded
from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.messages.cluster.client_telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class GetTelemetrySubscriptionsHandler:
    """Serves GetTelemetrySubscriptions."""

    def __init__(self, client_metrics: ClientMetrics) -> None:
        self._client_metrics = client_metrics

    def __call__(
        self, session: Session, request: GetTelemetrySubscriptionsRequest
    ) -> GetTelemetrySubscriptionsResponse:
        """Answer one GetTelemetrySubscriptions request as the module docstring specifies."""
        return self._client_metrics.subscription_of(session, request.client_instance_id)


class PushTelemetryHandler:
    """Serves PushTelemetry."""

    def __init__(self, client_metrics: ClientMetrics, blocking_io: Executor, probe: ApiProbe) -> None:
        self._client_metrics = client_metrics
        self._blocking_io = blocking_io
        self._probe = probe

    async def __call__(self, session: Session, request: PushTelemetryRequest) -> PushTelemetryResponse:
        """Answer one PushTelemetry request as the module docstring specifies."""
        try:
            self._client_metrics.admit(session, request)
            try:
                points = await asyncio.get_running_loop().run_in_executor(self._blocking_io, decoded, request)
            except DecodeError as error:
                raise self._client_metrics.fail(request.client_instance_id, error) from error
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return PushTelemetryResponse(error=error.code)
        self._client_metrics.keep(session, request, points)
        return PushTelemetryResponse()
