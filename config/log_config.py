"""The configuration of one log: the broker's values under the overrides of its topic. Immutable and cheap to read.

A stored value that is not understood, because another program wrote it under other rules, may mean anything, so it
must not widen deletion: while a property that decides about it (DECIDES_DELETION) has such a value, of the topic or of
the broker, the log is kept. It is not compacted, and nothing is deleted from it by time or size. Other properties then
have the value of the next layer. Kafka refuses such values, and has none of its own: config/property.py.

Source: Kafka's LogConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.config.property import BadValueError
from barnabas.config.tables.log_properties import SEGMENT_BYTES_MIN, SERVED_INDEX_BYTES_MIN
from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES
from barnabas.config.value import PropertyValue

# Topic property -> field of LogConfig. cleanup.policy (two fields) and internal.segment.bytes are handled separately.
_FIELDS = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "index.interval.bytes": "index_interval_bytes",
    "segment.index.bytes": "segment_index_bytes",
    "preallocate": "preallocate",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "flush.acks.all": "flush_acks_all",
    "max.message.bytes": "max_message_bytes",
    "compression.type": "compression_type",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.zstd.level": "compression_zstd_level",
    "message.timestamp.type": "timestamp_type",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "delete.retention.ms": "delete_retention_ms",
    "min.insync.replicas": "min_insync_replicas",
}


DECIDES_DELETION: Final = frozenset(
    {
        "cleanup.policy",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "internal.segment.bytes",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
    }
)
"""Topic properties that decide about what is deleted and when."""

KEPT: Final = "nothing is deleted by time or size, or compacted, until it has a legal value"
"""What a value of those that is not understood means, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Values in Kafka's units: bytes, milliseconds, records. 2**63 - 1 is never or no limit; for retention -1 is.

    `unread`: the names of DECIDES_DELETION whose stored values are not understood. With one, `compact` and `delete` are
    False, and `understood` has what they would be.
    """

    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    index_interval_bytes: int
    segment_index_bytes: int
    preallocate: bool
    compact: bool
    delete: bool
    retention_ms: int
    retention_bytes: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    flush_acks_all: bool
    max_message_bytes: int
    # "producer", "uncompressed", "gzip", "snappy", "lz4" or "zstd", with the level of each codec that has one.
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    # "CreateTime" or "LogAppendTime".
    timestamp_type: str
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    delete_retention_ms: int
    min_insync_replicas: int
    unread: tuple[str, ...] = ()
    understood: tuple[bool, bool] = (False, False)

    @property
    def needs_keys(self) -> bool:
        """Whether records without keys are refused: a compacted topic stays one while its log is kept."""
        return self.understood[0] if self.unread else self.compact

    @property
    def may_delete_records(self) -> bool:
        """Whether DeleteRecords may: not in a topic that is only compacted, or may be, since its policy is not read."""
        compact, delete = self.understood if self.unread else (self.compact, self.delete)
        return "cleanup.policy" not in self.unread and (delete or not compact)

    @property
    def acks_all_flush_messages(self) -> int:
        """Unsynced records from which on an append with acks=all, or of the broker itself, waits for a sync."""
        return 1 if self.flush_acks_all else self.flush_messages

    @property
    def max_segment_ms(self) -> int:
        """Age at which a segment rolls, with compaction early enough for max.compaction.lag.ms."""
        return min(self.max_compaction_lag_ms, self.segment_ms) if self.compact else self.segment_ms

    @classmethod
    def of(cls, values: Mapping[str, PropertyValue], unread: Iterable[str] = ()) -> LogConfig:
        """Return the configuration with these values of the topic properties, by name."""
        return cls(**_fields(values))._kept(tuple(unread))

    def with_overrides(self, overrides: Mapping[str, str]) -> LogConfig:
        """Return this configuration under a topic's own configs. Never raises: a broker serves the topics it finds.

        `overrides` come from the metadata log and were checked when they were set (validate_topic_configs). Another
        program may have written them under other rules: an unknown name is skipped, and an illegal value leaves the
        broker's in force (topic_config.complaints names both), or has the log kept.
        """
        if not overrides:
            return self
        values: dict[str, PropertyValue] = {}
        for name, text in overrides.items():
            known = TOPIC_PROPERTIES.get(name)
            if known is None:
                continue
            try:
                values[name] = known.parse(text)
            except BadValueError:
                continue
        fields = _fields(values)
        if self.unread:
            compact, delete = self.understood
            fields = {"compact": compact, "delete": delete, "unread": (), "understood": (False, False)} | fields
        unread = (*(name for name in self.unread if name not in values), *problems_of_deletion(overrides))
        return replace(self, **fields)._kept(unread)

    def _kept(self, unread: tuple[str, ...]) -> LogConfig:
        if not unread:
            return self
        understood = (self.compact, self.delete)
        return replace(self, compact=False, delete=False, unread=unread, understood=understood)


def problems_of_deletion(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the names of a topic's configs that decide about deletion and are not understood, with the reasons."""
    problems = {}
    for name, text in overrides.items():
        if name not in DECIDES_DELETION:
            continue
        known = TOPIC_PROPERTIES.get(name)
        if known is None:
            from barnabas.config.tables.kafka_properties import unserved_topic_properties

            known = unserved_topic_properties()[name]
        try:
            known.parse(text)
        except BadValueError as error:
            problems[name] = str(error)
    return problems


def _fields(values: Mapping[str, PropertyValue]) -> dict[str, Any]:
    """Return the fields of LogConfig that values of topic properties set, by name."""
    fields: dict[str, Any] = {_FIELDS[name]: value for name, value in values.items() if name in _FIELDS}
    policy = values.get("cleanup.policy")
    if isinstance(policy, tuple):
        fields["compact"], fields["delete"] = "compact" in policy, "delete" in policy
    internal = values.get("internal.segment.bytes")
    if isinstance(internal, int):
        fields["segment_bytes"] = max(internal, SEGMENT_BYTES_MIN)
    if "segment_index_bytes" in fields:
        fields["segment_index_bytes"] = max(fields["segment_index_bytes"], SERVED_INDEX_BYTES_MIN)
    return fields
