"""Configuration of producer, consumers and admin: frozen values, checked when they are created.

Names and defaults are those of Kafka's clients if they have the setting (its Kafka name is in the field's comment);
the comment explains where a default differs. Times are milliseconds, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.clients.addresses import parse_bootstrap
from barnabas.clients.errors import ClientConfigError
from barnabas.clients.security.settings import PLAINTEXT_SETTINGS, SecuritySettings
from barnabas.protocol.messages.data.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE

MIB = 1 << 20
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
OFFSET_RESETS = ("earliest", "latest", "error")
COOPERATIVE_STICKY = "cooperative-sticky"
ASSIGNOR_NAMES = ("range", "roundrobin", COOPERATIVE_STICKY)
ISOLATIONS = ("read_uncommitted", "read_committed")
IMPLICIT = "implicit"
EXPLICIT = "explicit"
ACKNOWLEDGEMENTS = (IMPLICIT, EXPLICIT)
RECORD_LIMIT = "record_limit"
ACQUIRE_MODES = ("batch_optimized", RECORD_LIMIT)
_MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Settings of producer, consumers and admin alike."""

    bootstrap: str = "127.0.0.1:9092"  # bootstrap.servers: "h1:p1,h2:p2"; one that answers is enough
    client_id: str = "barnabas"  # client.id: in the broker's log lines and metrics
    connect_timeout_ms: int = 10_000  # socket.connection.setup.timeout.ms: TCP and the greeting
    request_timeout_ms: int = 30_000  # request.timeout.ms: then the connection is closed
    api_timeout_ms: int = (
        60_000  # default.api.timeout.ms: one call with all its retries (except send, see max_block_ms)
    )
    retry_backoff_ms: int = 100  # retry.backoff.ms: the first pause; it doubles, with jitter
    retry_backoff_max_ms: int = 1_000  # retry.backoff.max.ms
    reconnect_backoff_ms: int = 50  # reconnect.backoff.ms
    reconnect_backoff_max_ms: int = 1_000  # reconnect.backoff.max.ms
    metadata_max_age_ms: int = 300_000  # metadata.max.age.ms: how soon new partitions are noticed
    max_frame_bytes: int = 100 * MIB  # the largest accepted response; a larger one closes the connection
    # security.protocol, sasl.* and ssl.*: SecuritySettings.from_properties({"security.protocol": "SASL_SSL", ...})
    security: SecuritySettings = PLAINTEXT_SETTINGS

    def __post_init__(self) -> None:
        parse_bootstrap(self.bootstrap)
        if not _is_text(self.client_id):
            raise ClientConfigError(f"client_id must be a string, not {self.client_id!r}")
        _whole(self, 1, "connect_timeout_ms", "request_timeout_ms", "api_timeout_ms", "metadata_max_age_ms")
        _whole(self, 0, "retry_backoff_ms", "reconnect_backoff_ms")
        _whole(self, self.retry_backoff_ms, "retry_backoff_max_ms")
        _whole(self, self.reconnect_backoff_ms, "reconnect_backoff_max_ms")
        _whole(self, 1024, "max_frame_bytes")
        if not isinstance(self.security, SecuritySettings):
            raise ClientConfigError(f"security must be SecuritySettings, not {type(self.security).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig(ClientConfig):
    """Settings of the admin client: the common ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """Settings of the producer: batching, and the effort and time for delivery."""

    acks: int = ACKS_ALL  # 0: no response, 1: written by the leader, -1: by all in-sync replicas
    # linger.ms is 5 in Kafka. Here a batch is sent in the next iteration of the event loop, and the next one fills
    # while it is in flight: batches grow under load by themselves, and a lone record does not wait.
    linger_ms: float = 0
    batch_size: int = 64 * 1024  # batch.size is 16 KiB in Kafka, which has several batches in flight per partition
    compression: str = "none"  # compression.type: none, gzip, snappy, lz4, zstd
    compression_level: int | None = None  # compression.<codec>.level; None: the codec's default
    buffer_memory: int = 32 * MIB  # buffer.memory: of waiting records and those in flight
    max_block_ms: int = 60_000  # max.block.ms: how long send() waits for metadata and room in the buffer
    max_request_bytes: int = MIB  # max.request.size: of one request, and so of one record
    delivery_timeout_ms: int = 120_000  # delivery.timeout.ms: from send() to the acknowledgement, all retries included
    retries: int = _MAX_INT32  # retries: attempts after the first
    # enable.idempotence: the broker stores a batch once, however often it is sent. None is Kafka's default: on, unless
    # acks is not -1 or retries is 0. True is an error with those.
    enable_idempotence: bool | None = None
    # max.in.flight.requests.per.connection; a partition has at most one (order), so idempotence does not limit it.
    max_in_flight: int = 5
    # transactional.id: a name that the program keeps over restarts. The producer sends in transactions only, and ends
    # those that an earlier producer with this id left open.
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000  # transaction.timeout.ms: then the broker aborts, and fences this producer
    # transaction.two.phase.commit.enable: no timeout, because another process decides about prepared transactions
    # (producer/prepared.py). The broker must allow it, by its property of the same name.
    two_phase_commit: bool = False

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)  # not super(): slots=True creates another class than the one super() sees
        if self.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL) or isinstance(self.acks, bool):
            raise ClientConfigError(f"acks must be 0, 1 or -1, not {self.acks!r}")
        if not _is_number(self.linger_ms) or self.linger_ms < 0:
            raise ClientConfigError(f"linger_ms must be a number of milliseconds from 0 on, not {self.linger_ms!r}")
        _one_of("compression", self.compression, COMPRESSIONS)
        if self.compression_level is not None and not isinstance(self.compression_level, int):
            raise ClientConfigError(f"compression_level must be a whole number or None, not {self.compression_level!r}")
        _whole(self, 1, "batch_size", "buffer_memory", "max_request_bytes", "delivery_timeout_ms", "max_in_flight")
        _whole(self, 0, "max_block_ms", "retries")
        if self.batch_size > self.max_request_bytes:
            raise ClientConfigError(
                f"batch_size={self.batch_size} cannot be above max_request_bytes={self.max_request_bytes}: "
                "a batch travels in one request"
            )
        if self.buffer_memory < self.batch_size:
            raise ClientConfigError(
                f"buffer_memory={self.buffer_memory} cannot be below batch_size={self.batch_size}: no batch would fill"
            )
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            raise ClientConfigError(
                f"delivery_timeout_ms={self.delivery_timeout_ms} must be at least linger_ms + request_timeout_ms "
                f"= {self.linger_ms + self.request_timeout_ms:g}: there would be no time for one request"
            )
        if not (self.enable_idempotence is None or _is_bool(self.enable_idempotence)):
            raise ClientConfigError(f"enable_idempotence must be True, False or None, not {self.enable_idempotence!r}")
        if self.enable_idempotence and self.acks != ACKS_ALL:
            raise ClientConfigError(f"enable_idempotence=True needs acks=-1, not {self.acks}")
        if self.enable_idempotence and not self.retries:
            raise ClientConfigError("enable_idempotence=True needs retries above 0")
        _whole(self, 1, "transaction_timeout_ms")
        if not _is_bool(self.two_phase_commit):
            raise ClientConfigError(f"two_phase_commit must be True or False, not {self.two_phase_commit!r}")
        if self.transactional_id is None:
            if self.two_phase_commit:
                raise ClientConfigError("two_phase_commit=True needs a transactional_id")
            return
        if not (_is_text(self.transactional_id) and self.transactional_id):
            raise ClientConfigError(f"transactional_id must be a name, not {self.transactional_id!r}")
        if not self.idempotent:
            raise ClientConfigError("transactional_id needs idempotence: acks=-1 and retries above 0")

    @property
    def idempotent(self) -> bool:
        """Whether the producer is idempotent: enable_idempotence with its default resolved."""
        if self.enable_idempotence is None:
            return self.acks == ACKS_ALL and self.retries > 0
        return self.enable_idempotence


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """Settings of the consumer: group membership, prefetching, and offset reset."""

    group: str | None = None  # group.id: for subscriptions and commits, and for where partitions start
    group_instance_id: str | None = None  # group.instance.id: a static member, whose restart moves no partitions
    session_timeout_ms: int = 45_000  # session.timeout.ms: without a heartbeat for this long a member is removed
    heartbeat_interval_ms: int = 3_000  # heartbeat.interval.ms: also how late a member notices a rebalance
    max_poll_interval_ms: int = 300_000  # max.poll.interval.ms: without a read for this long a member leaves
    # partition.assignment.strategy, in order of preference. A group needs one that all its members know. With only
    # ("cooperative-sticky",), a rebalance revokes only partitions that move, as in Kafka; with eager ones too, all.
    assignors: tuple[str, ...] = ASSIGNOR_NAMES
    auto_commit: bool = True  # enable.auto.commit: with a group, reads and close() commit the records handed out before
    auto_commit_interval_ms: int = 5_000  # auto.commit.interval.ms
    exclude_internal_topics: bool = True  # exclude.internal.topics: from a pattern's topics
    offset_reset: str = "latest"  # auto.offset.reset: earliest, latest, error; also where a partition starts
    isolation: str = "read_uncommitted"  # isolation.level: read_committed skips aborted transactions
    check_crcs: bool = True  # check.crcs
    min_bytes: int = 1  # fetch.min.bytes
    max_wait_ms: int = 500  # fetch.max.wait.ms: how long a fetch waits for min_bytes
    max_bytes: int = 16 * MIB  # fetch.max.bytes (50 MiB in Kafka): of one response, unless its first batch is larger
    max_partition_bytes: int = MIB  # max.partition.fetch.bytes
    max_poll_records: int = 500  # max.poll.records: the default of poll()
    prefetch_bytes: int = 32 * MIB  # bytes fetched and not read yet, of all partitions (as fetched, so compressed)
    max_batch_bytes: int = 128 * MIB  # of one decompressed batch; a larger one is treated as corrupt

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        if self.group is not None and not (_is_text(self.group) and self.group):
            raise ClientConfigError(f"group must be a name, not {self.group!r}")
        if self.group_instance_id is not None and not (_is_text(self.group_instance_id) and self.group_instance_id):
            raise ClientConfigError(f"group_instance_id must be a name, not {self.group_instance_id!r}")
        if type(self.assignors) is not tuple or not self.assignors:
            raise ClientConfigError(f"assignors must be a tuple of names, not {self.assignors!r}")
        for assignor in self.assignors:
            _one_of("assignors", assignor, ASSIGNOR_NAMES)
        if not _is_bool(self.auto_commit):
            raise ClientConfigError(f"auto_commit must be True or False, not {self.auto_commit!r}")
        if not _is_bool(self.exclude_internal_topics):
            raise ClientConfigError(
                f"exclude_internal_topics must be True or False, not {self.exclude_internal_topics!r}"
            )
        _whole(
            self, 1, "session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms", "auto_commit_interval_ms"
        )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ClientConfigError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} must be below "
                f"session_timeout_ms={self.session_timeout_ms}: the session would expire between two heartbeats"
            )
        _one_of("offset_reset", self.offset_reset, OFFSET_RESETS)
        _one_of("isolation", self.isolation, ISOLATIONS)
        if self.check_crcs not in (True, False):
            raise ClientConfigError(f"check_crcs must be True or False, not {self.check_crcs!r}")
        _whole(self, 0, "min_bytes", "max_wait_ms")
        _whole(self, 1, "max_bytes", "max_partition_bytes", "max_poll_records", "prefetch_bytes", "max_batch_bytes")
        if self.max_bytes > self.max_frame_bytes:
            raise ClientConfigError(
                f"max_bytes={self.max_bytes} cannot be above max_frame_bytes={self.max_frame_bytes}: "
                "the answers would be refused"
            )

    @property
    def keeps_partitions(self) -> bool:
        """Whether rebalances are cooperative: only if every assignor is, since the group may agree on any."""
        return self.assignors == (COOPERATIVE_STICKY,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConsumerConfig(ClientConfig):
    """Settings of the share consumer. Where a group begins, and how long its locks last, are configs of the group."""

    group: str  # group.id
    acknowledgement: str = "implicit"  # share.acknowledgement.mode: implicit accepts what the reader has moved past
    acquire_mode: str = "batch_optimized"  # share.acquire.mode: record_limit acquires at most max_poll_records
    check_crcs: bool = True  # check.crcs
    min_bytes: int = 1  # fetch.min.bytes
    max_wait_ms: int = 500  # fetch.max.wait.ms: also how long an acknowledgement may wait for a fetch in flight
    max_bytes: int = 16 * MIB  # fetch.max.bytes (50 MiB in Kafka): of one response, unless its first batch is larger
    max_poll_records: int = 500  # max.poll.records: of one fetch, and the default of poll()
    max_batch_bytes: int = 128 * MIB  # of one decompressed batch; a larger one is treated as corrupt

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        if not (_is_text(self.group) and self.group):
            raise ClientConfigError(f"group must be a name, not {self.group!r}")
        _one_of("acknowledgement", self.acknowledgement, ACKNOWLEDGEMENTS)
        _one_of("acquire_mode", self.acquire_mode, ACQUIRE_MODES)
        if not _is_bool(self.check_crcs):
            raise ClientConfigError(f"check_crcs must be True or False, not {self.check_crcs!r}")
        _whole(self, 0, "min_bytes", "max_wait_ms")
        _whole(self, 1, "max_bytes", "max_poll_records", "max_batch_bytes")
        if self.max_bytes > self.max_frame_bytes:
            raise ClientConfigError(
                f"max_bytes={self.max_bytes} cannot be above max_frame_bytes={self.max_frame_bytes}: "
                "the answers would be refused"
            )

    @property
    def is_implicit(self) -> bool:
        """Whether reads accept the records handed out before them."""
        return self.acknowledgement == IMPLICIT


def _whole(config: ClientConfig, low: int, *names: str) -> None:
    """Check that each field is an int from `low` up to the largest int32."""
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ClientConfigError(f"{name} must be a whole number, not {value!r}")
        if not low <= value <= _MAX_INT32:
            raise ClientConfigError(f"{name}={value} must be between {low} and {_MAX_INT32}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ClientConfigError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
