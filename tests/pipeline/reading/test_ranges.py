"""Ranges, parts, limits of micro-batches and pushed filters, computed as in Spark's Kafka source. Without Spark."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from barnabas.pipeline.errors import DataLossError, OptionError
from barnabas.pipeline.reading.offsets import OffsetRange, Offsets, TopicIds, from_spark, to_spark
from barnabas.pipeline.reading.options import parse_read_options
from barnabas.pipeline.reading.ranges import rate_limited, split_by_count, starting_offsets
from barnabas.pipeline.reading.schema import source_schema
from barnabas.pipeline.source.batch import rules_of
from barnabas.pipeline.source.filters import Limits, limits_of
from barnabas.pipeline.source.stream import BarnabasStreamReader
from barnabas.protocol.topic_partition import TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))


class Clock:
    """Clock with settable seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class ListedLog:
    """A log with offsets only: [earliest, latest) by partition."""

    def __init__(self, extents: dict[TopicPartition, tuple[int, int]]) -> None:
        self.extents = extents
        self.ids: TopicIds = {}
        self.clock = Clock()

    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self.extents)

    def topic_ids(self) -> TopicIds:
        return self.ids

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self.extents[each][0] for each in partitions}

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self.extents[each][1] for each in partitions}

    def at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        raise AssertionError("not used by these tests")

    def parts(self, ranges: Sequence[OffsetRange], min_timestamp: int | None) -> Sequence[InputPartition]:
        return [InputPartition(each) for each in ranges if each.size]

    def close(self) -> None:
        pass


