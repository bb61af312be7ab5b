"""Turns options into offset ranges, and ranges into parts for tasks, by the rules of Spark's Kafka source.

`ReadableLog` is the interface of both places to read from, the broker and segment files.

Source: Spark's KafkaOffsetReader, KafkaOffsetRangeCalculator, KafkaMicroBatchStream.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from pyspark.sql.datasource import InputPartition

from barnabas.pipeline.errors import DataLossError, OptionError
from barnabas.pipeline.reading.offsets import (
    EARLIEST,
    LATEST,
    Bound,
    BoundKind,
    OffsetRange,
    Offsets,
    TopicIds,
    names_of,
)
from barnabas.pipeline.reading.options import ReadOptions
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class ReadableLog(Protocol):
    """Partitions that a driver can plan reads of. Methods raise the errors that `in_one_sentence` handles."""

    def partitions(self) -> frozenset[TopicPartition]:
        """Return the partitions of the subscription now. Raises OptionError for a topic that does not exist."""
        ...

    def topic_ids(self) -> TopicIds:
        """Return the ids of the topics that `partitions` found last."""
        ...

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the log start offsets."""
        ...

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the offsets after the last record."""
        ...

    def at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after each timestamp (ms); None when no record is that late."""
        ...

    def parts(self, ranges: Sequence[OffsetRange], min_timestamp: int | None) -> Sequence[InputPartition]:
        """Return one part for each task. Records older than `min_timestamp` (ms) may be skipped."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


def starting_offsets(log: ReadableLog, options: ReadOptions, partitions: frozenset[TopicPartition]) -> Offsets:
    """Return the offsets at which a read begins. Raises OptionError."""
    bound = options.starting
    if bound.kind in (BoundKind.TIMESTAMP, BoundKind.TIMESTAMPS):
        found = log.at(_timestamps(bound, partitions))
        late = [partition for partition, offset in found.items() if offset is None]
        if late and not options.latest_for_late_timestamps:
            raise OptionError(
                f"option {bound.option}: {names_of(late)} has no record that late "
                "(startingOffsetsByTimestampStrategy=latest starts at the end instead)"
            )
        return {**log.latest(late), **{tp: offset for tp, offset in found.items() if offset is not None}}
    return _offsets(log, bound, partitions)


def ending_offsets(log: ReadableLog, options: ReadOptions, partitions: frozenset[TopicPartition]) -> Offsets:
    """Return the offsets at which a batch read ends (exclusive). Raises OptionError.

    A timestamp after the last record means the end of the log.
    """
    bound = options.ending
    if bound.kind in (BoundKind.TIMESTAMP, BoundKind.TIMESTAMPS):
        found = log.at(_timestamps(bound, partitions))
        late = [partition for partition, offset in found.items() if offset is None]
        return {**log.latest(late), **{tp: offset for tp, offset in found.items() if offset is not None}}
    return _offsets(log, bound, partitions)


def checked_range(
    options: ReadOptions, partition: TopicPartition, start: int, end: int, earliest: int, latest: int
) -> OffsetRange:
    """Return the part of a range that exists. Raises DataLossError when some is missing and failOnDataLoss is true."""
    if start < earliest < end or (start < earliest and start != end):
        data_loss(
            options, f"{partition}: offsets {start} to {min(earliest, end) - 1} are gone, the log begins at {earliest}"
        )
    if max(start, end) > latest:
        data_loss(options, f"{partition}: offset {max(start, end)} was requested, but the log ends at {latest}")
    start = min(max(start, earliest), latest)
    return OffsetRange(partition, start, max(start, min(end, latest)))


def data_loss(options: ReadOptions, what: str) -> None:
    """Raise DataLossError, or warn when failOnDataLoss is false."""
    sentence = f"{what} (retention, a deletion, or another log under the same name; read from {options.place})"
    if options.fail_on_data_loss:
        raise DataLossError(f"{sentence}. With failOnDataLoss=false the remaining records would be read")
    logger.warning("%s; continuing, because failOnDataLoss is false", sentence)


def split_by_count(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Split into at least `min_partitions` parts of at most `max_records` offsets, evenly; empty ranges are dropped."""
    parts = [each for each in ranges if each.size > 0]
    if max_records is not None:
        parts = [part for each in parts for part in _divided(each, math.ceil(each.size / max_records))]
    if min_partitions is None or not parts or len(parts) >= min_partitions:
        return parts
    total = sum(each.size for each in parts)
    whole = [each for each in parts if _part_count(each.size, total, min_partitions) == 1]
    large_total = total - sum(each.size for each in whole)
    left = max(min_partitions - len(whole), 1)
    divided: list[OffsetRange] = []
    for each in parts:
        divided += [each] if each in whole else _divided(each, _part_count(each.size, large_total, left))
    return divided


def rate_limited(limit: int, start: Offsets, latest: Offsets) -> Offsets:
    """Return the end offsets of a micro-batch of `limit` offsets, shared in proportion to each partition's backlog."""
    sizes = {partition: end - start[partition] for partition, end in latest.items() if end > start[partition]}
    total = sum(sizes.values())
    if total <= limit:
        return latest
    reached = dict(latest)
    for partition, size in sizes.items():
        share = limit * (size / total)
        count = math.ceil(share) if share < 1 else math.floor(share)
        reached[partition] = min(start[partition] + count, latest[partition])
    return reached


def _offsets(log: ReadableLog, bound: Bound, partitions: frozenset[TopicPartition]) -> Offsets:
    if bound.kind is BoundKind.EARLIEST:
        return log.earliest(partitions)
    if bound.kind is BoundKind.LATEST:
        return log.latest(partitions)
    _ensure_exactly(bound, partitions)
    given = bound.by_partition
    return {
        **given,
        **log.earliest([partition for partition, offset in given.items() if offset == EARLIEST]),
        **log.latest([partition for partition, offset in given.items() if offset == LATEST]),
    }


def _timestamps(bound: Bound, partitions: frozenset[TopicPartition]) -> Offsets:
    if bound.kind is BoundKind.TIMESTAMP:
        return dict.fromkeys(partitions, bound.timestamp)
    _ensure_exactly(bound, partitions)
    return bound.by_partition


def _ensure_exactly(bound: Bound, partitions: frozenset[TopicPartition]) -> None:
    missing = partitions - bound.by_partition.keys()
    if missing:
        raise OptionError(
            f"option {bound.option} must name every partition that is read (-2 is the earliest offset, -1 the latest): "
            f"it lacks {names_of(missing)}"
        )
    extra = bound.by_partition.keys() - partitions
    if extra:
        raise OptionError(f"option {bound.option} names partitions that are not read: {names_of(extra)}")


def _part_count(size: int, total: int, min_partitions: int) -> int:
    return max(1, math.floor(size / total * min_partitions + 0.5)) if total else 1


def _divided(whole: OffsetRange, count: int) -> list[OffsetRange]:
    parts = []
    start, remaining = whole.start, whole.size
    for index in range(count):
        size = remaining // (count - index)
        remaining -= size
        if size:
            parts.append(OffsetRange(whole.topic_partition, start, start + size))
        start += size
    return parts
