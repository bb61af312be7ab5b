"""Read options: the meaning of each form, and errors that name the option."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from barnabas.pipeline.errors import OptionError, PipelineError, SchemaError, SourceError, in_one_sentence
from barnabas.pipeline.options import Options
from barnabas.pipeline.reading.offsets import Bound, BoundKind, from_spark, to_spark
from barnabas.pipeline.reading.options import ReadOptions, parse_read_options
from barnabas.pipeline.reading.schema import HEADERS_TYPE, projection_of
from barnabas.protocol.records.kernels.columns_types import Wanted
from barnabas.protocol.topic_partition import TopicPartition

BROKER = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def parse(**given: str) -> ReadOptions:
    return parse_read_options({**BROKER, **given}, is_streaming=False)


def test_a_stream_starts_at_the_latest_offset_and_a_batch_at_the_earliest() -> None:
    assert parse_read_options(BROKER, is_streaming=True).starting.kind is BoundKind.LATEST
    assert parse().starting.kind is BoundKind.EARLIEST
    assert parse().ending.kind is BoundKind.LATEST


def test_names_are_read_in_any_case() -> None:
    read = parse_read_options(
        {"KAFKA.Bootstrap.Servers": "localhost:9092", "SUBSCRIBE": "a, b", "failondataloss": "FALSE"},
        is_streaming=False,
    )
    assert read.subscription is not None
    assert read.subscription.topics == {"a", "b"}
    assert not read.fail_on_data_loss


def test_timestamp_forms_win_over_offset_forms() -> None:
    offsets = {"startingOffsets": '{"orders": {"0": 3}}'}
    each = {"startingOffsetsByTimestamp": '{"orders": {"0": 5}}'}
    first = TopicPartition("orders", 0)
    assert parse(**offsets).starting == Bound(BoundKind.OFFSETS, "startingOffsets", by_partition={first: 3})
    assert parse(**offsets, **each).starting.kind is BoundKind.TIMESTAMPS
    assert parse(**offsets, **each, startingTimestamp="7").starting == Bound(
        BoundKind.TIMESTAMP, "startingTimestamp", 7
    )


def test_options_of_kafkas_consumer_reach_the_client() -> None:
    read = parse(
        **{
            "kafka.isolation.level": "read_committed",
            "kafka.client.id": "me",
            "kafka.fetch.max.bytes": "1000000",
            "kafka.check.crcs": "false",
            "kafka.max.poll.records": "9",
        }
    )
    assert read.client is not None
    assert (read.client.client_id, read.client.max_bytes, read.client.isolation) == ("me", 1_000_000, "read_committed")
    assert read.read_committed
    assert not read.check_crcs


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"startingOfsets": "latest"}, "option startingOfsets is not known; did you mean startingOffsets?"),
        ({"assign": '{"a": [0]}'}, "options assign and subscribe exclude each other"),
        ({"subscribe": " , "}, "option subscribe names no topic"),
        ({"startingOffsets": "latest"}, "option startingOffsets: a batch cannot start at the latest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "option startingOffsets: a batch cannot start at the latest"),
        ({"endingOffsets": "earliest"}, "option endingOffsets: a batch cannot end at the earliest"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "option endingOffsets: a batch cannot end at the earliest"),
        ({"startingOffsets": "soon"}, "option startingOffsets must be earliest, latest or"),
        ({"startingOffsets": "{"}, "option startingOffsets is not JSON"),
        ({"startingOffsets": '{"orders": 3}'}, 'option startingOffsets: write {"orders": {"0": offset}}, not 3'),
        ({"startingOffsets": '{"orders": {"x": 3}}'}, 'option startingOffsets: "x" is not a partition of topic orders'),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "option startingOffsets: -3 is not a valid offset for orders-0"),
        ({"startingOffsets": '{"orders": {"0": true}}'}, "option startingOffsets: true is not a valid offset"),
        ({"startingOffsets": "{}"}, "option startingOffsets names no partition"),
        ({"startingTimestamp": "yesterday"}, "option startingTimestamp must be a whole number"),
        ({"maxRecordsPerPartition": "0"}, "option maxRecordsPerPartition must be a whole number between 1 and"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay must be a time"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss must be true or false, not 'no'"),
        ({"mode": "lenient"}, "option mode must be strict or permissive"),
        ({"path": "/data"}, "option kafka.bootstrap.servers and a path exclude each other"),
        ({"kafka.bootstrap.servers": "nowhere"}, "option kafka.bootstrap.servers: 'nowhere' is not host:port"),
        ({"kafka.auto.offset.reset": "latest"}, "option kafka.auto.offset.reset cannot be given"),
        ({"kafka.security.protocol": "TLS"}, "option kafka.security.protocol=TLS is not one of"),
        ({"kafka.security.protocol": "SASL_SSL"}, "option kafka.sasl.mechanism=GSSAPI"),
        ({"kafka.fetch.max.bytes": "many"}, "option kafka.fetch.max.bytes must be a whole number"),
        ({"kafka.fetch.max.bytes": "0"}, "option kafka.fetch.max.bytes=0 must be between"),
        ({"kafka.isolation.level": "all"}, "option kafka.isolation.level must be read_uncommitted or read_committed"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "option minOffsetsPerTrigger=9 must not be above"),
    ],
)
def test_a_refusal_names_the_option(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(**given)
    assert words in str(caught.value)


def test_a_pattern_that_is_none_a_stream_with_an_end_and_nothing_to_read_are_refused() -> None:
    with pytest.raises(OptionError, match="option endingOffsets cannot be given: a stream has no end"):
        parse_read_options({**BROKER, "endingOffsets": "latest"}, is_streaming=True)
    for given, words in (
        (
            {"kafka.bootstrap.servers": "a:1", "subscribePattern": "("},
            "option subscribePattern: '(' is not a regular expression",
        ),
        ({"kafka.bootstrap.servers": "a:1"}, "one of the options assign, subscribe, subscribePattern is missing"),
        ({"subscribe": "orders"}, "option kafka.bootstrap.servers is missing"),
    ):
        with pytest.raises(OptionError, match=words.replace("(", r"\(")):
            parse_read_options(given, is_streaming=False)


@pytest.mark.parametrize(
    ("text", "ms"), [("250", 250), ("250ms", 250), ("3 s", 3000), ("15m", 900_000), ("2h", 7_200_000)]
)
def test_times_are_read_as_spark_writes_them(text: str, ms: int) -> None:
    assert Options({"maxTriggerDelay": text}).duration_ms("maxTriggerDelay", 1) == ms


def test_checkpoints_have_the_shape_of_sparks_kafka_source() -> None:
    offsets = {TopicPartition("b", 10): 5, TopicPartition("b", 2): 7, TopicPartition("a", 0): 1}
    assert list(to_spark(offsets).items()) == [("a", {"0": 1}), ("b", {"2": 7, "10": 5})]
    assert from_spark(to_spark(offsets)) == offsets
    with pytest.raises(OptionError, match="checkpointLocation"):
        from_spark({"sources": [1]})


def schema(*fields: tuple[str, object]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields])  # type: ignore[arg-type]


def test_a_schema_is_the_projection_in_its_order_and_case() -> None:
    projection = projection_of(schema(("Offset", LongType()), ("topic", StringType()), ("headers", HEADERS_TYPE)))
    assert projection.names == ("offset", "topic", "headers")
    assert projection.wanted == Wanted.OFFSET | Wanted.HEADERS
    assert projection.arrow.names == ["Offset", "topic", "headers"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((("price", LongType()),), "no column 'price' in a log"),
        ((("value", StringType()),), "column 'value' is binary, not string"),
        ((("offset", LongType()), ("OFFSET", LongType())), "column 'OFFSET' is in the schema twice"),
        ((("headers", ArrayType(StringType())),), "column 'headers' is array<struct<key:string,value:binary>>, not"),
    ],
)
def test_a_column_that_cannot_be_had_is_refused_by_its_name(fields: tuple[tuple[str, object], ...], words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        projection_of(schema(*fields))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(2, "No such file or directory", "/data/orders-0"), SourceError("No such file: /data/orders-0")],
)
def test_errors_leave_in_one_sentence_without_the_frames_they_came_through(error: Exception) -> None:
    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        raise error

    with pytest.raises(SourceError, match=r"No such file.*: /data/orders-0") as caught, in_one_sentence():
        deep(20)
    frames = 0
    traceback = caught.value.__traceback__
    while traceback is not None:
        frames, traceback = frames + 1, traceback.tb_next
    assert frames <= 4
    assert caught.value.__suppress_context__
    assert isinstance(caught.value, PipelineError)
