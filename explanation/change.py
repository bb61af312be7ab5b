"""What another value of a retention property would delete: pure, from an explained topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.storage.explanation.retention_facts import LogFacts, SegmentFacts
from barnabas.broker.storage.explanation.retention_findings import KeptBy, explain_retention
from barnabas.broker.storage.explanation.topic_explanation import RETENTION_SETTINGS
from barnabas.config import BrokerConfig
from barnabas.config.topic_config import complaints

if TYPE_CHECKING:
    from barnabas.config.log_config import LogConfig
    from barnabas.protocol.messages.topics.explain_topic import (
        ExplainedPartition,
        ExplainTopicResponse,
        SettingValue,
    )

CHANGEABLE: Final = ("retention.ms", "retention.bytes", "cleanup.policy")


class UnexplainableChangeError(ValueError):
    """A change whose effect cannot be told: of another property, or to a value that it cannot have."""


class PartitionChange(NamedTuple):
    """What the next check deletes of a partition that it does not delete as things are."""

    partition: int
    segments: int
    size_bytes: int
    offsets: int
    """From the first deleted offset to the last one."""
    new_start_offset: int


class Change(NamedTuple):
    """The effect of one change; `next_ms` is when the first further segment goes, None for never."""

    name: str
    value: str
    partitions: tuple[PartitionChange, ...]
    next_ms: int | None


def explain_change(explained: ExplainTopicResponse, name: str, value: str) -> Change:
    """Explain what `name=value` would delete. Raises UnexplainableChangeError."""
    if name not in CHANGEABLE:
        raise UnexplainableChangeError(
            f"the effect is explained for a change of {', '.join(CHANGEABLE)}, not of {name}"
        )
    values = {each.name: each.value or "" for each in explained.settings if _is_needed(each)}
    for sentence in complaints({name: value}):
        raise UnexplainableChangeError(sentence)
    config = BrokerConfig.of().log_config.with_overrides({**values, name: value})
    changes, moments = [], []
    for partition in explained.partitions:
        due_now = {each.base_offset for each in partition.segments if _is_due(each.deleted_earliest_ms, explained)}
        findings = explain_retention(_facts(partition, config), now_ms=explained.now_ms)
        gone = [each for each in findings if _is_due(each.deleted_earliest_ms, explained)]
        more = [each.segment for each in gone if each.segment.base_offset not in due_now]
        moments += [
            each.deleted_earliest_ms
            for each in findings
            if each.deleted_earliest_ms is not None and not _is_due(each.deleted_earliest_ms, explained)
        ]
        if more:
            start = max(more[0].base_offset, partition.log_start_offset)
            end = more[-1].end_offset
            size = sum(each.size_bytes for each in more)
            changes.append(PartitionChange(partition.partition, len(more), size, end - start, end))
    return Change(name, value, tuple(changes), min(moments, default=None))


def change_totals(change: Change) -> Mapping[str, int]:
    """Return the sums over all partitions."""
    return {
        "deleted_segments": sum(each.segments for each in change.partitions),
        "deleted_bytes": sum(each.size_bytes for each in change.partitions),
        "deleted_offsets": sum(each.offsets for each in change.partitions),
    }


def _is_needed(setting: SettingValue) -> bool:
    return setting.name in RETENTION_SETTINGS or setting.problem is not None


def _is_due(moment: int | None, explained: ExplainTopicResponse) -> bool:
    return moment is not None and moment <= explained.now_ms


def _facts(partition: ExplainedPartition, config: LogConfig) -> LogFacts:
    segments = tuple(
        SegmentFacts(
            each.base_offset,
            each.end_offset,
            each.size_bytes,
            each.largest_timestamp_ms,
            each.first_timestamp_ms,
            each.roll_after_ms,
        )
        for each in partition.segments
    )
    reasons = {reason for each in partition.segments for reason in each.kept_by}
    facts = LogFacts(
        is_online=KeptBy.OFFLINE_DIRECTORY not in reasons,
        config=config,
        log_start_offset=partition.log_start_offset,
        high_watermark=partition.high_watermark,
        check_interval_ms=partition.check_interval_ms,
        segments=segments,
        is_uncleanable=KeptBy.UNCLEANABLE in reasons,
    )
    # A log that nothing checks now, because the cleaner is off, is checked once it is not compacted.
    is_checked = facts.check_interval_ms is not None or not config.compact
    return replace(facts, check_interval_ms=facts.check_interval_ms or 0) if is_checked else facts
