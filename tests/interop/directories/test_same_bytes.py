"""Our daemon and a real Kafka broker write identical files when fed the same bytes over Kafka's protocol.

Compared are the names and contents of all files in the partitions' directories, and the checkpoint files of the data
directory. Excluded are necessary differences: topic ids, which each broker generates, and leader epochs after a
restart. docs/storage-format.md lists them with reasons.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.broker.storage.files.checkpoint_file import (
    CLEANER_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.protocol.records import Codec
from barnabas.protocol.records.record import Record
from tests.support.daemon import Daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.two_brokers import (
    Batch,
    Topic,
    await_clean,
    checkpoints_of,
    create_topics,
    delete_records,
    differences,
    feed,
    files_of,
    set_config,
    without_epochs,
    without_topic_ids,
)
from tests.support.storage.legacy import message_sets
from tests.support.storage.records import TIMESTAMP, build, plain

pytestmark = pytest.mark.timeout(300)  # many JVM starts in sequence, on machines of any speed
VERSIONS = ("4.3.0", "3.9.1")
PRODUCERS = (0, 2000, 16, 1, 4, 1000, 3000)
BATCHES = 120
BATCH_INTERVAL_MS = 5000


def topics_of(version: str) -> dict[str, Topic]:
    """Return topics with small segments that roll by size, index or time; some are recompressed or compacted."""
    size = "segment.bytes" if version.startswith("3.") else "internal.segment.bytes"
    return {
        "codecs": Topic(2, {size: "16384", "index.interval.bytes": "300"}),
        "producers": Topic(1, {size: "8192", "index.interval.bytes": "200"}),
        "full.index": Topic(1, {"segment.index.bytes": "48", "index.interval.bytes": "100"}),
        "by.time": Topic(1, {"segment.ms": "60000", "index.interval.bytes": "0"}),
        "rewritten": Topic(1, {"compression.type": "uncompressed", size: "16384"}),
        "late.start": Topic(4, {size: "2048", "index.interval.bytes": "100"}),
        "table": Topic(
            1,
            {
                "cleanup.policy": "compact",
                # the cleaner starts only after all writes, so both brokers need one round
                "min.cleanable.dirty.ratio": "1",
                "file.delete.delay.ms": "0",
                size: "4096",
                "index.interval.bytes": "200",
            },
        ),
        "old": Topic(1, {}),  # filled by put_old_segments
        "empty": Topic(20, {}),  # so many that a hash table has grown
    }


def some_records(draw: random.Random, first_ms: int) -> list[Record]:
    """Return a few records, some with null keys, null values or headers."""
    return [
        Record(
            offset,
            first_ms + draw.randrange(50),
            None if draw.random() < 0.1 else b"key-%d" % draw.randrange(30),
            None if draw.random() < 0.1 else draw.randbytes(20) * draw.randrange(1, 12),
            (("h", b"1"), ("none", None)) if draw.random() < 0.2 else (),
        )
        for offset in range(draw.randrange(1, 8))
    ]


class Script:
    """The batches of a test, in parts; producers' sequences continue across parts."""

    def __init__(self) -> None:
        self._draw = random.Random(1)
        self._sequences: dict[tuple[int, int], int] = {}
        self._now = TIMESTAMP

    def part(self) -> list[Batch]:
        """Return enough rounds over the topics for several segments of each."""
        return [batch for number in range(BATCHES) for batch in self._round(number)]

    def _round(self, number: int) -> Iterator[Batch]:
        draw = self._draw
        self._now += BATCH_INTERVAL_MS
        codec = list(Codec)[number % len(Codec)]
        for topic, partition in (("codecs", number % 2), ("full.index", 0), ("by.time", 0), ("late.start", number % 4)):
            yield Batch(topic, partition, bytes(build(some_records(draw, self._now), codec)))
        yield Batch("rewritten", 0, bytes(build(some_records(draw, self._now), codec)))
        rows = [Record(i, self._now, b"key-%d" % draw.randrange(30), draw.randbytes(30), ()) for i in range(5)]
        yield Batch("table", 0, bytes(build(rows)))
        producer = draw.choice(PRODUCERS)
        producer_epoch = 1 if producer == 16 and (number > BATCHES // 2 or (16, 1) in self._sequences) else 0
        records = some_records(draw, self._now)
        sequence = self._sequences.get((producer, producer_epoch), 0)
        self._sequences[producer, producer_epoch] = sequence + len(records)
        header = {"producer_id": producer, "producer_epoch": producer_epoch, "base_sequence": sequence}
        yield Batch("producers", 0, bytes(build(records, codec, **header)))


class TwoBrokers:
    """Kafka and our daemon, each with a directory of its own; they run one after the other."""

    def __init__(self, directory: Path, version: str) -> None:
        self.topics = topics_of(version)
        self._theirs, self._ours = directory / "kafka" / "data", directory / "barnabas" / "data"
        self._kafka = Kafka(version, self._theirs, directory / "kafka", log_cleaner_backoff_ms="100")
        self._kafka.format()
        self._daemon = Daemon(directory / "barnabas", {"log.cleaner.backoff.ms": "100"})

    def run(self, use: Callable[[KafkaWire, Path], None], *, kill: bool = False) -> None:
        """Start each broker, call `use` with a connection and the data directory, and stop or kill it."""
        for running, data in ((self._kafka_running(kill), self._theirs), (self._daemon_running(kill), self._ours)):
            with running as (host, port), KafkaWire(host, port) as wire:
                use(wire, data)

    def change_files(self, change: Callable[[Path], None]) -> None:
        """Apply `change` to both directories, while neither broker runs."""
        change(self._theirs)
        change(self._ours)

    def files(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return our files and Kafka's, without topic ids."""
        ours, theirs = (without_topic_ids(files_of(data, self.topics)) for data in (self._ours, self._theirs))
        return ours, theirs

    def assert_same_checkpoints(self) -> None:
        """Assert that the checkpoint files of both directories are equal."""
        ours, theirs = checkpoints_of(self._ours), checkpoints_of(self._theirs)
        if not theirs.get(CLEANER_CHECKPOINT):
            del theirs[CLEANER_CHECKPOINT]  # Kafka creates it empty at start, Barnabas in the first cleaner round
        assert ours.keys() == theirs.keys()
        for name in (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT):
            assert ours[name] == theirs[name]
        for name, lines in theirs.items():
            assert sorted(ours[name]) == sorted(lines), name

    @contextmanager
    def _kafka_running(self, kill: bool) -> Iterator[tuple[str, int]]:
        if not kill:
            with self._kafka.running() as broker:
                yield "127.0.0.1", broker.port
            return
        broker = self._kafka.start()
        try:
            yield "127.0.0.1", broker.port
        finally:
            broker.kill()

    @contextmanager
    def _daemon_running(self, kill: bool) -> Iterator[tuple[str, int]]:
        with self._daemon:
            yield self._daemon.host, self._daemon.port
            if kill:
                self._daemon.kill()
            else:
                assert self._daemon.stop() == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_after_clean_stops_both_left_the_same_bytes(tmp_path: Path, version: str) -> None:
    both, script = TwoBrokers(tmp_path, version), Script()
    first, second = script.part(), script.part()

    def write(wire: KafkaWire, data: Path) -> None:
        create_topics(wire, both.topics)
        feed(wire, first)
        for partition in range(4):
            delete_records(wire, "late.start", partition, 20 + partition)
        set_config(wire, "table", "min.cleanable.dirty.ratio", "0.01")
        await_clean(data, "table")

    both.run(write)
    ours, theirs = both.files()
    assert differences(ours, theirs) == []
    both.assert_same_checkpoints()
    for topic in ("codecs", "producers", "full.index", "by.time", "rewritten", "late.start", "table"):
        assert sum(name.startswith(f"{topic}-0/") and name.endswith(".log") for name in ours) > 1, topic

    both.change_files(put_old_segments)
    both.run(lambda wire, _: feed(wire, (batch for batch in second if batch.topic != "table")))
    ours, theirs = map(without_epochs, both.files())
    assert differences(ours, theirs) == []
    both.assert_same_checkpoints()


@pytest.mark.parametrize("version", VERSIONS)
def test_after_recovery_from_a_kill_both_left_the_same_bytes(tmp_path: Path, version: str) -> None:
    both, script = TwoBrokers(tmp_path, version), Script()
    first, second = script.part(), script.part()

    def write(wire: KafkaWire, _: Path) -> None:
        create_topics(wire, both.topics)
        feed(wire, first)

    both.run(write, kill=True)
    both.change_files(damage)
    both.run(lambda wire, _: None)
    ours, theirs = map(without_epochs, both.files())
    assert differences(ours, theirs) == []
    both.assert_same_checkpoints()

    # Appends after recovery work. The damaged log's producers are left out: their batches were lost, so the next ones
    # would be rejected.
    both.run(lambda wire, _: feed(wire, (batch for batch in second if batch.topic != "producers")))
    ours, theirs = map(without_epochs, both.files())
    assert differences(ours, theirs) == []
    both.assert_same_checkpoints()


def put_old_segments(data: Path) -> None:
    """Write segments of brokers before 0.11. The first and the third have no indexes, so they are recovered."""
    sets = list(message_sets().values())
    for number, part in enumerate((sets[:3], sets[3:6], sets[6:])):
        path = data / "old-0" / f"{part[0].records[0].offset:020d}.log"
        path.write_bytes(b"".join(each.data for each in part))
        for suffix in (".index", ".timeindex"):
            path.with_suffix(suffix).write_bytes(b"") if number == 1 else path.with_suffix(suffix).unlink(
                missing_ok=True
            )
    (data / "old-0" / f"{30:020d}.log").write_bytes(plain(5, base_offset=30))


def damage(data: Path) -> None:
    """Truncate a tail, flip a bit in the middle of a log, delete an index, corrupt another, add old formats."""
    tail = sorted((data / "codecs-0").glob("*.log"))[-1]
    tail.write_bytes(tail.read_bytes()[:-10])
    middle = sorted((data / "producers-0").glob("*.log"))[2]
    content = bytearray(middle.read_bytes())
    content[3000] ^= 1
    middle.write_bytes(content)
    sorted((data / "late.start-0").glob("*.index"))[1].unlink()
    put_old_segments(data)
    sorted((data / "by.time-0").glob("*.timeindex"))[1].write_bytes(b"garbage")
