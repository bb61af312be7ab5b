"""Estimate of how well one topic's batches compress, so that batches can be filled to batch_size of compressed bytes.

The estimate follows a worse ratio immediately and better ones step by step: a batch that comes out too large may cost a
split, one that comes out too small costs little. After Kafka's CompressionRatioEstimator, whose steps are smaller.
"""

from __future__ import annotations

IMPROVING_SHARE = 0.1
"""Share of the distance to a better ratio that the estimate moves per batch."""

DETERIORATING_STEP = 0.05
LOWEST = 0.02
"""No batch is stretched beyond 50 times batch_size, however well it compresses."""


class CompressionRatio:
    """`estimate` is compressed size / size, 1.0 before the first batch."""

    __slots__ = ("estimate",)

    def __init__(self) -> None:
        self.estimate = 1.0

    def observe(self, compressed_bytes: int, uncompressed_bytes: int) -> None:
        """Adjust the estimate by one batch."""
        observed = compressed_bytes / uncompressed_bytes
        if observed > self.estimate:
            self.estimate = min(1.0, max(self.estimate + DETERIORATING_STEP, observed))
        else:
            self.estimate = max(LOWEST, self.estimate - (self.estimate - observed) * IMPROVING_SHARE)
