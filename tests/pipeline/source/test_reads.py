"""Records of a real broker through the source, without Spark: fetched ranges and fetch errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from barnabas import Admin, AdminConfig, TopicPartition
from barnabas.pipeline.errors import CorruptLogError, DataLossError, OptionError, SourceError
from barnabas.pipeline.reading.offsets import OffsetRange
from barnabas.pipeline.reading.options import parse_read_options
from barnabas.pipeline.source.batch import rules_of
from barnabas.pipeline.source.broker import _read
from barnabas.pipeline.source.fetcher import FetchAnswer
from barnabas.protocol.messages.data.fetch import FetchPartitionResult
from barnabas.protocol.records import Codec
from tests.support.daemon import Daemon, start_daemon
from tests.support.spark.topics import START, delete_topic, produce, produce_new
from tests.support.storage.broker_reads import batch_reader, iter_rows, topic_rows

OFFSETS = StructType([StructField("offset", LongType())])
PATIENCE = {"kafka.default.api.timeout.ms": "1500", "kafka.retry.backoff.ms": "20", "kafka.retry.backoff.max.ms": "50"}


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Start a broker that the test may kill."""
    with start_daemon(tmp_path / "broker") as running:
        yield running


def delete_records(daemon: Daemon, topic: str, before: int) -> None:
    async def delete() -> None:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            await admin.delete_records({TopicPartition(topic, 0): before})

    asyncio.run(delete())


def offsets(daemon: Daemon, topic: str, **options: str) -> list[int]:
    return [row["offset"] for row in topic_rows(daemon, topic, OFFSETS, **options)]


@pytest.mark.parametrize("codec", Codec)
def test_batches_of_every_codec_are_read_with_their_headers(daemon: Daemon, codec: Codec) -> None:
    topic = f"codec-{codec.config_name}"
    records = [(0, b"k%d" % index, b"v" * 200) for index in range(30)]
    produce_new(daemon, topic, records, compression=codec.config_name, headers=[("é", b"1"), ("none", None)])

    rows = topic_rows(daemon, topic, includeHeaders="true")

    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (index, b"k%d" % index, b"v" * 200) for index in range(30)
    ]
    assert rows[3]["headers"] == [{"key": "é", "value": b"1"}, {"key": "none", "value": None}]


def test_fetches_smaller_than_a_batch_still_read_all(daemon: Daemon) -> None:
    produce_new(daemon, "large", [(0, None, bytes(50_000)) for _ in range(8)])
    assert offsets(daemon, "large", **{"kafka.max.partition.fetch.bytes": "1000"}) == list(range(8))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"ranges": {"0": 3}}', "endingOffsets": '{"ranges": {"0": 7}}'}, range(3, 7)),
        ({"startingTimestamp": str(START + 5)}, range(5, 20)),
        ({"endingOffsetsByTimestamp": f'{{"ranges": {{"0": {START + 5}}}}}'}, range(5)),
        ({"minPartitions": "4"}, range(20)),
        ({"maxRecordsPerPartition": "3"}, range(20)),
    ],
)
def test_bounds_and_parts_are_what_the_options_say(daemon: Daemon, options: dict[str, str], expected: range) -> None:
    if "ranges" not in topics(daemon):
        produce_new(daemon, "ranges", [(0, None, b"v")] * 20)
    assert offsets(daemon, "ranges", **options) == list(expected)


def topics(daemon: Daemon) -> set[str]:
    async def listed() -> set[str]:
        async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
            return {topic.name for topic in await admin.list_topics()}

    return asyncio.run(listed())


def test_parts_are_as_many_as_asked(daemon: Daemon) -> None:
    produce_new(daemon, "parts", [(0, None, b"v")] * 20)
    assert len(batch_reader(daemon, "parts", minPartitions="4").partitions()) == 4
    assert len(batch_reader(daemon, "parts", maxRecordsPerPartition="3").partitions()) == 7


def test_a_pattern_and_an_assignment_choose_what_is_read(daemon: Daemon) -> None:
    produce_new(daemon, "choose-a", [(0, None, b"v"), (1, None, b"v")], partitions=2)
    produce_new(daemon, "choose-b", [(0, None, b"v")])
    reader = {"kafka.bootstrap.servers": daemon.bootstrap}

    def read(option: str, value: str) -> list[tuple[str, int]]:
        from barnabas.pipeline.reading.schema import source_schema
        from barnabas.pipeline.source.batch import BarnabasReader, make_batch_reader

        made = make_batch_reader({**reader, option: value}, source_schema(include_headers=False))
        assert isinstance(made, BarnabasReader)
        return sorted((row["topic"], row["partition"]) for row in iter_rows(made))

    assert read("subscribePattern", "choose-.*") == [("choose-a", 0), ("choose-a", 1), ("choose-b", 0)]
    assert read("assign", '{"choose-a": [1]}') == [("choose-a", 1)]
    with pytest.raises(OptionError, match="option assign: there is no partition choose-a-7"):
        read("assign", '{"choose-a": [7]}')


