"""Quota of one request that creates or deletes partitions (KIP-599).

A strict quota refuses a topic while the bucket is negative. Requests of versions whose clients do not know the error
are carried out, and throttled afterwards. Source: Kafka's StrictControllerMutationQuota and
PermissiveControllerMutationQuota.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.topic_quota import TakeQuota, take_freely
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.quotas.bucket import MutationBucket

EXCEEDED: Final = "The throttling quota has been exceeded."


class MutationQuota:
    """Counts the partitions of one request. `take` may be called on the metadata writer's thread."""

    __slots__ = ("_bucket", "_clock_ms", "_is_strict", "_measured_ms", "_throttle_ms")

    def __init__(self, bucket: MutationBucket, clock_ms: Callable[[], int], *, is_strict: bool) -> None:
        self._bucket = bucket
        self._clock_ms = clock_ms
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._measured_ms = 0

    def take(self, partitions: int) -> None:
        """Count the partitions of one topic. Raises BrokerError THROTTLING_QUOTA_EXCEEDED if the quota is strict."""
        bucket, now_ms = self._bucket, self._clock_ms()
        with bucket.lock:
            if not self._is_strict:
                bucket.tokens.record(partitions, bucket.bound, now_ms)
            throttle_ms = bucket.tokens.throttle_ms(bucket.bound, now_ms)
            if self._is_strict and throttle_ms == 0:
                bucket.tokens.record(partitions, bucket.bound, now_ms)
        if throttle_ms > 0:
            self._throttle_ms, self._measured_ms = throttle_ms, now_ms
            if self._is_strict:
                raise BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, EXCEEDED)

    def throttle_ms(self) -> int:
        """Return the time that is left of the last exceeded quota."""
        if not self._throttle_ms:
            return 0
        return max(0, self._throttle_ms - (self._clock_ms() - self._measured_ms))


def mutation_quota(session: Session, *, is_strict: bool) -> TakeQuota:
    """Return the function that counts the partitions of the session's request, topic by topic."""
    if session.quota is None:
        return take_freely
    quota = session.quota.mutation(is_strict=is_strict)
    return take_freely if quota is None else quota.take
