"""Explanations of a topic as explain_topic answers them: partitions with their segments, settings with their layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts
from barnabas.broker.storage.explanation.compaction import explain_compaction
from barnabas.broker.storage.explanation.retention_facts import check_interval_ms, files_to_remove, read_log_facts
from barnabas.broker.storage.explanation.retention_findings import explain_retention
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.synonyms import topic_synonyms
from barnabas.config.topic_config import describe_topic, unread_configs
from barnabas.config.value import ConfigValue
from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedCopy,
    ExplainedPartition,
    ExplainedSegment,
    SettingValue,
)

RETENTION_SETTINGS: Final = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "segment.ms",
    "segment.bytes",
    "file.delete.delay.ms",
)
"""The topic properties that decide when a segment is deleted."""

SETTINGS: Final = (
    *RETENTION_SETTINGS,
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "flush.messages",
    "flush.ms",
)
"""Those of an explained topic."""

BROKER_SETTINGS: Final = (
    "log.retention.check.interval.ms",
    "log.cleaner.enable",
    "log.cleaner.backoff.ms",
    "log.cleaner.threads",
    "log.cleaner.io.max.bytes.per.second",
)
"""The broker properties that decide about all of its topics."""


def explain_partitions(
    logs: Iterable[ReadableLog],
    config: BrokerConfig,
    cleaner: Callable[[ReadableLog], CleanerFacts],
    now_ms: int,
    *,
    copy_of: Callable[[ReadableLog], ExplainedCopy | None] = lambda _: None,
) -> list[ExplainedPartition]:
    """Explain retention and compaction of open logs. Reads files. Raises OSError, StorageError.

    `cleaner` returns what the cleaner knows of a compacted log, `copy_of` the copy of one that is moved elsewhere.
    """
    found = []
    for log in sorted(logs, key=lambda each: each.topic_partition.partition):
        cleaning = cleaner(log) if log.config.compact else None
        copy = copy_of(log)
        facts = read_log_facts(
            log,
            check_interval_ms(log.config, config),
            is_moving=copy is not None,
            is_uncleanable=cleaning is not None and cleaning.error is not None,
        )
        end = log.log_end_offset
        durable = log.durable_offset if isinstance(log, PartitionLog) else end
        segments = [
            ExplainedSegment(
                each.segment.base_offset,
                each.segment.end_offset,
                each.segment.size_bytes,
                each.segment.largest_timestamp_ms,
                each.segment.first_timestamp_ms,
                each.segment.roll_after_ms,
                each.deleted_earliest_ms,
                each.deleted_latest_ms,
                each.rule,
                tuple(each.kept_by),
                each.held_by,
            )
            for each in explain_retention(facts, now_ms=now_ms)
        ]
        found.append(
            ExplainedPartition(
                log.topic_partition.partition,
                str(log.log_dir),
                facts.log_start_offset,
                facts.high_watermark,
                end,
                durable,
                _bytes_from(log, durable, end),
                facts.check_interval_ms,
                segments,
                None if cleaning is None else explain_compaction(log, cleaning, now_ms),
                *files_to_remove(log),
                copy,
            )
        )
    return found


def deciding_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> list[SettingValue]:
    """Return the values in force of SETTINGS and BROKER_SETTINGS. `overrides`: the topic's own config.

    Those that are not understood follow SETTINGS, if they are not among them.
    """
    values = {known.name: value for known, value in describe_topic(config, overrides)}
    unread = unread_configs(config, overrides)
    of_topic = [_setting(name, values[name]) for name in SETTINGS]
    of_topic += [_setting(*each) for each in unread.items() if each[0] not in SETTINGS]
    return [*of_topic, *(_setting(name, config.value(name)) for name in BROKER_SETTINGS)]


def setting_layers(
    config: BrokerConfig, overrides: Mapping[str, str], name: str
) -> tuple[list[SettingValue], list[SettingValue]] | None:
    """Return the value in force of a topic's property and all layers that have one; None for an unknown property.

    The first list goes on with the other values because of which the topic's logs are kept.
    """
    for known, value in describe_topic(config, overrides):
        if known.name == name:
            layers = [_setting(each.name, each.value) for each in topic_synonyms(config, known, value)]
            unread = [_setting(*each) for each in unread_configs(config, overrides).items() if each[0] != name]
            return [_setting(name, value), *unread], layers
    return None


def _bytes_from(log: ReadableLog, offset: int, end: int) -> int:
    """The size of the batches from `offset` on."""
    if offset >= end:
        return 0
    segments = log.segments_view.overlapping(offset, end)
    first = segments[0].find_batch(offset, segments[0].size_bytes)
    before = segments[0].size_bytes if first is None else first.position
    return sum(each.size_bytes for each in segments) - before


def _setting(name: str, value: ConfigValue) -> SettingValue:
    return SettingValue(name, value.text, value.source.name, value.origin, value.problem)
