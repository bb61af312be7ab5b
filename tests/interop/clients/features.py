"""What every client is tried for. A feature is a function that acts through a driver and checks what the broker stored.

What is stored is read from the segment files, so that a client's writing is never proved by its own reading alone. A
feature that fails against Apache Kafka itself is a wrong test: see test_clients for how to point the matrix there.
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
    """One client at one broker, with a topic name of its own."""

    driver: Driver
    target: Target
    topic: str
    member: Callable[[], list[str]] | None = None
    """The client's program that is one member of a group, which the features of groups need."""

    def create(self, partitions: int = 1) -> None:
        """Make the topic by other means than the client's."""
        self.target.create_topic(self.topic, partitions)

    def stored(self, partition: int = 0) -> list[tuple[RecordBatch, list[Record]]]:
        """What lies in the segment files."""
        directory = self.target.log_directory / f"{self.topic}-{partition}"
        found = []
        for path in sorted(directory.glob("*.log")):
            for batch in iter_batches(path.read_bytes()):
                batch.ensure_valid()
                found.append((batch, read_records(batch)))
        return found

    def stored_records(self, partition: int = 0) -> list[Record]:
        """The same without the batches."""
        return [record for _, records in self.stored(partition) for record in records]


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of the matrix."""

    name: str
    title: str
    check: Check


FEATURES: list[Feature] = []


def feature(title: str) -> Callable[[CheckT], CheckT]:
    """Add a row of this title."""

    def add(check: CheckT) -> CheckT:
        FEATURES.append(Feature(check.__name__.replace("_", "-"), title, check))
        return check

    return add


def plain(count: int) -> list[Record]:
    """Records 1 s apart, of text that compresses."""
    return [
        Record(number, TIMESTAMP + 1000 * number, b"key-%d" % number, b"value " * 20 + b"%d" % number)
        for number in range(count)
    ]


def assert_same(found: list[Record], expected: list[Record], *, timestamps: bool) -> None:
    """Equal, but for timestamps where the client cannot set them."""
    if not timestamps:
        found = [replace_timestamp(record) for record in found]
        expected = [replace_timestamp(record) for record in expected]
    assert found == expected


def replace_timestamp(record: Record) -> Record:
    """The record at a time of no meaning."""
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
    """What it wrote comes back to it; a client that only writes is not asked."""
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
    """Batches carry a producer id and sequences from 0."""
    trial.create()
    trial.driver.produce(trial.topic, plain(20), idempotence=True)
    stored = trial.stored()
    assert all(batch.producer_id >= 0 and batch.producer_epoch == 0 for batch, _ in stored)
    assert [batch.base_sequence for batch, _ in stored] == [batch.base_offset for batch, _ in stored]
    assert_same(trial.stored_records(), plain(20), timestamps=trial.driver.limits.sets_timestamps)


@feature("produce: headers")
def headers(trial: Trial) -> None:
    """Several of one name, empty values and null ones, in their order."""
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
    """Null is not empty."""
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
    """Kept to the millisecond, back and forth in time."""
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
    """Just below message.max.bytes, incompressible."""
    trial.create()
    records = [Record(0, TIMESTAMP, None, random.Random(1).randbytes(1_000_000))]
    trial.driver.produce(trial.topic, records)
    assert_same(trial.stored_records(), records, timestamps=trial.driver.limits.sets_timestamps)
    read_by_itself(trial, records)


@feature("produce: a record over the limit is refused, and the next one is not")
def over_the_limit(trial: Trial) -> None:
    """The broker says MESSAGE_TOO_LARGE, the client hands it on."""
    trial.create()
    large = Record(0, TIMESTAMP, None, random.Random(1).randbytes(1_100_000))
    assert trial.driver.produce_one(trial.topic, large) == MESSAGE_TOO_LARGE
    trial.driver.produce(trial.topic, plain(1))
    assert_same(trial.stored_records(), plain(1), timestamps=trial.driver.limits.sets_timestamps)


@feature("read: from an offset (assign, seek)")
def seek(trial: Trial) -> None:
    """In the middle of a batch, of one partition out of several."""
    trial.create(partitions=3)
    trial.driver.produce(trial.topic, plain(100), partition=1)
    stored = trial.stored_records(1)
    assert trial.driver.read(trial.topic, partition=1, offset=37, count=63) == stored[37:]


@feature("read: from a timestamp")
def by_time(trial: Trial) -> None:
    """The first record at or after it."""
    trial.create()
    trial.target.fill(trial.topic, plain(100))
    assert trial.driver.read(trial.topic, timestamp=TIMESTAMP + 40_500, count=59) == plain(100)[41:]


@feature("read: after an offset that is not there (reset to earliest)")
def out_of_range(trial: Trial) -> None:
    """OFFSET_OUT_OF_RANGE reaches the client's reset policy."""
    trial.create()
    trial.target.fill(trial.topic, plain(10))
    assert trial.driver.read(trial.topic, offset=1000, count=10) == plain(10)


