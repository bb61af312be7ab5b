"""An explained topic as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.broker.storage.explanation.retention_findings import START_OFFSET_RULE, KeptBy
from barnabas.broker.storage.explanation.topic_explanation import RETENTION_SETTINGS
from barnabas.config.log_config import KEPT
from barnabas.explanation.compaction import compaction_sentences
from barnabas.explanation.setting import problem_sentence, value_json
from barnabas.explanation.wording import counted, time_text
from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedCompaction,
    ExplainedCopy,
    ExplainedPartition,
    ExplainedSegment,
    ExplainTopicResponse,
    SettingValue,
)


class SegmentExplanation(NamedTuple):
    """When one segment goes, and a sentence for each reason that keeps it."""

    base_offset: int
    moment: str
    reasons: tuple[str, ...]


class Explanation(NamedTuple):
    """One partition in sentences: the settings that decide, what is about all of it, its segments."""

    heading: str
    partition: tuple[str, ...]
    segments: tuple[SegmentExplanation, ...]


def explanation_of(explained: ExplainTopicResponse, partition: ExplainedPartition) -> Explanation:
    """Return the sentences of one of the explained partitions."""
    settings = {each.name: each for each in explained.settings}
    shown = [each for each in explained.settings if each.name in RETENTION_SETTINGS]
    compaction = () if partition.compaction is None else compaction_sentences(partition.compaction, settings)
    removable = (_removable(partition, settings),) if partition.removable_segments else ()
    moving = (_moving(partition, partition.copy),) if partition.copy is not None else ()
    return Explanation(
        f"At {time_text(explained.now_ms)}: " + ", ".join(map(_setting, shown)),
        (*_unread(explained), *(sentence.strip() for sentence in compaction), *removable, *moving),
        tuple(
            SegmentExplanation(
                segment.base_offset,
                _moment(segment, settings),
                tuple(_reason(each, segment, partition, settings, explained.now_ms) for each in segment.kept_by),
            )
            for segment in partition.segments
        ),
    )


def json_of(topic: str, explained: ExplainTopicResponse) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    return {
        "topic": topic,
        "now_ms": explained.now_ms,
        "settings": {each.name: value_json(each) for each in explained.settings},
        "partitions": [
            {
                "partition": each.partition,
                "log_dir": each.log_dir,
                "log_start_offset": each.log_start_offset,
                "high_watermark": each.high_watermark,
                "check_interval_ms": each.check_interval_ms,
                "segments": [_segment(segment) for segment in each.segments],
                "compaction": None if each.compaction is None else _compaction(each.compaction),
                "removable_segments": each.removable_segments,
                "removable_bytes": each.removable_bytes,
                "copy": None if each.copy is None else each.copy.as_dict(),
            }
            for each in explained.partitions
        ],
    }


def sentences_of(topic: str, explained: ExplainTopicResponse) -> Iterator[str]:
    """The lines for people: the settings, then each partition with its segments."""
    settings = {each.name: each for each in explained.settings}
    shown = [each for each in explained.settings if each.name in RETENTION_SETTINGS]
    yield f"{topic} at {time_text(explained.now_ms)}: " + ", ".join(map(_setting, shown))
    yield from _unread(explained)
    for partition in explained.partitions:
        yield ""
        yield (
            f"{topic}-{partition.partition} in {partition.log_dir}: "
            f"{counted(len(partition.segments), 'segment')}, log start offset {partition.log_start_offset}"
        )
        if partition.compaction is not None:
            yield from compaction_sentences(partition.compaction, settings)
        if partition.removable_segments:
            yield f"  {_removable(partition, settings)}"
        if partition.copy is not None:
            yield f"  {_moving(partition, partition.copy)}"
        for segment in partition.segments:
            yield f"  {_moment(segment, settings)}"
            for reason in segment.kept_by:
                yield f"    {_reason(reason, segment, partition, settings, explained.now_ms)}"


def _segment(segment: ExplainedSegment) -> dict[str, Any]:
    return {
        "base_offset": segment.base_offset,
        "size_bytes": segment.size_bytes,
        "largest_timestamp_ms": segment.largest_timestamp_ms,
        "deleted_earliest_ms": segment.deleted_earliest_ms,
        "deleted_latest_ms": segment.deleted_latest_ms,
        "rule": segment.rule,
        "kept_by": list(segment.kept_by),
        "held_by": segment.held_by,
    }


def _compaction(compaction: ExplainedCompaction) -> dict[str, Any]:
    return {**compaction.as_dict(), "waits_for": list(compaction.waits_for)}


def _unread(explained: ExplainTopicResponse) -> Iterator[str]:
    return map(problem_sentence, (each for each in explained.settings if each.problem is not None))


def _setting(setting: SettingValue) -> str:
    return f"{setting.name}={setting.value} ({setting.origin})"


def _interval(settings: Mapping[str, SettingValue]) -> str:
    """The property that decides how often retention checks the topic."""
    is_compacted = "compact" in (settings["cleanup.policy"].value or "")
    return _setting(settings["log.cleaner.backoff.ms" if is_compacted else "log.retention.check.interval.ms"])


def _moment(segment: ExplainedSegment, settings: Mapping[str, SettingValue]) -> str:
    what = f"segment {segment.base_offset} ({segment.size_bytes:,} bytes)"
    if segment.deleted_earliest_ms is None:
        return f"{what} is not deleted"
    rule = segment.rule or ""
    by = "the log start offset" if rule == START_OFFSET_RULE else _setting(settings[rule])
    earliest = time_text(segment.deleted_earliest_ms)
    if segment.deleted_latest_ms is None:
        return f"{what} is deleted at {earliest} at the earliest, and not before the partition's move is over, by {by}"
    return f"{what} is deleted between {earliest} and {time_text(segment.deleted_latest_ms)} by {by}"


def _removable(partition: ExplainedPartition, settings: Mapping[str, SettingValue]) -> str:
    return (
        f"{counted(partition.removable_segments, 'segment')} ({partition.removable_bytes:,} bytes) left the log and "
        f"still use the disk: files are removed {_setting(settings['file.delete.delay.ms'])} after that"
    )


def _moving(partition: ExplainedPartition, copy: ExplainedCopy) -> str:
    size = sum(each.size_bytes for each in partition.segments)
    return (
        f"a move to {copy.log_dir} has copied {copy.size_bytes:,} of {size:,} bytes; it goes on while the broker runs, "
        "and nothing is deleted or compacted before it is over"
    )


def offline_directory_sentence(path: str) -> str:
    """What to do about a log directory that has failed."""
    return f"the log directory {path} is offline: replace the disk and restart the broker"


def _reason(
    reason: str,
    segment: ExplainedSegment,
    partition: ExplainedPartition,
    settings: Mapping[str, SettingValue],
    now_ms: int,
) -> str:
    """One sentence with the numbers, and what to change."""
    largest = time_text(segment.largest_timestamp_ms)
    match reason:
        case KeptBy.EARLIER_SEGMENT:
            return (
                f"segment {segment.held_by} before it cannot go yet, and deletion stops at the first segment that "
                "stays: see there"
            )
        case KeptBy.COMPACT_ONLY:
            return (
                f"{_setting(settings['cleanup.policy'])}: neither time nor size deletes; add delete "
                "to cleanup.policy to change that"
            )
        case KeptBy.UNREAD_CONFIG:
            return f"a stored config is not understood, see above: {KEPT}"
        case KeptBy.NO_LIMIT:
            limits = [_setting(settings[name]) for name in ("retention.ms", "retention.bytes")]
            return f"no limit deletes it: {limits[0]}, {limits[1]}; set one of them to change that"
        case KeptBy.WITHIN_RETENTION:
            return (
                f"its newest record is of {largest}, and {_setting(settings['retention.ms'])} counts "
                "from that one; a smaller segment.ms or segment.bytes makes shorter segments from now on"
            )
        case KeptBy.FUTURE_TIMESTAMP:
            ahead_ms = segment.largest_timestamp_ms - now_ms
            return (
                f"its largest timestamp, {largest}, is {ahead_ms:,} ms in the future, and retention.ms counts from "
                "there; delete-records up to the next segment frees it, and message.timestamp.after.max.ms refuses "
                "such records from now on"
            )
        case KeptBy.ACTIVE_SEGMENT:
            return "it is the active segment: further records extend its life until it rolls"
        case KeptBy.ROLL_NOT_DUE:
            limits = [_setting(settings[name]) for name in ("segment.ms", "segment.bytes")]
            return (
                f"its first record, of {time_text(segment.first_timestamp_ms)}, is older than retention.ms, but it "
                f"does not roll before {time_text(segment.roll_after_ms or 0)} or its size: {limits[0]}, {limits[1]}"
            )
        case KeptBy.ABOVE_HIGH_WATERMARK:
            return (
                f"the high watermark, {partition.high_watermark}, is below its end, {segment.end_offset}: "
                "a segment goes only when all of its records are committed"
            )
        case KeptBy.OFFLINE_DIRECTORY:
            return offline_directory_sentence(partition.log_dir)
        case KeptBy.CLEANER_DISABLED:
            return f"the cleaner deletes from compacted logs, and {_setting(settings['log.cleaner.enable'])}"
        case KeptBy.UNCLEANABLE:
            return (
                "the cleaner deletes from compacted logs, and has given this one up, see above: repair the log and "
                "restart the broker"
            )
        case KeptBy.MOVE_UNDER_WAY:
            return (
                "it may go now, but the partition is being moved to another log directory, and retention waits for "
                "the end of the move: `barnabas partition dirs` shows how far it is"
            )
        case KeptBy.CHECK_INTERVAL:
            return (
                f"it may go now: retention checks every {partition.check_interval_ms:,} ms ({_interval(settings)}), "
                f"and the files are removed {_setting(settings['file.delete.delay.ms'])} later"
            )
        case _:
            return reason  # of a newer broker
