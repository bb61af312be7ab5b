"""Pushed-down filters on topic, partition, offset and timestamp.

Excluded partitions are not planned, offsets bound the ranges exactly, and a minimum timestamp skips segments, byte
ranges and batches by index and header, before any payload is read. Filters on topic, partition and offset are fully
applied here; Spark applies those on timestamp again, because a batch's header has only the largest timestamp.

The reader has the method `pushFilters` only when the option of that name is true: Spark refuses every read of a source
with that method while `spark.sql.python.filterPushdown.enabled` is false, which is its default.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from barnabas.pipeline.reading.offsets import OffsetRange
from barnabas.protocol.topic_partition import TopicPartition

_INT64_MAX: Final = (1 << 63) - 1
_TOPIC: Final = ("topic",)
_PARTITION: Final = ("partition",)
_OFFSET: Final = ("offset",)
_TIMESTAMP: Final = ("timestamp",)
_NEVER_NULL: Final = frozenset({_TOPIC, _PARTITION, _OFFSET})
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Limits:
    """What passes the filters: topics and partitions (None: all), offsets [first, end), a minimum timestamp in ms."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_offset: int = 0
    end_offset: int = _INT64_MAX
    min_timestamp: int | None = None

    def allows(self, topic_partition: TopicPartition) -> bool:
        """Return whether records of this partition can pass."""
        return (self.topics is None or topic_partition.topic in self.topics) and (
            self.partitions is None or topic_partition.partition in self.partitions
        )

    def narrow(self, whole: OffsetRange) -> OffsetRange:
        """Return the part of a range that can pass."""
        start = min(max(whole.start, self.first_offset), whole.end)
        return OffsetRange(whole.topic_partition, start, max(start, min(whole.end, self.end_offset)))


def limits_of(filters: Sequence[Filter]) -> tuple[Limits, list[Filter]]:
    """Return (the limits of all filters together, the filters that Spark still has to apply)."""
    limits = Limits()
    left: list[Filter] = []
    for each in filters:
        if isinstance(each, IsNotNull) and each.attribute in _NEVER_NULL:
            continue
        narrowed = _by_value(limits, each)
        if narrowed is None:
            left.append(each)
            continue
        limits = narrowed
        if limits.min_timestamp is not None and getattr(each, "attribute", ()) == _TIMESTAMP:
            left.append(each)
    return limits, left


def _by_value(limits: Limits, each: Filter) -> Limits | None:
    """Return the limits narrowed by one more filter; None when the filter cannot be used here."""
    match each:
        case EqualTo(attribute=column, value=value) | EqualNullSafe(attribute=column, value=value):
            if column == _TIMESTAMP:
                return _from_time(limits, value)
            return _among(limits, column, (value,))
        case In(attribute=column, value=values):
            return _among(limits, column, values)
        case GreaterThan(attribute=column, value=value) | GreaterThanOrEqual(attribute=column, value=value):
            if column == _TIMESTAMP:
                return _from_time(limits, value)
            least = _whole(value)
            if column != _OFFSET or least is None:
                return None
            first = least + 1 if isinstance(each, GreaterThan) else least
            return replace(limits, first_offset=max(limits.first_offset, first))
        case LessThan(attribute=column, value=value) | LessThanOrEqual(attribute=column, value=value):
            most = _whole(value)
            if column != _OFFSET or most is None:
                return None
            end = most if isinstance(each, LessThan) else most + 1
            return replace(limits, end_offset=max(0, min(limits.end_offset, end)))
    return None


def _among(limits: Limits, column: tuple[str, ...], values: Iterable[object]) -> Limits | None:
    listed = list(values)
    if column == _TOPIC:
        topics = frozenset(value for value in listed if isinstance(value, str))
        if len(topics) != len(set(listed)):
            return None
        return replace(limits, topics=topics if limits.topics is None else limits.topics & topics)
    numbers = frozenset(number for number in map(_whole, listed) if number is not None)
    if len(numbers) != len(set(listed)):
        return None
    if column == _PARTITION:
        return replace(limits, partitions=numbers if limits.partitions is None else limits.partitions & numbers)
    if column == _OFFSET and len(numbers) == 1:
        (offset,) = numbers
        return replace(
            limits,
            first_offset=max(limits.first_offset, offset),
            end_offset=max(0, min(limits.end_offset, offset + 1)),
        )
    return None


def _from_time(limits: Limits, value: object) -> Limits | None:
    if not isinstance(value, dt.datetime):
        return None
    moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    milliseconds = (moment - _EPOCH) // dt.timedelta(milliseconds=1)  # rounded down: never later than the filter's
    known = limits.min_timestamp
    return replace(limits, min_timestamp=milliseconds if known is None else max(known, milliseconds))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
