"""producer.id.expiration.ms, which may change while the broker runs: one value that all logs of a broker share.

Source: Kafka ProducerStateManagerConfig.
"""

from __future__ import annotations

DEFAULT_PRODUCER_ID_EXPIRATION_MS = 86_400_000


class ProducerExpiration:
    """After how many ms without a batch a producer is forgotten. Replaced by any thread, read without a lock."""

    __slots__ = ("ms",)

    def __init__(self, ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS) -> None:
        self.ms = ms
