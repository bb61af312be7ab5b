"""A command's requests in Kafka's protocol, for the APIs that only it has: ACLs, SCRAM users, quotas.

They are answered by Barnabas and by Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.clients.network.cluster import Cluster
from barnabas.commands.session import run_limited
from barnabas.config.tables.security_properties import STANDARD_AUTHORIZER
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.clients.config import AdminConfig
    from barnabas.protocol.wire.structures import Request


def ask(bootstrap: str, timeout_s: float, *requests: Request[Any]) -> list[Any]:
    """Send requests, one after the other; return their answers.

    Raises TimeoutError, naming the broker, after `timeout_s`, and the client's errors.
    """
    return run_limited(bootstrap, timeout_s, lambda config: _answers(config, requests))


def ensure_answered(error: ErrorCode, message: str | None) -> None:
    """Raise BrokerError for an answer that refuses a request or one of its items."""
    if error is not ErrorCode.NONE:
        sentence = message or error.name
        if error is ErrorCode.SECURITY_DISABLED:
            sentence = f"{sentence.removesuffix('.')}: set authorizer.class.name={STANDARD_AUTHORIZER}"
        raise BrokerError(error, sentence)


async def _answers(config: AdminConfig, requests: Sequence[Request[Any]]) -> list[Any]:
    cluster = Cluster(config)
    try:
        return [await cluster.ask_any(request) for request in requests]
    finally:
        await cluster.close()