@feature("read: earliest and latest offset, and that of a time")
def offsets(trial: Trial) -> None:
    """ListOffsets in its three forms."""
    trial.create()
    trial.target.fill(trial.topic, plain(10))
    assert trial.driver.offsets(trial.topic, TIMESTAMP + 3_500) == (0, 10, 4)


@feature("admin: create a topic with configs, and list it")
def create_topic(trial: Trial) -> None:
    """It is there, with its partitions."""
    trial.driver.call("create_topic", topic=trial.topic, partitions=3, configs={"retention.ms": "12345678"})
    trial.target.wait_until(lambda: (trial.target.log_directory / f"{trial.topic}-2").exists())
    assert trial.driver.call("topics")["topics"][trial.topic] == 3


@feature("admin: describe a topic's configs")
def describe_configs(trial: Trial) -> None:
    """What was set, and defaults."""
    trial.target.create_topic(trial.topic, 1, {"retention.ms": "12345678"})
    found = trial.driver.call("describe_configs", topic=trial.topic)["configs"]
    assert (found["retention.ms"], found["cleanup.policy"]) == ("12345678", "delete")


@feature("admin: alter a topic's configs")
def alter_configs(trial: Trial) -> None:
    """And see them."""
    trial.create()
    trial.driver.call("alter_configs", topic=trial.topic, configs={"max.message.bytes": "2222222"})
    found = trial.driver.call("describe_configs", topic=trial.topic)["configs"]
    assert found["max.message.bytes"] == "2222222"


@feature("admin: more partitions")
def create_partitions(trial: Trial) -> None:
    """The log of the new one is there."""
    trial.create()
    trial.driver.call("create_partitions", topic=trial.topic, partitions=4)
    trial.target.wait_until(lambda: (trial.target.log_directory / f"{trial.topic}-3").exists())


@feature("admin: delete records")
def delete_records(trial: Trial) -> None:
    """The log starts later."""
    trial.create()
    trial.target.fill(trial.topic, plain(10))
    answer = trial.driver.call("delete_records", topic=trial.topic, partition=0, offset=4)
    assert answer.get("low_watermark", 4) == 4
    assert trial.target.earliest(trial.topic) == 4


@feature("admin: delete a topic")
def delete_topic(trial: Trial) -> None:
    """Its directory goes, or waits under another name."""
    trial.create()
    directory: Path = trial.target.log_directory / f"{trial.topic}-0"
    trial.target.wait_until(directory.exists)
    trial.driver.call("delete_topic", topic=trial.topic)
    trial.target.wait_until(lambda: not directory.exists())


@feature("admin: describe the cluster")
def cluster(trial: Trial) -> None:
    """Id and addresses."""
    answer = trial.driver.call("cluster")
    assert answer["brokers"] == [trial.target.bootstrap]
    assert answer.get("cluster_id", trial.target.cluster_id) == trial.target.cluster_id


@feature("broker killed in the middle: nothing lost, nothing twice, in order")
def killed_in_the_middle(trial: Trial) -> None:
    """An idempotent producer goes on where it was."""
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
