"""An explained topic as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.broker.storage.explanation.retention_findings import START_OFFSET_RULE, KeptBy, SegmentFinding
from barnabas.commands.explain.config_output import value_json
from barnabas.commands.explain.stored_topic import ExplainedPartition, ExplainedTopic
from barnabas.commands.output import counted, time_text
from barnabas.config.value import ConfigValue


def json_of(explained: ExplainedTopic) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    return {
        "topic": explained.topic,
        "now_ms": explained.now_ms,
        "settings": {name: value_json(value) for name, value in explained.settings.items()},
        "partitions": [
            {
                "partition": each.partition,
                "log_dir": str(each.log_dir),
                "log_start_offset": each.log.log_start_offset,
                "high_watermark": each.log.high_watermark,
                "check_interval_ms": each.log.check_interval_ms,
                "segments": [_segment(finding) for finding in each.segments],
            }
            for each in explained.partitions
        ],
    }


def sentences_of(explained: ExplainedTopic) -> Iterator[str]:
    """The lines for people: the settings, then each partition with its segments."""
    settings = explained.settings
    yield f"{explained.topic} at {time_text(explained.now_ms)}: " + ", ".join(
        _setting(name, value) for name, value in settings.items()
    )
    for partition in explained.partitions:
        yield ""
        yield (
            f"{explained.topic}-{partition.partition} in {partition.log_dir}: "
            f"{counted(len(partition.segments), 'segment')}, log start offset {partition.log.log_start_offset}"
        )
        for finding in partition.segments:
            yield f"  {_moment(finding, settings)}"
            for reason in finding.kept_by:
                yield f"    {_reason(reason, finding, partition, explained)}"


def _segment(finding: SegmentFinding) -> dict[str, Any]:
    segment = finding.segment
    return {
        "base_offset": segment.base_offset,
        "size_bytes": segment.size_bytes,
        "largest_timestamp_ms": segment.largest_timestamp_ms,
        "deleted_earliest_ms": finding.deleted_earliest_ms,
        "deleted_latest_ms": finding.deleted_latest_ms,
        "rule": finding.rule,
        "kept_by": [reason.value for reason in finding.kept_by],
        "held_by": finding.held_by,
    }


def _setting(name: str, value: ConfigValue) -> str:
    return f"{name}={value.text} ({value.origin})"


def _moment(finding: SegmentFinding, settings: Mapping[str, ConfigValue]) -> str:
    segment = finding.segment
    what = f"segment {segment.base_offset} ({segment.size_bytes:,} bytes)"
    if finding.deleted_earliest_ms is None or finding.deleted_latest_ms is None:
        return f"{what} is not deleted"
    rule = finding.rule or ""
    by = "the log start offset" if rule == START_OFFSET_RULE else _setting(rule, settings[rule])
    earliest, latest = time_text(finding.deleted_earliest_ms), time_text(finding.deleted_latest_ms)
    return f"{what} is deleted between {earliest} and {latest} by {by}"


def _reason(reason: KeptBy, finding: SegmentFinding, partition: ExplainedPartition, explained: ExplainedTopic) -> str:
    """One sentence with the numbers, and what to change."""
    settings = explained.settings
    segment = finding.segment
    largest = time_text(segment.largest_timestamp_ms)
    delay = settings["file.delete.delay.ms"].text
    match reason:
        case KeptBy.EARLIER_SEGMENT:
            return (
                f"segment {finding.held_by} before it cannot go yet, and deletion stops at the first segment that "
                "stays: see there"
            )
        case KeptBy.COMPACT_ONLY:
            return (
                f"{_setting('cleanup.policy', settings['cleanup.policy'])}: neither time nor size deletes; add delete "
                "to cleanup.policy to change that"
            )
        case KeptBy.NO_LIMIT:
            limits = [_setting(name, settings[name]) for name in ("retention.ms", "retention.bytes")]
            return f"no limit deletes it: {limits[0]}, {limits[1]}; set one of them to change that"
        case KeptBy.WITHIN_RETENTION:
            return (
                f"its newest record is of {largest}, and {_setting('retention.ms', settings['retention.ms'])} counts "
                "from that one; a smaller segment.ms or segment.bytes makes shorter segments from now on"
            )
        case KeptBy.FUTURE_TIMESTAMP:
            ahead_ms = segment.largest_timestamp_ms - explained.now_ms
            return (
                f"its largest timestamp, {largest}, is {ahead_ms:,} ms in the future, and retention.ms counts from "
                "there; delete-records up to the next segment frees it, and message.timestamp.after.max.ms refuses "
                "such records from now on"
            )
        case KeptBy.ACTIVE_SEGMENT:
            return "it is the active segment: further records extend its life until it rolls"
        case KeptBy.ROLL_NOT_DUE:
            limits = [_setting(name, settings[name]) for name in ("segment.ms", "segment.bytes")]
            return (
                f"its first record, of {time_text(segment.first_timestamp_ms)}, is older than retention.ms, but it "
                f"does not roll before {time_text(segment.roll_after_ms or 0)} or its size: {limits[0]}, {limits[1]}"
            )
        case KeptBy.ABOVE_HIGH_WATERMARK:
            return (
                f"the high watermark, {partition.log.high_watermark}, is below its end, {segment.end_offset}: "
                "a segment goes only when all of its records are committed"
            )
        case KeptBy.OFFLINE_DIRECTORY:
            return f"the log directory {partition.log_dir} is offline: replace the disk and restart the broker"
        case KeptBy.CLEANER_DISABLED:
            return "the cleaner deletes from compacted logs, and log.cleaner.enable is false"
        case KeptBy.CHECK_INTERVAL:
            return (
                f"it may go now: retention checks every {partition.log.check_interval_ms:,} ms, and the files are "
                f"removed file.delete.delay.ms={delay} later"
            )
