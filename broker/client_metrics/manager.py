"""ClientMetrics: which metrics clients shall push, which pushes are accepted, and what arrived (KIP-714).

A client asks for its subscription (GetTelemetrySubscriptions), then pushes at the interval that it was told
(PushTelemetry). Checks of a push, in this order:

    INVALID_REQUEST               no instance id, or a push after one that was the client's last
    THROTTLING_QUOTA_EXCEEDED     before the interval is over, unless it is the last push or the first after a question
    UNKNOWN_SUBSCRIPTION_ID       the subscriptions have changed: the client asks again
    UNSUPPORTED_COMPRESSION_TYPE
    TELEMETRY_TOO_LARGE           more than telemetry.max.bytes
    INVALID_RECORD                the metrics do not decompress within MAX_DECOMPRESSED_BYTES, or do not decode

A question before the interval is over is throttled too, except after one of the errors that make clients ask again.
State of a client ends after three intervals without a request (at least a minute), or with a new connection of the same
instance, where Kafka ends it with the connection. Source: Kafka's ClientMetricsManager and ClientMetricsInstance.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.client_metrics.otlp import Point, read_points
from barnabas.broker.client_metrics.received import ReceivedMetrics
from barnabas.broker.client_metrics.subscriptions import Subscription, Wanted, read_subscription, wanted_of
from barnabas.protocol.compression import CODECS, Codec, borrow_decompressed
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.messages.cluster.client_telemetry import (
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
)
from barnabas.protocol.metadata.records import CLIENT_METRICS_RESOURCE
from barnabas.protocol.uuids import METADATA_TOPIC_UUID, ZERO_UUID, random_uuid, uuid_text

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import ConfigScope
    from barnabas.broker.network.session import Session

MAX_INSTANCES: Final = 16_384
MAX_DECOMPRESSED_BYTES: Final = 16 * 1024 * 1024
MIN_EXPIRY_SECONDS: Final = 60.0
COMPRESSION_TYPES: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""By preference."""

_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_NEVER: Final = float("-inf")


class _Instance:
    """One client, as long as its subscription is the same."""

    __slots__ = ("asked_at", "connection", "is_terminating", "last_error", "pushed_at", "seen_at", "version", "wanted")

    def __init__(self, wanted: Wanted, version: int, connection: str) -> None:
        self.wanted = wanted
        self.version = version
        self.connection = connection
        self.asked_at = self.pushed_at = self.seen_at = _NEVER
        self.is_terminating = False
        self.last_error = ErrorCode.NONE

    @property
    def interval_seconds(self) -> float:
        """The push interval."""
        return self.wanted.interval_ms / 1000

    def takes_question(self, now: float) -> bool:
        """Return whether a question is not too early, and remember it."""
        if now - max(self.asked_at, self.pushed_at) < self.interval_seconds:
            return False
        self.asked_at = now
        return True

    def takes_push(self, now: float) -> bool:
        """Return whether a push is not too early, and remember it."""
        if self.asked_at <= self.pushed_at and now - self.pushed_at < self.interval_seconds:
            return False
        self.pushed_at = now
        return True


