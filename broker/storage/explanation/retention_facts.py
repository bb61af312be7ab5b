"""The facts of one log that decide when retention deletes its segments."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.storage.files.file_names import DELETED_SUFFIX, LOG_SUFFIX
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.state import LogState
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """One segment. `end_offset` is the next segment's base offset, or the log end offset.

    `largest_timestamp_ms` is the file's modification time if no record has a timestamp. `roll_after_ms` is set for an
    active segment with records: a batch with a later timestamp begins a new segment.
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    first_timestamp_ms: int
    roll_after_ms: int | None


@dataclass(frozen=True, slots=True)
class LogFacts:
    """One log, its segments in order of offsets; the last one is active.

    `check_interval_ms` is the time between two checks by retention, None if nothing checks the log. `is_uncleanable`:
    the cleaner, which deletes from compacted logs, has given the log up.
    """

    is_online: bool
    config: LogConfig
    log_start_offset: int
    high_watermark: int
    check_interval_ms: int | None
    segments: tuple[SegmentFacts, ...]
    is_moving: bool = False
    is_uncleanable: bool = False


def check_interval_ms(log_config: LogConfig, broker_config: BrokerConfig) -> int | None:
    """Return the time between two checks of a log by retention: by its own task, or by the cleaner if compacted."""
    if not log_config.compact:
        return broker_config.get_int("log.retention.check.interval.ms")
    return broker_config.get_int("log.cleaner.backoff.ms") if broker_config.get_bool("log.cleaner.enable") else None


def read_log_facts(
    log: ReadableLog, check_interval: int | None, *, is_moving: bool = False, is_uncleanable: bool = False
) -> LogFacts:
    """Read the facts of an open log; time indexes and first batches are read. Raises OSError, StorageError."""
    view = log.segments_view
    ends = (*view.base_offsets[1:], log.log_end_offset)
    config = log.config
    segments = []
    for index, (segment, end_offset) in enumerate(zip(view.segments, ends, strict=True)):
        is_empty = segment.size_bytes == 0
        is_active = index == len(view.segments) - 1
        first = -1 if is_empty else segment.first_timestamp()
        roll_after = first + config.max_segment_ms if is_active and first >= 0 else None
        segments.append(
            SegmentFacts(
                segment.base_offset,
                end_offset,
                segment.size_bytes,
                -1 if is_empty else segment.largest_timestamp(),
                first,
                roll_after,
            )
        )
    return LogFacts(
        is_online=log.state is LogState.ONLINE,
        config=config,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        check_interval_ms=check_interval,
        segments=tuple(segments),
        is_moving=is_moving,
        is_uncleanable=is_uncleanable,
    )


def files_to_remove(log: ReadableLog) -> tuple[int, int]:
    """Return the number and the size of segments that were deleted or replaced, and whose files are still there.

    Raises OSError.
    """
    count, size = 0, 0
    for path in log.directory.glob(f"*{LOG_SUFFIX}{DELETED_SUFFIX}"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue  # removed meanwhile
        count += 1
    return count, size
