"""The latest record of each key, on DataFrames."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from barnabas.pipeline.jobs.snapshot import latest_per_key
from tests.support.spark.frames import Stored, records_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def offsets_of(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in frame.collect())


def test_the_latest_record_of_each_key_stays_with_all_its_columns(spark: SparkSession) -> None:
    headers = (("trace", b"1"), ("trace", None))
    latest = Stored(7, b"a", b"new", 1_700_000_000_999, headers=headers)
    records = records_frame(spark, [Stored(1, b"a", b"old"), latest, Stored(3, b"b", b"only")])

    found = {bytes(row["key"]): row for row in latest_per_key(records).collect()}

    assert latest_per_key(records).columns == records.columns
    assert sorted(found) == [b"a", b"b"]
    row = found[b"a"]
    assert (row["offset"], bytes(row["value"]), row["topic"], row["partition"]) == (7, b"new", "orders", 0)
    assert row["timestamp"] == records.where("offset = 7").collect()[0]["timestamp"]
    assert [(name, value and bytes(value)) for name, value in row["headers"]] == list(headers)


def test_a_tombstone_takes_its_key_away_and_a_later_value_brings_it_back(spark: SparkSession) -> None:
    records = records_frame(
        spark,
        [Stored(0, b"gone", b"x"), Stored(1, b"gone", None), Stored(2, b"back", None), Stored(3, b"back", b"again")],
    )

    assert offsets_of(latest_per_key(records)) == [(0, 3)]
    assert offsets_of(latest_per_key(records, keep_tombstones=True)) == [(0, 1), (0, 3)]


def test_records_without_a_key_are_dropped_and_an_empty_key_is_a_key(spark: SparkSession) -> None:
    records = records_frame(spark, [Stored(0, None, b"x"), Stored(1, b"", b"y"), Stored(2, None, b"z")])

    assert offsets_of(latest_per_key(records)) == [(0, 1)]


def test_partitions_and_topics_are_compacted_each_by_itself(spark: SparkSession) -> None:
    records = records_frame(
        spark,
        [Stored(5, b"a", b"x"), Stored(2, b"a", b"x", partition=1), Stored(9, b"a", b"x", topic="other")],
    )

    assert offsets_of(latest_per_key(records)) == [(0, 5), (0, 9), (1, 2)]


def test_across_partitions_the_larger_timestamp_wins_then_the_larger_offset(spark: SparkSession) -> None:
    records = records_frame(
        spark,
        [
            Stored(900, b"a", b"old", 1_000),
            Stored(3, b"a", b"new", 2_000, partition=1),
            Stored(10, b"b", b"x", 5_000),
            Stored(11, b"b", b"y", 5_000, partition=1),
            Stored(12, b"c", b"x", 1_000),
            Stored(1, b"c", None, 2_000, partition=1),
        ],
    )

    assert offsets_of(latest_per_key(records, across_partitions=True)) == [(1, 3), (1, 11)]


def test_many_random_records_give_what_a_dictionary_gives(spark: SparkSession) -> None:
    chosen = random.Random(11)
    stored = [
        Stored(offset, chosen.choice([None, *(b"k%d" % n for n in range(40))]), chosen.choice([None, b"v"]))
        for offset in range(2_000)
    ]
    table = {record.key: record for record in stored if record.key is not None}
    due = sorted((0, record.offset) for record in table.values() if record.value is not None)

    assert offsets_of(latest_per_key(records_frame(spark, stored))) == due
