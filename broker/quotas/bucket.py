"""Buckets: what one quota has counted for the clients that share it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from barnabas.broker.quotas.entities import Sharing
from barnabas.broker.quotas.rate import Rate, WindowSizes
from barnabas.broker.quotas.token_bucket import TokenBucket

BUCKETS_MAX = 10_000
"""Buckets of one kind that no connection uses: a client may send each request with another client id."""


class Bucket(Protocol):
    """What the manager needs of a bucket."""

    bound: float
    users: int

    def is_idle(self, now_ms: int) -> bool:
        """Return whether a new bucket would be equal."""
        ...


class RateBucket:
    """A rate and its bound. `users` is the number of connections that count into it."""

    __slots__ = ("_bound", "rate", "tally", "users")

    def __init__(self, windows: WindowSizes) -> None:
        self.users = 0
        self.rate = Rate(windows)
        self.tally = self.rate.tally
        self.bound = 0.0

    @property
    def bound(self) -> float:
        """The rate that is not throttled."""
        return self._bound

    @bound.setter
    def bound(self, bound: float) -> None:
        self._bound = bound
        self.tally.allowed = bound * self.rate.least_seconds

    def record(self, value: float, now_ms: int) -> int:
        """Count a value; return the throttle time in ms."""
        return self.rate.record_and_throttle_ms(value, self.bound, now_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether a new bucket would be equal."""
        return self.rate.is_idle(now_ms)


class MutationBucket:
    """Tokens and their rate. Used by the event loop and by the metadata writer's thread: hold `lock`."""

    __slots__ = ("bound", "lock", "tokens", "users")

    def __init__(self, windows: WindowSizes) -> None:
        self.bound = 0.0
        self.users = 0
        self.tokens = TokenBucket(windows)
        self.lock = threading.Lock()

    def is_idle(self, now_ms: int) -> bool:
        """Return whether a new bucket would be equal."""
        with self.lock:
            return self.tokens.is_full(self.bound, now_ms)


B = TypeVar("B", bound=Bucket)


class Buckets(Generic[B]):
    """The buckets of one kind, by the clients that share them.

    A bucket stays after its last connection, so that a client cannot renew its quota by connecting again. Buckets that
    are idle or too many are forgotten when others are added.
    """

    def __init__(self, create: Callable[[WindowSizes], B], windows: WindowSizes) -> None:
        self._create = create
        self._windows = windows
        self._buckets: dict[Sharing, B] = {}
        self._sweep_at = BUCKETS_MAX

    def __len__(self) -> int:
        return len(self._buckets)

    def use(self, sharing: Sharing, bound: float, now_ms: int) -> B:
        """Return the bucket of these clients, with the bound in force, and one user more."""
        bucket = self.get(sharing, bound, now_ms)
        bucket.users += 1
        return bucket

    def get(self, sharing: Sharing, bound: float, now_ms: int) -> B:
        """Return the bucket of these clients, with the bound in force."""
        bucket = self._buckets.get(sharing)
        if bucket is None:
            if len(self._buckets) >= self._sweep_at:
                self._sweep(now_ms)
            bucket = self._buckets[sharing] = self._create(self._windows)
        bucket.bound = bound
        return bucket

    def _sweep(self, now_ms: int) -> None:
        """Forget the idle buckets, then the oldest ones, down to half of the limit; those in use stay."""
        unused = [sharing for sharing, bucket in self._buckets.items() if bucket.users == 0]
        for sharing in unused:
            if self._buckets[sharing].is_idle(now_ms):
                del self._buckets[sharing]
        left = [sharing for sharing in unused if sharing in self._buckets]
        for sharing in left[: max(0, len(left) - BUCKETS_MAX // 2)]:
            del self._buckets[sharing]
        self._sweep_at = max(BUCKETS_MAX, len(self._buckets) + BUCKETS_MAX // 2)
