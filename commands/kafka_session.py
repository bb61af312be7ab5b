"""A command's requests in Kafka's protocol, for the APIs that only it has: ACLs, SCRAM users, quotas.

They are answered by Barnabas and by Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.clients.addresses import parse_bootstrap
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError
from barnabas.clients.kafka.connection import KafkaConnection
from barnabas.commands.session import run_limited
from barnabas.config.tables.security_properties import STANDARD_AUTHORIZER
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.clients.config import AdminConfig
    from barnabas.commands.target import Call

_PURPOSE = "this command needs; Apache Kafka serves it since 3.3"


def ask(bootstrap: str, timeout_s: float, *calls: Call) -> list[Any]:
    """Send requests, one after the other; return their answers.

    Raises TimeoutError, naming the broker, after `timeout_s`, and the client's errors.
    """
    return run_limited(bootstrap, timeout_s, lambda config: _answers(config, calls))


def ensure_answered(error: ErrorCode, message: str | None) -> None:
    """Raise BrokerError for an answer that refuses a request or one of its items."""
    if error is not ErrorCode.NONE:
        sentence = message or error.name
        if error is ErrorCode.SECURITY_DISABLED:
            sentence = f"{sentence.removesuffix('.')}: set authorizer.class.name={STANDARD_AUTHORIZER}"
        raise BrokerError(error, sentence)


async def _answers(config: AdminConfig, calls: Sequence[Call]) -> list[Any]:
    connection = await _connect(config, {call.api.key: call.api.lowest for call in calls})
    try:
        return [await connection.request(call.api, call.request) for call in calls]
    finally:
        connection.close()


async def _connect(config: AdminConfig, needed: dict[Any, int]) -> KafkaConnection:
    """Connect to the first broker of the bootstrap list that answers."""
    last: Exception | None = None
    for address in parse_bootstrap(config.bootstrap):
        try:
            return await KafkaConnection.open(address, config, needed, _PURPOSE)
        except (BrokerConnectionError, BrokerTimeoutError) as error:
            last = error
    assert last is not None, "a bootstrap list is never empty"
    raise last