class ClientMetrics:
    """The clients that push metrics. Event loop only, but for `decoded` and `received.series`."""

    def __init__(
        self,
        configs: Callable[[], Mapping[ConfigScope, Mapping[str, str]]],
        monotonic: Callable[[], float],
        max_bytes: int,
    ) -> None:
        """`configs` returns those of the metadata image, the same object until they change."""
        self._configs = configs
        self._monotonic = monotonic
        self._max_bytes = max_bytes
        self._seen_configs: Mapping[ConfigScope, Mapping[str, str]] | None = None
        self._texts: dict[str, Mapping[str, str]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._version = 0
        self._instances: OrderedDict[bytes, _Instance] = OrderedDict()
        self.received = ReceivedMetrics()

    @property
    def instance_count(self) -> int:
        """Clients whose state is kept."""
        return len(self._instances)

    def subscription_of(self, session: Session, instance_id: bytes) -> GetTelemetrySubscriptionsResponse:
        """Return what a client shall push. Raises BrokerError THROTTLING_QUOTA_EXCEEDED for a question too early."""
        if instance_id == ZERO_UUID:
            instance_id = random_uuid()
        instance = self._instance(session, instance_id)
        if not instance.takes_question(self._monotonic()) and instance.last_error not in _ASK_AGAIN:
            raise self._refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, instance_id, "arrived before the next interval")
        instance.last_error = ErrorCode.NONE
        wanted = instance.wanted
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=wanted.id,
            compression_types=COMPRESSION_TYPES,
            push_interval_ms=wanted.interval_ms,
            max_bytes=self._max_bytes,
            delta_temporality=True,
            metrics=wanted.metrics,
        )

    def admit(self, session: Session, request: PushTelemetryRequest) -> None:
        """Check a push. Raises BrokerError as the module docstring specifies."""
        instance_id = request.client_instance_id
        if instance_id in (ZERO_UUID, METADATA_TOPIC_UUID):
            raise self._refused(ErrorCode.INVALID_REQUEST, instance_id, "has an invalid client instance id")
        instance = self._instance(session, instance_id)
        try:
            self._check(instance, request)
        except BrokerError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = request.terminating
        instance.last_error = ErrorCode.NONE

    def fail(self, instance_id: bytes, error: DecodeError) -> BrokerError:
        """Return the answer to a push whose metrics do not decode."""
        instance = self._instances.get(instance_id)
        if instance is not None:
            instance.last_error = ErrorCode.INVALID_RECORD
        return self._refused(ErrorCode.INVALID_RECORD, instance_id, f"does not decode: {error}")

    def keep(self, session: Session, request: PushTelemetryRequest, points: list[Point]) -> None:
        """Take the metrics of an admitted push, unless the client is gone meanwhile."""
        if request.client_instance_id in self._instances:
            instance = uuid_text(request.client_instance_id)
            self.received.keep(instance, session.client_id or "", points)

    def _check(self, instance: _Instance, request: PushTelemetryRequest) -> None:
        instance_id = request.client_instance_id
        if instance.is_terminating:
            raise self._refused(ErrorCode.INVALID_REQUEST, instance_id, "follows the last push of its client")
        if not instance.takes_push(self._monotonic()) and not request.terminating:
            raise self._refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, instance_id, "arrived before the next interval")
        if request.subscription_id != instance.wanted.id:
            raise self._refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, instance_id, "has an unknown subscription id")
        if request.compression_type not in CODECS:
            raise self._refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, instance_id, "has an unknown compression type")
        if len(request.metrics) > self._max_bytes:
            raise self._refused(ErrorCode.TELEMETRY_TOO_LARGE, instance_id, f"is larger than {self._max_bytes} bytes")

    def _instance(self, session: Session, instance_id: bytes) -> _Instance:
        self._read_subscriptions()
        now = self._monotonic()
        self._expire(now)
        instance = self._instances.get(instance_id)
        if instance is not None and instance.connection != session.peer:
            self._forget(instance_id)
            instance = None
        if instance is None or instance.version < self._version:
            wanted = wanted_of(self._subscriptions, _properties(session, instance_id), instance_id)
            instance = self._instances[instance_id] = _Instance(wanted, self._version, session.peer)
        instance.seen_at = now
        self._instances.move_to_end(instance_id)
        while len(self._instances) > MAX_INSTANCES:
            self._forget(next(iter(self._instances)))
        return instance

    def _expire(self, now: float) -> None:
        """Forget clients that have been silent, the longest first. One with a long interval may keep later ones."""
        while self._instances:
            instance_id, oldest = next(iter(self._instances.items()))
            if now - oldest.seen_at < max(MIN_EXPIRY_SECONDS, 3 * oldest.interval_seconds):
                return
            self._forget(instance_id)

    def _forget(self, instance_id: bytes) -> None:
        del self._instances[instance_id]
        self.received.forget(uuid_text(instance_id))

    def _read_subscriptions(self) -> None:
        configs = self._configs()
        if configs is self._seen_configs:
            return
        self._seen_configs = configs
        texts = {name: values for (kind, name), values in configs.items() if kind == CLIENT_METRICS_RESOURCE}
        if texts == self._texts:
            return
        read = {name: read_subscription(name, values) for name, values in texts.items()}
        self._texts, self._version = texts, self._version + 1
        self._subscriptions = {name: each for name, each in read.items() if each is not None}

    def _refused(self, code: ErrorCode, instance_id: bytes, why: str) -> BrokerError:
        self.received.count_error(code.name.lower())
        return BrokerError(code, f"a telemetry request of the client {uuid_text(instance_id)} {why}")


def decoded(request: PushTelemetryRequest) -> list[Point]:
    """Return the points of a push. Blocking. Raises DecodeError."""
    if not request.metrics:
        return []
    return read_points(borrow_decompressed(Codec(request.compression_type), request.metrics, MAX_DECOMPRESSED_BYTES))


def _properties(session: Session, instance_id: bytes) -> dict[str, str | None]:
    software_name, software_version = session.software or (None, None)
    return {
        "client_instance_id": uuid_text(instance_id),
        "client_id": session.client_id,
        "client_software_name": software_name,
        "client_software_version": software_version,
        "client_source_address": session.host,
        "client_source_port": session.peer.rpartition(":")[2],
    }
