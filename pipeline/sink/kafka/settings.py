"""Settings of librdkafka's producer, from those of ours that the sink's options are parsed into."""

from __future__ import annotations

from typing import Any, Final

from barnabas.clients.config import ProducerConfig

_LINGER_MS: Final = 5
"""librdkafka's default. Our producer's, 0, would make it send a request for every few records."""


def librdkafka_settings(config: ProducerConfig, transactional_id: str, timeout_ms: int) -> dict[str, Any]:
    """Return the settings of one attempt's producer, whose transactions the broker aborts after `timeout_ms`."""
    return {
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
