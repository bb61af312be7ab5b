"""Settings of librdkafka's producer, from those of ours that the sink's options are parsed into."""

from __future__ import annotations

from typing import Any, Final

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClientConfigError
from barnabas.clients.security.pem import load_pem
from barnabas.clients.security.settings import OAuthClient, SecuritySettings

_LINGER_MS: Final = 5
"""librdkafka's default. Our producer's, 0, would make it send a request for every few records."""


def librdkafka_settings(config: ProducerConfig, transactional_id: str, timeout_ms: int) -> dict[str, Any]:
    """Return the settings of one attempt's producer, whose transactions the broker aborts after `timeout_ms`.

    Reads the files of key and trust stores. Raises ClientConfigError.
    """
    return {
        **_security(config.security),
        "bootstrap.servers": config.bootstrap,
        "client.id": config.client_id,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        "acks": "all",
        "partitioner": "murmur2_random",  # keys go to the partitions that Java's producer chooses
        "compression.type": config.compression,
        "batch.size": config.batch_size,
        "linger.ms": config.linger_ms or _LINGER_MS,
        "queue.buffering.max.kbytes": max(1, config.buffer_memory // 1024),
        "message.max.bytes": max(1000, config.max_request_bytes),
        # librdkafka refuses a message timeout above the transaction's: the record could arrive after its transaction.
        "message.timeout.ms": min(config.delivery_timeout_ms, timeout_ms),
        "request.timeout.ms": config.request_timeout_ms,
        "retry.backoff.ms": max(1, config.retry_backoff_ms),
        "retry.backoff.max.ms": max(1, config.retry_backoff_max_ms),
        "metadata.max.age.ms": config.metadata_max_age_ms,
    }


def _security(settings: SecuritySettings) -> dict[str, Any]:
    """Return librdkafka's settings. It gets certificates and keys as PEM, whatever kind of file they are in."""
    found: dict[str, Any] = {"security.protocol": settings.protocol}
    login = settings.login
    if isinstance(login, OAuthClient):
        raise ClientConfigError("sasl.mechanism=OAUTHBEARER is not supported with protocol=kafka; use SCRAM or TLS")
    if login is not None:
        found |= {
            "sasl.mechanism": settings.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password.reveal(),
        }
        if login.is_token:
            raise ClientConfigError("delegation tokens are not supported with protocol=kafka: librdkafka has none")
    if settings.tls is not None:
        material = load_pem(settings.tls)
        texts = {
            "ssl.ca.pem": material.authorities,
            "ssl.key.pem": material.key,
            "ssl.certificate.pem": material.chain,
            "ssl.endpoint.identification.algorithm": "https" if settings.tls.verify_host_name else "none",
        }
        found |= {name: text for name, text in texts.items() if text is not None}
    return found
