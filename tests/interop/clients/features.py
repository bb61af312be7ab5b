"""The features that every client is tested for. Each is a function that uses a driver and checks the stored records.

Stored records are read from the segment files, so a client's writes are not checked by its own reads alone. A feature
that fails against Apache Kafka is a wrong test; test_clients describes how to run the matrix against Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record, RecordBatch, TimestampType, iter_batches, read_records
from tests.interop.clients.driver import Driver, Unsupported
from tests.interop.clients.target import Target

TIMESTAMP = 1_700_000_000_000
MESSAGE_TOO_LARGE = 10
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Check = Callable[["Trial"], None]
CheckT = TypeVar("CheckT", bound=Check)


@dataclass(frozen=True, slots=True)
class Trial:
    """One test of a client with a broker, and a topic for it."""

    driver: Driver
    target: Target
    topic: str
    member: Callable[[], list[str]] | None = None
    """Returns the command of the client's group member program, for the group features."""
    start: Callable[[], Driver] | None = None
    """Starts another driver process of the client, for features that kill it."""

    def create(self, partitions: int = 1) -> None:
        """Create the topic without the client under test."""
        self.target.create_topic(self.topic, partitions)

    def stored(self, partition: int = 0) -> list[tuple[RecordBatch, list[Record]]]:
        """Return the batches and records in the segment files."""
        directory = self.target.log_directory / f"{self.topic}-{partition}"
        found = []
        for path in sorted(directory.glob("*.log")):
            for batch in iter_batches(path.read_bytes()):
                batch.ensure_valid()
                found.append((batch, read_records(batch)))
        return found

    def stored_records(self, partition: int = 0) -> list[Record]:
        """Return the records in the segment files."""
        return [record for _, records in self.stored(partition) for record in records]


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of the matrix."""

    name: str
    title: str
    check: Check


FEATURES: list[Feature] = []


def feature(title: str) -> Callable[[CheckT], CheckT]:
    """Register a feature with this title."""

    def add(check: CheckT) -> CheckT:
        FEATURES.append(Feature(check.__name__.replace("_", "-"), title, check))
        return check

    return add


def plain(count: int) -> list[Record]:
    """Return compressible records, 1 s apart."""
    return [
        Record(number, TIMESTAMP + 1000 * number, b"key-%d" % number, b"value " * 20 + b"%d" % number)
        for number in range(count)
    ]


def assert_same(found: list[Record], expected: list[Record], *, timestamps: bool) -> None:
    """Assert equal records, ignoring timestamps if the client cannot set them."""
    if not timestamps:
        found = [replace_timestamp(record) for record in found]
        expected = [replace_timestamp(record) for record in expected]
    assert found == expected


def replace_timestamp(record: Record) -> Record:
    """Return the record with timestamp 0."""
    return record._replace(timestamp=0)


def _with_codec(codec: str) -> Check:
    def check(trial: Trial) -> None:
        trial.create()
        records = plain(50)
        trial.driver.produce(trial.topic, records, codec=codec)
        assert {batch.codec for batch, _ in trial.stored()} == {Codec[codec.upper()]}
        assert_same(trial.stored_records(), records, timestamps=trial.driver.limits.sets_timestamps)
        read_by_itself(trial, records)

    return check


def read_by_itself(trial: Trial, records: list[Record]) -> None:
    """Read the records back with the client itself, unless it can only write."""
    try:
        found = trial.driver.read(trial.topic, count=len(records))
    except Unsupported:
        return
    assert_same(found, records, timestamps=trial.driver.limits.sets_timestamps)


for _codec in CODECS:
    FEATURES.append(Feature(f"codec-{_codec}", f"produce and read: {_codec}", _with_codec(_codec)))


def _with_acks(acks: str) -> Check:
    def check(trial: Trial) -> None:
        trial.create()
        trial.driver.produce(trial.topic, plain(20), acks=acks)
        trial.target.wait_until(lambda: len(trial.stored_records()) == 20)
        assert_same(trial.stored_records(), plain(20), timestamps=trial.driver.limits.sets_timestamps)

    return check


for _acks in ("0", "1", "all"):
    FEATURES.append(Feature(f"acks-{_acks}", f"produce: acks={_acks}", _with_acks(_acks)))


@feature("produce: idempotent")
def idempotent(trial: Trial) -> None:
    """Batches have a producer id, and sequences from 0."""
    trial.create()
    trial.driver.produce(trial.topic, plain(20), idempotence=True)
    stored = trial.stored()
    assert all(batch.producer_id >= 0 and batch.producer_epoch == 0 for batch, _ in stored)
    assert [batch.base_sequence for batch, _ in stored] == [batch.base_offset for batch, _ in stored]
    assert_same(trial.stored_records(), plain(20), timestamps=trial.driver.limits.sets_timestamps)


@feature("produce: headers")
def headers(trial: Trial) -> None:
    """Repeated names, empty and null values, and the order are preserved."""
    trial.create()
    listed: tuple[tuple[str, bytes | None], ...] = (
        ("first", b"1"),
        ("first", b"2"),
        ("empty", b""),
        ("null", None),
        ("ü", b"text"),
    )
    listed = tuple(header for header in listed if header[0] not in trial.driver.limits.headers_it_cannot_set)
    records = [Record(0, TIMESTAMP, b"k", b"v", listed)]
    trial.driver.produce(trial.topic, records)
    assert_same(trial.stored_records(), records, timestamps=trial.driver.limits.sets_timestamps)
    read_by_itself(trial, records)


@feature("produce: null keys and values")
def nulls(trial: Trial) -> None:
    """Null and empty are distinguished."""
    trial.create()
    records = [Record(0, TIMESTAMP, None, b"v"), Record(1, TIMESTAMP, b"k", None)]
    if not trial.driver.limits.empty_is_null:
        records.append(Record(len(records), TIMESTAMP, b"", b""))
    if not trial.driver.limits.needs_key_or_value:
        records.append(Record(len(records), TIMESTAMP, None, None))
    trial.driver.produce(trial.topic, records)
    assert_same(trial.stored_records(), records, timestamps=trial.driver.limits.sets_timestamps)
    read_by_itself(trial, records)


@feature("produce: the record's own timestamp")
def timestamps(trial: Trial) -> None:
    """Timestamps are preserved to the millisecond, even if they decrease."""
    if not trial.driver.limits.sets_timestamps:
        raise Unsupported("it cannot set a record's timestamp")
    trial.create()
    times = (TIMESTAMP, TIMESTAMP - 86_400_001, TIMESTAMP + 1, 1)
    records = [Record(number, time, b"k", b"v") for number, time in enumerate(times)]
    trial.driver.produce(trial.topic, records)
    assert trial.stored_records() == records
    assert {batch.timestamp_type for batch, _ in trial.stored()} == {TimestampType.CREATE_TIME}
    read_by_itself(trial, records)


@feature("produce: a record of 1 MB")
def one_megabyte(trial: Trial) -> None:
    """An incompressible record just below message.max.bytes."""
    trial.create()
    records = [Record(0, TIMESTAMP, None, random.Random(1).randbytes(1_000_000))]
    trial.driver.produce(trial.topic, records)
    assert_same(trial.stored_records(), records, timestamps=trial.driver.limits.sets_timestamps)
    read_by_itself(trial, records)


@feature("produce: a record over the limit is refused, and the next one is not")
def over_the_limit(trial: Trial) -> None:
    """The broker's MESSAGE_TOO_LARGE is reported by the client."""
    trial.create()
    large = Record(0, TIMESTAMP, None, random.Random(1).randbytes(1_100_000))
    assert trial.driver.produce_one(trial.topic, large) == MESSAGE_TOO_LARGE
    trial.driver.produce(trial.topic, plain(1))
    assert_same(trial.stored_records(), plain(1), timestamps=trial.driver.limits.sets_timestamps)


