"""The retention rules: three, in this order, each from the oldest segment to the first one that stays.

    start offset    the next segment begins at or below the log start offset (also on compacted topics)
    size            without the segment the log still has retention.bytes: it never gets smaller than the limit
    time            the segment's largest timestamp is more than retention.ms old (its file's age without timestamps)

A segment is deleted only when the high watermark has passed its end. The active one may be deleted by size and time
unless it is empty: the log rolls a new one first. The functions change nothing; they may read a time index.
Source: Kafka UnifiedLog.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from enum import Enum
from functools import partial
from itertools import islice

from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView
from barnabas.config.log_config import LogConfig

logger = logging.getLogger(__name__)


class RetentionRule(Enum):
    """The reason for a deletion; the value is for log lines."""

    START_OFFSET = "log start offset"
    SIZE = "retention.bytes"
    TIME = "retention.ms"


def rules_of(config: LogConfig) -> tuple[RetentionRule, ...]:
    """Return the rules that apply under this cleanup.policy."""
    return tuple(RetentionRule) if config.delete else (RetentionRule.START_OFFSET,)


def deletable_segments(
    rule: RetentionRule,
    view: SegmentsView,
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now_ms: int,
    most: int = sys.maxsize,
) -> tuple[LogSegment, ...]:
    """Return the oldest segments that the rule deletes, at most as many as `most`. Raises OSError."""
    prefix = partial(_prefix, view, high_watermark, log_end_offset, most)
    if rule is RetentionRule.START_OFFSET:
        return prefix(lambda _, end: 0 <= end <= log_start_offset)
    if rule is RetentionRule.TIME:
        if config.retention_ms < 0:
            return ()
        return prefix(lambda segment, _: _is_too_old(segment, now_ms, config.retention_ms))
    excess_bytes = sum(segment.size_bytes for segment in view.segments) - config.retention_bytes
    if config.retention_bytes < 0 or excess_bytes < 0:
        return ()

    def is_in_excess(segment: LogSegment, _: int) -> bool:
        nonlocal excess_bytes
        if excess_bytes < segment.size_bytes:
            return False
        excess_bytes -= segment.size_bytes
        return True

    return prefix(is_in_excess)


def _prefix(
    view: SegmentsView,
    high_watermark: int,
    log_end_offset: int,
    most: int,
    gives_up: Callable[[LogSegment, int], bool],
) -> tuple[LogSegment, ...]:
    """Return the first segments for which `gives_up(segment, base offset of the next one or -1)` holds."""
    count = 0
    for index, segment in enumerate(islice(view.segments, most)):
        is_last = index == len(view.segments) - 1
        next_base = -1 if is_last else view.base_offsets[index + 1]
        end_offset = log_end_offset if is_last else next_base
        if high_watermark < end_offset or (is_last and segment.size_bytes == 0) or not gives_up(segment, next_base):
            break
        count += 1
    return view.segments[:count]


def _is_too_old(segment: LogSegment, now_ms: int, retention_ms: int) -> bool:
    largest = segment.largest_timestamp()
    if largest > now_ms:
        logger.warning("%s has timestamps in the future (%s > %s): retention.ms keeps it", segment, largest, now_ms)
    return now_ms - largest > retention_ms
