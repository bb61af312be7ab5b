"""SessionQuota: what the requests of one connection count, and how long its client has to wait for it.

A connection serves one request at a time, so the state of that request is here:

    begin       the frame is complete
    suspend     its handler waits for something; `resume` ends the wait
    spend       another thread has worked for it
    fetched     a fetch has read its records
    finish      the response is encoded: its throttle time, for which the connection is muted

A request's time is that of the event loop (decoding, handler, encoding), and of the threads that decode and encode
large ones. 100 per cent is one second of it per second, which is all that the broker has. As in Kafka, a fetch above
its quota is answered empty and its bytes are not counted, and the throttle times of bytes and partitions are unbounded,
that of request time is at most one window.
Source: Kafka's KafkaApis, RequestHandlerHelper, ClientRequestQuotaManager.

Compiled handlers count plain requests within their bounds through kernels/_session_quota.pyx, without these calls.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.quotas.entities import QuotaKind
from barnabas.broker.quotas.mutation import MutationQuota
from barnabas.broker.quotas.rate import SECOND_MS
from barnabas.protocol.messages.api_key import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.quotas.bucket import Bucket, Buckets, MutationBucket, RateBucket
    from barnabas.broker.quotas.manager import QuotaManager

B = TypeVar("B", bound="Bucket")

_PERCENT: Final = 100.0
_MAX_INT32: Final = 0x7FFF_FFFF
# Reading a member of an enum class takes half a microsecond in Python 3.11.
_PRODUCE_API: Final = int(ApiKey.PRODUCE)
_METADATA_API: Final = int(ApiKey.METADATA)
_EXEMPT_API: Final = int(ApiKey.WRITE_TXN_MARKERS)
"""Requests between brokers."""
_PRODUCE: Final = QuotaKind.PRODUCE
_FETCH: Final = QuotaKind.FETCH
_REQUEST: Final = QuotaKind.REQUEST
_MUTATION: Final = QuotaKind.CONTROLLER_MUTATION


class SessionQuota:
    """The quotas of one connection's client, and the state of its request."""

    __slots__ = (
        "_client_id",
        "_fetch",
        "_frame_bytes",
        "_generation",
        "_is_decided",
        "_kind",
        "_manager",
        "_mutation",
        "_mutation_of_request",
        "_mute",
        "_principal",
        "_produce",
        "_request",
        "_session",
        "_spent",
        "_started",
        "_throttle_ms",
    )

    def __init__(self, manager: QuotaManager, session: Session, mute: Callable[[float], None]) -> None:
        """`mute` keeps the connection from serving requests for some seconds."""
        self._manager = manager
        self._session = session
        self._mute = mute
        self._generation = -1
        self._client_id: str | None = None
        self._principal = session.principal
        self._produce: RateBucket | None = None
        self._fetch: RateBucket | None = None
        self._request: RateBucket | None = None
        self._mutation: MutationBucket | None = None
        self._started = 0.0
        self._spent = 0.0
        self._frame_bytes = 0
        self._throttle_ms = 0
        self._kind: QuotaKind = _REQUEST
        self._is_decided = False
        self._mutation_of_request: MutationQuota | None = None

    def begin(self, started: float, frame_bytes: int) -> None:
        """Begin a request whose client id is in the session. `started`: perf_counter() when its frame was complete."""
        session = self._session
        if (
            self._generation != self._manager.generation
            or session.client_id != self._client_id
            or session.principal is not self._principal
        ):
            self._bind()
        self._started = started
        self._spent = 0.0
        self._frame_bytes = frame_bytes
        self._throttle_ms = 0
        self._is_decided = False
        self._mutation_of_request = None

    def suspend(self) -> None:
        """Stop counting the request's time."""
        self._spent += perf_counter() - self._started

    def resume(self) -> None:
        """Count the request's time again."""
        self._started = perf_counter()

    def spend(self, seconds: float) -> None:
        """Count time that another thread spent on the request."""
        self._spent += seconds

    def fetch_budget(self) -> int:
        """Return the size of the records that an unused quota allows, an int32."""
        bucket = self._fetch
        if bucket is None:
            return _MAX_INT32
        return int(min(_MAX_INT32, bucket.tally.allowed))

    def fetched(self, response_bytes: int) -> bool:
        """Count a fetch's response; return whether it has to be replaced by an empty one, which counts nothing."""
        now_ms = self._manager.clock_ms()
        self._count_time(now_ms)
        self._is_decided = True
        bucket = self._fetch
        if bucket is not None:
            self._exceed(_FETCH, bucket.record(response_bytes, now_ms))
            if self._throttle_ms > 0:
                bucket.rate.record(-response_bytes, now_ms)
        return self._throttle_ms > 0

    def mutation(self, *, is_strict: bool) -> MutationQuota | None:
        """Return the quota of a request that creates or deletes partitions, None if its client has none."""
        if self._mutation is None:
            return None
        self._mutation_of_request = MutationQuota(self._mutation, self._manager.clock_ms, is_strict=is_strict)
        return self._mutation_of_request

    def finish(self, api: int, *, is_answered: bool) -> int:
        """Count the rest of a request, mute the connection if a quota is exceeded, and return the throttle time in ms.

        `is_answered` is False with acks=0, whose request time is free.
        """
        now_ms = self._manager.clock_ms()
        if self._request is not None and is_answered and not self._is_decided and api != _EXEMPT_API:
            self._count_time(now_ms)
        if api == _PRODUCE_API and self._produce is not None:
            produce_ms = self._produce.record(self._frame_bytes, now_ms)
            if produce_ms > 0:
                self._exceed(_PRODUCE, produce_ms)
        if self._mutation_of_request is not None and api != _METADATA_API:  # Kafka does not throttle it
            self._exceed(_MUTATION, self._mutation_of_request.throttle_ms())
        throttle_ms = self._throttle_ms
        if throttle_ms > 0:
            self._manager.probe.throttled(self._kind, throttle_ms / SECOND_MS)
            self._mute(throttle_ms / SECOND_MS)
        return throttle_ms

    def release(self) -> None:
        """End the use of the buckets."""
        for bucket in (self._produce, self._fetch, self._request, self._mutation):
            if bucket is not None:
                bucket.users -= 1
        self._produce = self._fetch = self._request = self._mutation = None

    def _count_time(self, now_ms: int) -> None:
        self._spent += perf_counter() - self._started
        if self._request is not None:
            throttle_ms = self._request.record(self._spent * _PERCENT, now_ms)
            if throttle_ms > 0:
                self._exceed(_REQUEST, min(throttle_ms, self._manager.windows.sample_ms))

    def _exceed(self, kind: QuotaKind, throttle_ms: int) -> None:
        """Note a throttle time; the longest counts."""
        if throttle_ms > self._throttle_ms:
            self._throttle_ms, self._kind = throttle_ms, kind

    def _bind(self) -> None:
        """Look up the quotas of the session's client."""
        manager, session = self._manager, self._session
        self.release()
        self._generation = manager.generation
        self._client_id = session.client_id
        self._principal = session.principal
        self._produce = self._use(QuotaKind.PRODUCE, manager.produce)
        self._fetch = self._use(QuotaKind.FETCH, manager.fetch)
        self._request = self._use(QuotaKind.REQUEST, manager.request)
        self._mutation = self._use(QuotaKind.CONTROLLER_MUTATION, manager.mutation)

    def _use(self, kind: QuotaKind, buckets: Buckets[B]) -> B | None:
        found = self._manager.table(kind).find(self._principal.name, self._client_id or "")
        return None if found is None else buckets.use(*found, self._manager.clock_ms())
