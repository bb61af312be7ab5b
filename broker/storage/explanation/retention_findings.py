"""When retention deletes each segment, which property decides, and what keeps the segment until then.

The rules are those of `log.retention`, applied to the future: for each segment the first moment at which it and all
segments before it may go. The moments hold if nothing more is appended and no config changes: appends bring deletion
by size forward, and postpone the deletion of the active segment by time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from barnabas.broker.storage.explanation.retention_facts import LogFacts, SegmentFacts

START_OFFSET_RULE = "log.start.offset"
SIZE_RULE = "retention.bytes"
TIME_RULE = "retention.ms"


class KeptBy(StrEnum):
    """The reason for which a segment is still there."""

    EARLIER_SEGMENT = "earlier_segment"
    """Its own rule would delete it sooner: deletion stops at the first segment that stays."""
    COMPACT_ONLY = "compact_only"
    UNREAD_CONFIG = "unread_config"
    """A stored value that decides about deletion is not understood."""
    NO_LIMIT = "no_limit"
    WITHIN_RETENTION = "within_retention"
    """Its newest record is not older than retention.ms."""
    FUTURE_TIMESTAMP = "future_timestamp"
    ACTIVE_SEGMENT = "active_segment"
    ROLL_NOT_DUE = "roll_not_due"
    """The active segment has records older than retention.ms, and takes newer ones until it rolls."""
    ABOVE_HIGH_WATERMARK = "above_high_watermark"
    OFFLINE_DIRECTORY = "offline_directory"
    CLEANER_DISABLED = "cleaner_disabled"
    """The cleaner deletes from compacted logs, and does not run."""
    UNCLEANABLE = "uncleanable"
    """The cleaner deletes from compacted logs, and has given this one up."""
    MOVE_UNDER_WAY = "move_under_way"
    """It may go now; retention leaves the log alone until its move to another log directory is over."""
    CHECK_INTERVAL = "check_interval"
    """It may go now; the next check deletes it."""


@dataclass(frozen=True, slots=True)
class SegmentFinding:
    """The future of one segment.

    `deleted_earliest_ms` and `deleted_latest_ms` are wall-clock times at which it leaves the log, None for never.
    The latest one is also None, and not known, while the log is being moved. Its files are removed
    file.delete.delay.ms later. `rule` is None if nothing deletes it. `held_by` is the base offset of
    the earlier segment that it waits for.
    """

    segment: SegmentFacts
    deleted_earliest_ms: int | None
    deleted_latest_ms: int | None
    rule: str | None
    kept_by: tuple[KeptBy, ...]
    held_by: int | None


_DUE: Final = (KeptBy.CHECK_INTERVAL, KeptBy.MOVE_UNDER_WAY)


def explain_retention(log: LogFacts, *, now_ms: int) -> tuple[SegmentFinding, ...]:
    """Explain each segment of a log."""
    findings: list[SegmentFinding] = []
    bytes_left = sum(segment.size_bytes for segment in log.segments)
    latest_so_far: int | None = now_ms
    blocker: int | None = None
    for index, segment in enumerate(log.segments):
        bytes_left -= segment.size_bytes
        is_active = index == len(log.segments) - 1
        own, rule = _own_moment(log, segment, bytes_after=bytes_left, is_active=is_active, now_ms=now_ms)
        reasons = _own_reasons(log, segment, rule, own=own, is_active=is_active, now_ms=now_ms)
        waits = own is not None and (latest_so_far is None or own < latest_so_far)
        if waits:
            reasons = [KeptBy.EARLIER_SEGMENT, *(each for each in reasons if each not in _DUE)]
        moment = None if latest_so_far is None or own is None else max(own, latest_so_far)
        held_by = blocker if waits else None
        if not waits and latest_so_far is not None:
            blocker = segment.base_offset
        latest_so_far = moment
        latest = None
        if moment is not None and log.check_interval_ms is not None and not log.is_moving:
            latest = moment + log.check_interval_ms
        findings.append(
            SegmentFinding(segment, moment, latest, None if moment is None else rule, tuple(reasons), held_by)
        )
    return tuple(findings)


def _own_moment(
    log: LogFacts, segment: SegmentFacts, *, bytes_after: int, is_active: bool, now_ms: int
) -> tuple[int | None, str | None]:
    """The first moment at which the segment's own rules delete it, and the rule."""
    config = log.config
    if not log.is_online or log.check_interval_ms is None or _is_given_up(log):
        return None, None
    if log.high_watermark < segment.end_offset or (is_active and segment.size_bytes == 0):
        return None, None
    if not is_active and segment.end_offset <= log.log_start_offset:
        return now_ms, START_OFFSET_RULE
    if not config.delete:
        return None, None
    if 0 <= config.retention_bytes <= bytes_after:
        return now_ms, SIZE_RULE
    if config.retention_ms < 0:
        return None, None
    return max(now_ms, segment.largest_timestamp_ms + config.retention_ms + 1), TIME_RULE


def _is_given_up(log: LogFacts) -> bool:
    return log.config.compact and log.is_uncleanable


def _own_reasons(
    log: LogFacts, segment: SegmentFacts, rule: str | None, *, own: int | None, is_active: bool, now_ms: int
) -> list[KeptBy]:
    """What keeps the segment apart from the segments before it."""
    config = log.config
    if not log.is_online:
        return [KeptBy.OFFLINE_DIRECTORY]
    if log.check_interval_ms is None:
        return [KeptBy.CLEANER_DISABLED]
    if _is_given_up(log):
        return [KeptBy.UNCLEANABLE]
    if log.high_watermark < segment.end_offset:
        return [KeptBy.ABOVE_HIGH_WATERMARK]
    if own is not None and own <= now_ms:
        return [KeptBy.MOVE_UNDER_WAY if log.is_moving else KeptBy.CHECK_INTERVAL]
    reasons = [KeptBy.ACTIVE_SEGMENT] if is_active else []
    if is_active and segment.size_bytes == 0:
        return reasons
    if config.unread:
        return [*reasons, KeptBy.UNREAD_CONFIG]
    if not config.delete:
        return [*reasons, KeptBy.COMPACT_ONLY]
    if rule is None:
        return [*reasons, KeptBy.NO_LIMIT]
    reasons.append(KeptBy.FUTURE_TIMESTAMP if segment.largest_timestamp_ms > now_ms else KeptBy.WITHIN_RETENTION)
    is_overdue = 0 <= segment.first_timestamp_ms < now_ms - config.retention_ms
    if is_overdue and segment.roll_after_ms is not None and segment.roll_after_ms >= now_ms:
        reasons.append(KeptBy.ROLL_NOT_DUE)
    return reasons