@feature("read: from an offset (assign, seek)")
def seek(trial: Trial) -> None:
    """Read from the middle of a batch, in one of several partitions."""
    trial.create(partitions=3)
    trial.driver.produce(trial.topic, plain(100), partition=1)
    stored = trial.stored_records(1)
    assert trial.driver.read(trial.topic, partition=1, offset=37, count=63) == stored[37:]


@feature("read: from a timestamp")
def by_time(trial: Trial) -> None:
    """Read from the first record at or after a timestamp."""
    trial.create()
    trial.target.fill(trial.topic, plain(100))
    assert trial.driver.read(trial.topic, timestamp=TIMESTAMP + 40_500, count=59) == plain(100)[41:]


@feature("read: after an offset that is not there (reset to earliest)")
def out_of_range(trial: Trial) -> None:
    """OFFSET_OUT_OF_RANGE triggers the client's reset policy."""
    trial.create()
    trial.target.fill(trial.topic, plain(10))
    assert trial.driver.read(trial.topic, offset=1000, count=10) == plain(10)


@feature("read: earliest and latest offset, and that of a time")
def offsets(trial: Trial) -> None:
    """All three forms of ListOffsets."""
    trial.create()
    trial.target.fill(trial.topic, plain(10))
    assert trial.driver.offsets(trial.topic, TIMESTAMP + 3_500) == (0, 10, 4)


