"""What a drill writes at the source of a mirror, and the comparison of both sides with it afterwards."""

from __future__ import annotations

import random
import time
from collections import defaultdict

from barnabas import Consumer, ConsumerConfig
from barnabas.protocol.compression import Codec
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.compacted_topic import last_values, read_all
from tests.support.daemon import Daemon
from tests.support.groups.committed import commit
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import LEVELS, RETRIABLE, WAIT_S, WireProducer, find_coordinator
from tests.support.storage.records import build
from tests.support.wire import WireClient

PARTITIONS = 2
COMPACTED_CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.bytes": "2000",
    "file.delete.delay.ms": "1",
}
_KEYS = 6
_LAST = b"last"


class Writer:
    """Writes to two topics and a group of one seed. All that it has written is acknowledged. Blocks."""

    def __init__(self, source: Daemon, seed: int) -> None:
        self.topic, self.table, self.group = f"t-{seed}", f"c-{seed}", f"g-{seed}"
        self.committed: dict[int, list[bytes]] = defaultdict(list)
        """Values that read_committed consumers get, by partition."""
        self.records: dict[int, Record] = {}
        """Records of the compacted topic by offset."""
        self.offsets: dict[int, int] = {}
        """The group's."""
        self._source = source
        self._timestamp = time.time_ns() // 1_000_000  # not an old one, which retention would delete
        self._chance = random.Random(seed)
        self._count = 0
        self._open: dict[int, list[bytes]] = defaultdict(list)
        """Values of the open transaction, by partition."""
        self._ends = [0] * PARTITIONS
        self._wire = self._connected()
        self._producer = WireProducer(self._wire, f"x-{seed}", level=self._chance.choice(LEVELS))
        self._producer.timestamp = self._timestamp
        self._is_open = False
        assert self._producer.init() == 0

    def reconnect(self) -> None:
        """Go on after the source was killed; an open transaction stays open."""
        self._wire.socket.close()
        self._wire = self._producer.wire = self._connected()

    def write(self, steps: int) -> None:
        """Take some steps, each of a kind that is drawn."""
        kinds = (self._plain, self._plain, self._transactional, self._end, self._compacted, self._compacted)
        for _ in range(steps):
            self._chance.choice(kinds)()
        self._commit_offsets()

    def finish(self) -> None:
        """End the open transaction, and write the last record of each partition."""
        self._end()
        for number in range(PARTITIONS):
            self._plain(number, _LAST)
        self._commit_offsets()
        self._wire.socket.close()

    def _connected(self) -> KafkaWire:
        wire = KafkaWire(self._source.host, self._source.port)
        assert find_coordinator(wire, self.group, is_group=True) == 0, "the source finds no coordinator"
        return wire

    def _value(self) -> bytes:
        self._count += 1
        return b"%06d" % self._count

    def _plain(self, partition: int | None = None, value: bytes | None = None) -> None:
        number = self._chance.randrange(PARTITIONS) if partition is None else partition
        values = [self._value() for _ in range(self._chance.randrange(1, 5))] if value is None else [value]
        records = [Record(offset, self._timestamp, None, each, ()) for offset, each in enumerate(values)]
        answer = self._wire.produce(
            9, self.topic, build(records, self._chance.choice(list(Codec))), partition=number, acks=-1
        )
        assert answer.error_code == 0, answer
        self._note(number, answer.base_offset, values)

    def _transactional(self) -> None:
        for number in self._chance.sample(range(PARTITIONS), self._chance.randrange(1, PARTITIONS + 1)):
            values = [self._value() for _ in range(self._chance.randrange(1, 4))]
            assert self._producer.write(self.topic, number, *values) == 0
            self._open[number] += values
            self._is_open = True

    def _end(self) -> None:
        if not self._is_open:
            return
        is_commit = self._chance.random() < 0.6
        assert self._producer.end(is_commit=is_commit) == 0
        if is_commit:
            for number, values in self._open.items():
                self.committed[number] += values
        self._open.clear()
        self._is_open = False

    def _compacted(self) -> None:
        keys = [b"key-%d" % self._chance.randrange(_KEYS) for _ in range(self._chance.randrange(3, 12))]
        records = [
            Record(offset, self._timestamp, key, None if self._chance.random() < 0.1 else self._value() * 20, ())
            for offset, key in enumerate(keys)
        ]
        answer = self._wire.produce(9, self.table, build(records, self._chance.choice(list(Codec))), acks=-1)
        assert answer.error_code == 0, answer
        for each in records:
            offset = answer.base_offset + each.offset
            self.records[offset] = each._replace(offset=offset)

    def _note(self, number: int, base_offset: int, values: list[bytes]) -> None:
        self.committed[number] += values
        self._ends[number] = base_offset + len(values)

    def _commit_offsets(self) -> None:
        offsets = {number: self._chance.randrange(end + 1) for number, end in enumerate(self._ends)}
        deadline = time.monotonic() + WAIT_S
        codes = commit(self._wire, self.group, self.topic, offsets)
        while any(each in RETRIABLE for each in codes) and time.monotonic() < deadline:
            time.sleep(0.01)  # polling another process with a deadline
            codes = commit(self._wire, self.group, self.topic, offsets)
        assert not any(codes), codes
        self.offsets = offsets


async def check(daemon: Daemon, writer: Writer) -> None:
    """Compare what consumers of one side read with what was written."""
    for number in range(PARTITIONS):
        found = await _committed(daemon, TopicPartition(writer.topic, number))
        assert sorted(found) == sorted(writer.committed[number]), (daemon.directory, number)
    with WireClient(daemon.host, daemon.port) as wire:
        records = read_all(wire, writer.table)
        end = wire.end_offset(writer.table)
    assert end == len(writer.records)
    wrong = [each for each in records if each != writer.records.get(each.offset)]
    assert not wrong, (daemon.directory, wrong[:3])
    offsets = [each.offset for each in records]
    assert offsets == sorted(set(offsets))
    assert last_values(records) == last_values(writer.records.values())


async def _committed(daemon: Daemon, key: TopicPartition) -> list[bytes]:
    """Read values until the last one."""
    found: list[bytes] = []
    config = ConsumerConfig(bootstrap=daemon.bootstrap, isolation="read_committed", offset_reset="earliest")
    async with Consumer(config) as consumer:
        await consumer.assign([key])
        while found[-1:] != [_LAST]:
            found += [each.value or b"" for each in await consumer.poll(timeout_ms=100)]
    return found
