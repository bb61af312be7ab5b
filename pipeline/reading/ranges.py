"""From options to ranges of offsets, and from ranges to parts for tasks: the rules of Spark's Kafka source.

`ReadableLog` is what is read from, the broker or files. Source: Spark's KafkaOffsetReader, KafkaOffsetRangeCalculator,
KafkaMicroBatchStream.
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
    """Where records lie. Its methods raise what `in_one_sentence` knows."""

    def partitions(self) -> frozenset[TopicPartition]:
        """What the subscription means now. Raises OptionError for a topic that does not exist."""
        ...

    def topic_ids(self) -> TopicIds:
        """Of the topics that `partitions` found last."""
        ...

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset that is still there."""
        ...

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The offset after the last record."""
        ...

    def at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset whose timestamp is the given one or later; None where no record is that late."""
        ...

    def parts(self, ranges: Sequence[OffsetRange], min_timestamp: int | None) -> Sequence[InputPartition]:
        """One for each task. Records that are older than `min_timestamp` need not be read."""
        ...

    def close(self) -> None:
        """Let connections go."""
        ...


def starting_offsets(log: ReadableLog, options: ReadOptions, partitions: frozenset[TopicPartition]) -> Offsets:
    """Where a read begins. Raises OptionError."""
    bound = options.starting
    if bound.kind in (BoundKind.TIMESTAMP, BoundKind.TIMESTAMPS):
        found = log.at(_timestamps(bound, partitions))
        late = [partition for partition, offset in found.items() if offset is None]
        if late and not options.latest_for_late_timestamps:
            raise OptionError(
                f"option {bound.option}: {names_of(late)} has no record that late "
                "(startingOffsetsByTimestampStrategy=latest starts at the end there)"
            )
        return {**log.latest(late), **{tp: offset for tp, offset in found.items() if offset is not None}}
    return _offsets(log, bound, partitions)


def ending_offsets(log: ReadableLog, options: ReadOptions, partitions: frozenset[TopicPartition]) -> Offsets:
    """Where a batch read ends (exclusive); a timestamp that no record reaches means the end. Raises OptionError."""
    bound = options.ending
    if bound.kind in (BoundKind.TIMESTAMP, BoundKind.TIMESTAMPS):
        found = log.at(_timestamps(bound, partitions))
        late = [partition for partition, offset in found.items() if offset is None]
        return {**log.latest(late), **{tp: offset for tp, offset in found.items() if offset is not None}}
    return _offsets(log, bound, partitions)


def checked_range(
    options: ReadOptions, partition: TopicPartition, start: int, end: int, earliest: int, latest: int
) -> OffsetRange:
    """The range as far as it is there. Raises DataLossError when a part is not, and failOnDataLoss is true."""
    if start < earliest < end or (start < earliest and start != end):
        data_loss(
            options, f"{partition}: offsets {start} to {min(earliest, end) - 1} are gone, it begins at {earliest}"
        )
    if max(start, end) > latest:
        data_loss(options, f"{partition}: offset {max(start, end)} was asked for, it ends at {latest}")
    start = min(max(start, earliest), latest)
    return OffsetRange(partition, start, max(start, min(end, latest)))


def data_loss(options: ReadOptions, what: str) -> None:
    """Raises DataLossError, or warns, as the option says."""
    sentence = f"{what} (retention, a deletion, or another log under the same name; read from {options.place})"
    if options.fail_on_data_loss:
        raise DataLossError(f"{sentence}. With failOnDataLoss=false what is there would be read")
    logger.warning("%s; going on, because failOnDataLoss is false", sentence)


def split_by_count(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """At least so many parts, of at most so many offsets, in even sizes; empty ranges go."""
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
    """How far a micro-batch of `limit` offsets goes, each partition in proportion to what it has."""
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
        raise OptionError(f"option {bound.option} names what is not read: {names_of(extra)}")


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
