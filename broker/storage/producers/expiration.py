"""The value of producer.id.expiration.ms, which may change at runtime and is shared by all logs of a broker.

Source: Kafka ProducerStateManagerConfig.
"""

from __future__ import annotations

DEFAULT_PRODUCER_ID_EXPIRATION_MS = 86_400_000


class ProducerExpiration:
    """Milliseconds without a batch after which a producer expires. Set by any thread, read without a lock."""

    __slots__ = ("ms",)

    def __init__(self, ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS) -> None:
        self.ms = ms