@feature("admin: create a topic with configs, and list it")
def create_topic(trial: Trial) -> None:
    """The topic exists with its partitions."""
    trial.driver.call("create_topic", topic=trial.topic, partitions=3, configs={"retention.ms": "12345678"})
    trial.target.wait_until(lambda: (trial.target.log_directory / f"{trial.topic}-2").exists())
    assert trial.driver.call("topics")["topics"][trial.topic] == 3


@feature("admin: describe a topic's configs")
def describe_configs(trial: Trial) -> None:
    """Both set configs and defaults are returned."""
    trial.target.create_topic(trial.topic, 1, {"retention.ms": "12345678"})
    found = trial.driver.call("describe_configs", topic=trial.topic)["configs"]
    assert (found["retention.ms"], found["cleanup.policy"]) == ("12345678", "delete")


@feature("admin: alter a topic's configs")
def alter_configs(trial: Trial) -> None:
    """Altered configs are returned by the next describe."""
    trial.create()
    trial.driver.call("alter_configs", topic=trial.topic, configs={"max.message.bytes": "2222222"})
    found = trial.driver.call("describe_configs", topic=trial.topic)["configs"]
    assert found["max.message.bytes"] == "2222222"


@feature("admin: more partitions")
def create_partitions(trial: Trial) -> None:
    """The directory of the last new partition exists."""
    trial.create()
    trial.driver.call("create_partitions", topic=trial.topic, partitions=4)
    trial.target.wait_until(lambda: (trial.target.log_directory / f"{trial.topic}-3").exists())


@feature("admin: delete records")
def delete_records(trial: Trial) -> None:
    """The log start offset increases."""
    trial.create()
    trial.target.fill(trial.topic, plain(10))
    answer = trial.driver.call("delete_records", topic=trial.topic, partition=0, offset=4)
    assert answer.get("low_watermark", 4) == 4
    assert trial.target.earliest(trial.topic) == 4


@feature("admin: delete a topic")
def delete_topic(trial: Trial) -> None:
    """The directory is deleted or renamed for deletion."""
    trial.create()
    directory: Path = trial.target.log_directory / f"{trial.topic}-0"
    trial.target.wait_until(directory.exists)
    trial.driver.call("delete_topic", topic=trial.topic)
    trial.target.wait_until(lambda: not directory.exists())


@feature("admin: describe the cluster")
def cluster(trial: Trial) -> None:
    """The cluster id and the brokers' addresses."""
    answer = trial.driver.call("cluster")
    assert answer["brokers"] == [trial.target.bootstrap]
    assert answer.get("cluster_id", trial.target.cluster_id) == trial.target.cluster_id


@feature("broker killed in the middle: nothing lost, nothing twice, in order")
def killed_in_the_middle(trial: Trial) -> None:
    """An idempotent producer continues after a crash of the broker."""
    trial.create()
    with trial.driver.stream(trial.topic) as stream:
        stream.wait_for_progress()
        trial.target.restart()
        stream.wait_for_progress()
    assert stream.result["failed"] == []
    stored = [int(record.value or b"-1") for record in trial.stored_records()]
    lost = sorted(set(range(stream.result["sent"])) - set(stored))
    assert (lost[:10], len(stored) - len(set(stored))) == ([], 0)
    assert stored == sorted(stored)
    assert all(batch.producer_id >= 0 for batch, _ in trial.stored())


__all__ = ["FEATURES", "Feature", "Trial"]
