"""The topic properties that Barnabas serves, with the broker properties that provide their defaults.

Names, types, defaults and rules are Apache Kafka 4.3's (LogConfig, ServerTopicConfigSynonyms), but for flush.acks.all,
which only Barnabas has; the texts are those of the broker property, which a topic's value overrides. Of several
synonyms the first one set in any layer wins: ms, then minutes, then hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.config.property import LONG_MAX, Property, PropertyType, Synonym, UpdateMode, by_name
from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
from barnabas.config.tables.log_properties import SEGMENT_BYTES_MIN, SEGMENTS
from barnabas.config.validators import AtLeast, Validator

FLUSH_ACKS_ALL: Final = "flush.acks.all"
"""The only topic property that Apache Kafka does not have."""

MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS
# Kafka's update mode of topic configs, which always change while the broker runs.
_TOPIC_MODE = UpdateMode.CLUSTER_WIDE


def _of_broker(name: str, synonym: str) -> Property:
    """Return the topic property `name` with type, rule and text of the broker property `synonym`."""
    broker = BROKER_PROPERTIES[synonym]
    return Property(
        name,
        broker.type,
        broker.default,
        broker.doc,
        broker.validator,
        _TOPIC_MODE,
        synonyms=(Synonym(synonym),),
        group=broker.group,
    )


def _family(name: str, default: int, doc: str, validator: Validator, *synonyms: Synonym) -> Property:
    """Return the topic property `name` (a long, in ms) whose default comes from several broker properties."""
    group = BROKER_PROPERTIES[synonyms[0].name].group
    return Property(name, PropertyType.LONG, default, doc, validator, _TOPIC_MODE, synonyms=synonyms, group=group)


TOPIC_PROPERTIES: Mapping[str, Property] = by_name(
    _of_broker("segment.bytes", "log.segment.bytes"),
    Property(
        "internal.segment.bytes",
        PropertyType.INT,
        None,
        "Overrides segment.bytes; Apache Kafka 4.3 has it to allow segments below its own minimum. Less than "
        f"{SEGMENT_BYTES_MIN} counts as {SEGMENT_BYTES_MIN}.",
        None,
        _TOPIC_MODE,
        group=SEGMENTS,
    ),
    _family(
        "segment.ms",
        168 * HOUR_MS,
        "Time after which a segment that receives records is closed even if it is not full.",
        AtLeast(1),
        Synonym("log.roll.ms"),
        Synonym("log.roll.hours", HOUR_MS),
    ),
    _family(
        "segment.jitter.ms",
        0,
        "Largest random amount by which a segment rolls early, so that many partitions do not roll at once.",
        AtLeast(0),
        Synonym("log.roll.jitter.ms"),
        Synonym("log.roll.jitter.hours", HOUR_MS),
    ),
    _of_broker("index.interval.bytes", "log.index.interval.bytes"),
    _of_broker("segment.index.bytes", "log.index.size.max.bytes"),
    _of_broker("preallocate", "log.preallocate"),
    _of_broker("cleanup.policy", "log.cleanup.policy"),
    _family(
        "retention.ms",
        168 * HOUR_MS,
        "How long records are kept. -1: forever; 0: as short as segments and the retention task allow.",
        AtLeast(-1),
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", MINUTE_MS),
        Synonym("log.retention.hours", HOUR_MS),
    ),
    _of_broker("retention.bytes", "log.retention.bytes"),
    _of_broker("file.delete.delay.ms", "log.segment.delete.delay.ms"),
    _of_broker("flush.messages", "log.flush.interval.messages"),
    _of_broker(FLUSH_ACKS_ALL, "log.flush.acks.all"),
    _family(
        "flush.ms",
        LONG_MAX,
        "Longest time before a record is fsynced; checked whenever the log-flusher task runs.",
        AtLeast(0),
        Synonym("log.flush.interval.ms"),
        Synonym("log.flush.scheduler.interval.ms"),
    ),
    _of_broker("max.message.bytes", "message.max.bytes"),
    _of_broker("compression.type", "compression.type"),
    _of_broker("compression.gzip.level", "compression.gzip.level"),
    _of_broker("compression.lz4.level", "compression.lz4.level"),
    _of_broker("compression.zstd.level", "compression.zstd.level"),
    _of_broker("message.timestamp.type", "log.message.timestamp.type"),
    _of_broker("message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"),
    _of_broker("message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"),
    _of_broker("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"),
    _of_broker("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
    _of_broker("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    _of_broker("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    _of_broker("min.insync.replicas", "min.insync.replicas"),
)