def test_a_missing_topic_is_named_with_option_and_broker(daemon: Daemon) -> None:
    with pytest.raises(OptionError, match=f"option subscribe: there is no topic 'nowhere'.*{daemon.bootstrap}"):
        topic_rows(daemon, "nowhere")


def test_offsets_that_retention_removed_are_an_error_or_left_out(daemon: Daemon) -> None:
    produce_new(daemon, "trimmed", [(0, None, b"v")] * 10)
    delete_records(daemon, "trimmed", 6)
    gone = {"startingOffsets": '{"trimmed": {"0": 2}}'}

    with pytest.raises(DataLossError, match="trimmed-0: offsets 2 to 5 are gone"):
        offsets(daemon, "trimmed", **gone)

    assert offsets(daemon, "trimmed", failOnDataLoss="false", **gone) == [6, 7, 8, 9]
    assert offsets(daemon, "trimmed") == [6, 7, 8, 9]


def test_offsets_that_go_between_the_plan_and_the_read_are_an_error_or_left_out(daemon: Daemon) -> None:
    produce_new(daemon, "hurried", [(0, None, b"v")] * 10)
    careful = batch_reader(daemon, "hurried", OFFSETS)
    careless = batch_reader(daemon, "hurried", OFFSETS, failOnDataLoss="false")
    (part,), (same,) = careful.partitions(), careless.partitions()
    delete_records(daemon, "hurried", 6)

    with pytest.raises(DataLossError, match="hurried-0: offset 0 is gone, the log is 6 to 10"):
        list(careful.read(part))

    assert [row["offset"] for batch in careless.read(same) for row in batch.to_pylist()] == [6, 7, 8, 9]


def test_a_topic_that_goes_between_the_plan_and_the_read_is_named(daemon: Daemon) -> None:
    produce_new(daemon, "fleeting", [(0, None, b"v")])
    reader = batch_reader(daemon, "fleeting")
    careless = batch_reader(daemon, "fleeting", failOnDataLoss="false")
    (part,), (same,) = reader.partitions(), careless.partitions()
    delete_topic(daemon, "fleeting")
    with pytest.raises(DataLossError, match=r"fleeting-0: 1 offsets, 0 to 0, are gone: the topic was deleted after"):
        list(reader.read(part))
    assert list(careless.read(same)) == []


def test_records_of_another_topic_of_the_name_are_not_taken_for_the_planned_ones(daemon: Daemon) -> None:
    produce_new(daemon, "renewed", [(0, None, b"first")] * 3)
    reader = batch_reader(daemon, "renewed")
    careless = batch_reader(daemon, "renewed", failOnDataLoss="false")
    (part,), (same,) = reader.partitions(), careless.partitions()
    delete_topic(daemon, "renewed")
    produce_new(daemon, "renewed", [(0, None, b"second")] * 5)
    with pytest.raises(
        DataLossError, match=r"renewed-0: 3 offsets, 0 to 2, are gone: the topic was deleted and created"
    ):
        list(reader.read(part))
    assert list(careless.read(same)) == []
    assert len(topic_rows(daemon, "renewed")) == 5


def test_a_topic_that_goes_in_the_middle_of_a_read_is_noticed(daemon: Daemon) -> None:
    produce_new(daemon, "leaving", [(0, None, bytes(1000))] * 3000)
    few = {"kafka.max.partition.fetch.bytes": "20000"}
    reader = batch_reader(daemon, "leaving", OFFSETS, failOnDataLoss="false", **few)
    (part,) = reader.partitions()
    reading = reader.read(part)
    first = next(reading).num_rows
    delete_topic(daemon, "leaving")
    assert first + sum(batch.num_rows for batch in reading) < 3000


