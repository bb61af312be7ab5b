"""The same transactions leave the same files in Kafka 4.3 and in our daemon, apart from times.

Both are fed over Kafka's protocol, one request at a time: commits, aborts, transactions without records, offsets of a
group, repeated and late requests, a second instance that fences the first, a timeout. All answers are compared, then
all files of the written partitions, of `__transaction_state` and of `__consumer_offsets`: data batches, markers,
transaction indexes, producer snapshots. Once with clients of transaction.version 2, once with the feature at 0 and
older clients.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.masked_logs import masked_files
from tests.support.kafka.two_brokers import Topic, create_topics, differences
from tests.support.kafka.wire_producer import LEVELS, WireProducer, await_complete, find_coordinator

pytestmark = pytest.mark.timeout(300)
VERSION = "4.3.0"
ROUNDS = 12
TIMEOUT_MS = 1000
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
TOPICS = {
    "ledger": Topic(2, {"internal.segment.bytes": "4096", "index.interval.bytes": "200", "segment.ms": str(2**62)}),
    "other": Topic(1, {"segment.ms": str(2**62)}),
}
DIRECTORIES = ("ledger-0", "ledger-1", "other-0", "__transaction_state-0", "__consumer_offsets-0")
_TIMES = re.compile(r"^Dumping .*$|(?<=CreateTime: )\d+|(?<=crc: )\d+|(?<=TimestampMs\":)\d+", re.MULTILINE)
Transcript = list[tuple[object, ...]]


class Traffic:
    """The requests of the test, and what was answered."""

    def __init__(self, wire: KafkaWire, level: int) -> None:
        self._wire = wire
        self._level = level
        self.answers: Transcript = []

    def run(self) -> Transcript:
        """Send everything; the last transaction stays open."""
        create_topics(self._wire, TOPICS)
        assert find_coordinator(self._wire, "group", is_group=True) == 0
        first, second = self._producer("first"), self._producer("second/ü")
        for number in range(ROUNDS):
            self._interleaved(first, second, number)
        self._repeated_and_late(first)
        self._fenced(first)
        self._timed_out()
        self._left_open(second)
        return self.answers

    def _producer(self, transactional_id: str, *, timeout_ms: int = 60_000) -> WireProducer:
        # Refusals come as answers, so that one that should be retried shows in the transcript after 5 s.
        producer = WireProducer(self._wire, transactional_id, level=self._level, timeout_ms=timeout_ms, wait_s=5)
        self._note("init", producer.init(), producer)
        return producer

    def _note(self, step: str, error: int, producer: WireProducer) -> None:
        self.answers.append((step, error, producer.producer_id, producer.epoch))

    def _end(self, producer: WireProducer, step: str, *, is_commit: bool) -> None:
        self._note(step, producer.end(is_commit=is_commit), producer)
        self.answers.append((step, await_complete(self._wire, producer.transactional_id)))

    def _interleaved(self, first: WireProducer, second: WireProducer, number: int) -> None:
        self._note("write", first.write("ledger", number % 2, b"a" * 200, b"b%d" % number), first)
        self._note("write", second.write("ledger", 0, b"c" * 300, key=b"k"), second)
        both = {("ledger", 0): (b"d%d" % number,), ("ledger", 1): (b"e" * 150,), ("other", 0): (b"f",)}
        self._note("write many", second.write_many(both), second)
        if number % 3 == 0:
            error = first.commit_offsets("group", "ledger", {0: number, 1: 2 * number}, metadata=f"round {number}")
            self._note("offsets", error, first)
        self._end(first, "end first", is_commit=number % 3 != 1)
        self._end(second, "end second", is_commit=number % 2 == 0)

    def _repeated_and_late(self, producer: WireProducer) -> None:
        self._note("write", producer.write("other", 0, b"before"), producer)
        late = {("other", 0): producer.batch(("other", 0), b"late")}
        producer_id, epoch = producer.producer_id, producer.epoch
        self._end(producer, "end", is_commit=True)
        after = producer.producer_id, producer.epoch
        for is_commit in (True, False):
            producer.producer_id, producer.epoch = producer_id, epoch
            self._note(f"repeated end {is_commit}", producer.end(is_commit=is_commit), producer)
            self.answers.append((await_complete(self._wire, producer.transactional_id),))
        if self._level == 2:
            self._note("late write", producer.send(late), producer)
        producer.producer_id, producer.epoch = after
        for is_commit in (False, True):
            self._note(f"empty end {is_commit}", producer.end(is_commit=is_commit), producer)
            self.answers.append((await_complete(self._wire, producer.transactional_id),))

    def _fenced(self, old: WireProducer) -> None:
        again = self._producer(old.transactional_id)
        self._note("write", again.write("ledger", 0, b"undone"), again)
        self._note("offsets", again.commit_offsets("group", "other", {0: 7}), again)
        successor = self._producer(old.transactional_id)
        self.answers.append((await_complete(self._wire, old.transactional_id),))
        self._note("fenced write", again.write("ledger", 0, b"never"), again)
        self._note("fenced offsets", again.commit_offsets("group", "other", {0: 8}), again)
        self._note("fenced end", again.end(is_commit=True), again)
        self._note("write", successor.write("ledger", 1, b"done"), successor)
        self._end(successor, "end", is_commit=True)

    def _timed_out(self) -> None:
        producer = self._producer("slow", timeout_ms=TIMEOUT_MS)
        self._note("write", producer.write("other", 0, b"timed out"), producer)
        self.answers.append((await_complete(self._wire, producer.transactional_id),))
        self._note("write after the timeout", producer.write("other", 0, b"too late"), producer)
        self._note("end after the timeout", producer.end(is_commit=True), producer)
        self._note("init", producer.init(), producer)
        self._note("write", producer.write("other", 0, b"in time"), producer)
        self._end(producer, "end", is_commit=True)

    def _left_open(self, producer: WireProducer) -> None:
        self._note("write", producer.write("ledger", 0, b"open"), producer)
        self._note("offsets", producer.commit_offsets("group", "ledger", {1: 99}), producer)


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_transactions_leave_the_same_bytes(tmp_path: Path, level: int) -> None:
    feature = f"transaction.version={level}"
    theirs = tmp_path / "kafka" / "data"
    names = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    kafka = Kafka(VERSION, theirs, tmp_path / "kafka", node_id=1, **names)
    kafka.format("--feature", feature)
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        expected = Traffic(wire, level).run()

    with Daemon(tmp_path / "ours", {**SETTINGS, "initial.features": feature}) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            answers = Traffic(wire, level).run()
        assert daemon.stop() == 0
    assert answers == expected
    ours = tmp_path / "ours" / "data"
    assert differences(masked_files(ours, DIRECTORIES), masked_files(theirs, DIRECTORIES)) == []

    rows = [path for path in (ours / "ledger-0").glob("*.txnindex") if path.stat().st_size]
    assert len(rows) > 1, "the aborted transactions of this test are in several segments"
    assert_decoded(kafka, ours, theirs)


def assert_decoded(kafka: Kafka, ours: Path, theirs: Path) -> None:
    """Assert that Kafka's DumpLogSegments decodes our transaction states, and prints what it prints of Kafka's."""
    name = "__transaction_state-0/00000000000000000000.log"
    printed = [
        _TIMES.sub("*", kafka.dump_log_segments("--transaction-log-decoder", "--files", str(data / name)))
        for data in (ours, theirs)
    ]
    assert '"transactionalId":"first"' in printed[0]
    assert printed[0] == printed[1]