def stream(log: ListedLog, **given: str) -> BarnabasStreamReader:
    clock = log.clock
    options = parse_read_options(
        {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders", **given}, is_streaming=True
    )
    reader = BarnabasStreamReader(options, rules_of(options, source_schema(include_headers=False)), clock)
    reader._log = log
    return reader


def ranges(reader: BarnabasStreamReader, start: Offsets, end: Offsets) -> list[OffsetRange]:
    return [part.value for part in reader.partitions(to_spark(start), to_spark(end))]


def latest(reader: BarnabasStreamReader, start: Offsets, limit: Any = None) -> Offsets:
    return from_spark(reader.latestOffset(to_spark(start), limit or ReadAllAvailable()))


def test_a_limit_is_shared_in_proportion_and_everybody_gets_on() -> None:
    start, end = {A: 0, B: 0, C: 5}, {A: 900, B: 90, C: 6}
    assert rate_limited(100, start, end) == {A: 90, B: 9, C: 6}
    assert rate_limited(5000, start, end) == end


def test_ranges_are_divided_evenly_by_both_options() -> None:
    whole = [OffsetRange(A, 0, 10), OffsetRange(B, 3, 3), OffsetRange(C, 0, 2)]
    assert split_by_count(whole, None, None) == [OffsetRange(A, 0, 10), OffsetRange(C, 0, 2)]
    assert split_by_count(whole, None, 4) == [
        *(OffsetRange(A, 0, 3), OffsetRange(A, 3, 6), OffsetRange(A, 6, 10)),
        OffsetRange(C, 0, 2),
    ]
    assert len(split_by_count(whole, 6, None)) == 6
    assert split_by_count(whole, 1, None) == [OffsetRange(A, 0, 10), OffsetRange(C, 0, 2)]


def test_offsets_must_name_exactly_the_partitions_and_minus_one_and_two_are_the_ends() -> None:
    log = ListedLog({A: (3, 9), B: (0, 4)})

    def starting(text: str) -> Offsets:
        given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders", "startingOffsets": text}
        return starting_offsets(log, parse_read_options(given, is_streaming=True), log.partitions())

    assert starting('{"orders": {"0": -2, "1": -1}}') == {A: 3, B: 4}
    with pytest.raises(OptionError, match=r"option startingOffsets must name every partition.* it lacks orders-1"):
        starting('{"orders": {"0": 3}}')
    with pytest.raises(OptionError, match="option startingOffsets names partitions that are not read: orders-2"):
        starting('{"orders": {"0": 3, "1": 0, "2": 0}}')


def test_a_micro_batch_goes_as_far_as_its_limit() -> None:
    reader = stream(ListedLog({A: (0, 10), B: (0, 10)}), maxOffsetsPerTrigger="4")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    assert latest(reader, {A: 0, B: 0}, limit) == {A: 2, B: 2}
    assert latest(reader, {A: 0, B: 0}) == {A: 10, B: 10}
    assert latest(reader, {A: 10, B: 10}, limit) == {A: 10, B: 10}


def test_too_little_waits_until_it_is_enough_or_the_delay_is_over() -> None:
    log = ListedLog({A: (0, 3)})
    reader = stream(log, minOffsetsPerTrigger="5", maxTriggerDelay="10s")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    assert latest(reader, {A: 0}, limit) == {A: 0}
    log.extents[A] = (0, 5)
    assert latest(reader, {A: 0}, limit) == {A: 5}
    ranges(reader, {A: 0}, {A: 5})
    log.extents[A] = (0, 6)
    assert latest(reader, {A: 5}, limit) == {A: 5}
    log.clock.now += 10
    assert latest(reader, {A: 5}, limit) == {A: 6}


def test_available_now_neither_reads_what_comes_later_nor_waits() -> None:
    log = ListedLog({A: (0, 3)})
    reader = stream(log, minOffsetsPerTrigger="5")
    reader.prepareForTriggerAvailableNow()
    log.extents = {A: (0, 100), B: (0, 7)}
    assert latest(reader, {A: 0}, reader.getDefaultReadLimit()) == {A: 3}
    assert latest(reader, {A: 3}, reader.getDefaultReadLimit()) == {A: 3}


def test_a_partition_that_is_found_later_starts_at_its_earliest_offset() -> None:
    reader = stream(ListedLog({A: (0, 5), B: (2, 4)}))
    assert latest(reader, {A: 5}) == {A: 5, B: 4}
    assert ranges(reader, {A: 5}, {A: 5, B: 4}) == [OffsetRange(B, 2, 4)]


@pytest.mark.parametrize(
    ("extents", "start", "words"),
    [
        ({A: (4, 9)}, {A: 2}, "orders-0: offsets 2 to 3 are gone, the log begins at 4"),
        ({A: (0, 3)}, {A: 5}, "orders-0: the checkpoint is at offset 5, the log ends at 3"),
        ({A: (0, 9)}, {A: 0, B: 3}, "orders-1: in the checkpoint, but no longer there"),
    ],
)
def test_what_a_checkpoint_names_and_the_log_lacks_is_data_loss(
    extents: dict[TopicPartition, tuple[int, int]], start: Offsets, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    def micro_batch(**given: str) -> list[OffsetRange]:
        reader = stream(ListedLog(extents), **given)
        return ranges(reader, start, latest(reader, start))

    with pytest.raises(DataLossError, match=words):
        micro_batch()
    with caplog.at_level(logging.WARNING):
        found = micro_batch(failOnDataLoss="false")
    assert words in caplog.text
    assert all(extents[each.topic_partition][0] <= each.start for each in found)


def test_a_checkpoint_of_another_topic_is_refused_whatever_the_option_says() -> None:
    reader = stream(ListedLog({A: (0, 9)}), failOnDataLoss="false")
    with pytest.raises(OptionError, match="option checkpointLocation: it belongs to a query over payments-0"):
        latest(reader, {TopicPartition("payments", 0): 3})


def test_a_topic_that_was_made_again_is_data_loss_and_else_read_from_its_beginning() -> None:
    first = ListedLog({A: (0, 5)})
    first.ids = {"orders": "one"}
    checkpoint = stream(first).latestOffset({}, ReadAllAvailable())
    again = ListedLog({A: (0, 5)})  # it has reached the end offset of the first one
    again.ids = {"orders": "two"}

    with pytest.raises(DataLossError, match=r"orders was deleted and created again.* topic id one, now it is two"):
        stream(again).latestOffset(checkpoint, ReadAllAvailable())

    lenient = stream(again, failOnDataLoss="false")
    end = lenient.latestOffset(checkpoint, ReadAllAvailable())
    assert [part.value for part in lenient.partitions(checkpoint, end)] == [OffsetRange(A, 0, 5)]
    assert lenient.latestOffset(end, ReadAllAvailable()) == end


def test_a_micro_batch_that_was_planned_for_the_topic_before_is_data_loss() -> None:
    planned = to_spark({A: 2}, {"orders": "one"}), to_spark({A: 5}, {"orders": "one"})
    again = ListedLog({A: (0, 9)})
    again.ids = {"orders": "two"}

    with pytest.raises(DataLossError, match="orders was deleted and created again"):
        stream(again).partitions(*planned)
    assert stream(again, failOnDataLoss="false").partitions(*planned) == []


def test_a_checkpoint_without_topic_ids_goes_on_and_gets_them() -> None:
    log = ListedLog({A: (0, 9)})
    log.ids = {"orders": "one"}
    end = stream(log).latestOffset({"orders": {"0": 4}}, ReadAllAvailable())
    assert end == {"orders": {"0": 9}, "orders@one": {}}
    assert [part.value for part in stream(log).partitions({"orders": {"0": 4}}, end)] == [OffsetRange(A, 4, 9)]


NOON = dt.datetime(2024, 5, 1, 12, 0, 0, 500_300, tzinfo=dt.UTC)
NOON_MS = int(NOON.timestamp() * 1000)


@pytest.mark.parametrize(
    ("filters", "limits", "left"),
    [
        ([EqualTo(("topic",), "orders")], Limits(topics=frozenset({"orders"})), 0),
        ([In(("partition",), (1, 2)), EqualTo(("partition",), 2)], Limits(partitions=frozenset({2})), 0),
        ([GreaterThan(("offset",), 4), LessThanOrEqual(("offset",), 9)], Limits(first_offset=5, end_offset=10), 0),
        ([GreaterThanOrEqual(("offset",), 4), LessThan(("offset",), 9)], Limits(first_offset=4, end_offset=9), 0),
        ([EqualTo(("offset",), 7)], Limits(first_offset=7, end_offset=8), 0),
        ([GreaterThanOrEqual(("timestamp",), NOON)], Limits(min_timestamp=NOON_MS), 1),
        ([LessThan(("timestamp",), NOON)], Limits(), 1),
        ([IsNotNull(("offset",)), IsNotNull(("value",))], Limits(), 1),
        ([Not(EqualTo(("partition",), 2)), EqualTo(("key",), b"k")], Limits(), 2),
        ([In(("offset",), (1, 9))], Limits(), 1),
    ],
)
def test_filters_bound_what_is_read_and_the_others_are_left_to_spark(
    filters: list[Filter], limits: Limits, left: int
) -> None:
    found, others = limits_of(filters)
    assert found == limits
    assert len(others) == left
    assert all(any(other is each for each in filters) for other in others)


def test_a_range_is_narrowed_never_widened() -> None:
    assert Limits(first_offset=3, end_offset=8).narrow(OffsetRange(A, 0, 10)) == OffsetRange(A, 3, 8)
    assert Limits(first_offset=30).narrow(OffsetRange(A, 0, 10)).size == 0
    assert Limits(end_offset=0).narrow(OffsetRange(A, 5, 10)).size == 0