def test_a_topic_that_is_made_again_in_the_middle_of_a_read_is_not_read_on_as_the_first(daemon: Daemon) -> None:
    records = [(0, None, bytes(1000))] * 1000
    produce_new(daemon, "remade", records)
    reader = batch_reader(daemon, "remade", OFFSETS, **{"kafka.max.partition.fetch.bytes": "20000"})
    (part,) = reader.partitions()
    reading = reader.read(part)
    next(reading)
    delete_topic(daemon, "remade")
    produce_new(daemon, "remade", records)
    with pytest.raises(DataLossError, match="deleted and created again"):
        list(reading)


def test_a_broker_that_dies_in_the_middle_is_named_after_the_patience_that_was_set(own_daemon: Daemon) -> None:
    produce_new(own_daemon, "dying", [(0, None, bytes(1000))] * 3000)
    reader = batch_reader(own_daemon, "dying", OFFSETS, **PATIENCE, **{"kafka.max.partition.fetch.bytes": "20000"})
    (part,) = reader.partitions()
    reading = reader.read(part)
    next(reading)
    own_daemon.kill()
    with pytest.raises(SourceError, match=rf"reading dying-0 from offset \d+: gave up .*{own_daemon.port}"):
        list(reading)


def test_a_read_goes_on_behind_a_restart_of_the_broker(own_daemon: Daemon) -> None:
    produce_new(own_daemon, "restarted", [(0, None, bytes(1000))] * 3000)
    reader = batch_reader(own_daemon, "restarted", OFFSETS, **{"kafka.max.partition.fetch.bytes": "20000"})
    (part,) = reader.partitions()
    reading = reader.read(part)
    found = next(reading).to_pylist()
    own_daemon.restart(clean=False)
    found += [row for batch in reading for row in batch.to_pylist()]
    assert [row["offset"] for row in found] == list(range(3000))


def test_a_corrupt_batch_ends_a_strict_read_and_is_left_out_of_a_permissive_one(own_daemon: Daemon) -> None:
    produce_new(own_daemon, "damaged", [(0, None, b"first")])
    produce(own_daemon, "damaged", [(0, None, b"second")])
    produce(own_daemon, "damaged", [(0, None, b"third")])
    path = own_daemon.data_directory / "damaged-0" / "00000000000000000000.log"
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(data.index(b"second"))
        file.write(b"SECOND")

    with pytest.raises(CorruptLogError, match=r"damaged-0 at the broker .*: stored crc"):
        topic_rows(own_daemon, "damaged")

    assert offsets(own_daemon, "damaged", mode="permissive") == [0, 2]


def test_an_address_where_nobody_listens_is_named() -> None:
    class Nobody:
        bootstrap = "127.0.0.1:1"

    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1"):
        topic_rows(Nobody(), "orders")  # type: ignore[arg-type]


def test_pushed_filters_choose_partitions_and_offsets_before_anything_is_fetched(daemon: Daemon) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan

    from barnabas.pipeline.source.batch import FilteringReader

    produce_new(daemon, "pushed", [(part, None, b"v") for part in (0, 1) for _ in range(10)], partitions=2)
    reader = batch_reader(daemon, "pushed", pushFilters="true")
    assert isinstance(reader, FilteringReader)

    filters = [EqualTo(("partition",), 1), GreaterThanOrEqual(("offset",), 3), LessThan(("offset",), 5)]
    assert list(reader.pushFilters(filters)) == []

    assert len(reader.partitions()) == 1
    assert [(row["partition"], row["offset"]) for row in iter_rows(reader)] == [(1, 3), (1, 4)]


class EmptyHanded:
    """A fetcher that gets no records below the high watermark, as when compaction removed the last ones."""

    bootstrap = "localhost:1"

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, offset: int) -> None:
        self.asked += 1

    def ask_for_more(self, offset: int, needed_bytes: int) -> None:
        self.asked += 1

    def ensure_same_topic(self) -> None:
        """Accept the topic."""

    def answer(self) -> FetchAnswer:
        assert self.asked < 100, "the reader keeps fetching"
        return FetchAnswer(FetchPartitionResult(partition=0, high_watermark=9, log_start_offset=0), memoryview(b""))


def test_a_tail_without_any_record_below_the_high_watermark_is_data_loss_and_no_endless_asking() -> None:
    part = OffsetRange(TopicPartition("orders", 0), 4, 9)

    def rows(**given: str) -> list[object]:
        options = parse_read_options(
            {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders", **given}, is_streaming=False
        )
        return list(_read(options, rules_of(options, OFFSETS), part, EmptyHanded()))  # type: ignore[arg-type]

    with pytest.raises(DataLossError, match="orders-0: offsets 4 to 8 are gone, no record is left in them"):
        rows()
    assert rows(failOnDataLoss="false") == []
