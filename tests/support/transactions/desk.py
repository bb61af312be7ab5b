"""Producers that write to one partition in interleaved transactions, and the model of that partition."""

from __future__ import annotations

from tests.support.compacted_topic import read_all
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.wire_producer import WireProducer
from tests.support.transactions.committed_reads import end_offset, fetch_committed
from tests.support.transactions.partition_model import PartitionModel
from tests.support.wire import WireClient


class Desk:
    """Each producer has a transactional id of its own; `levels` are the transaction versions of their clients."""

    def __init__(self, wire: WireClient, kafka: KafkaWire, topic: str, *, levels: tuple[int, ...] = (2, 2, 0)) -> None:
        self.wire, self.kafka, self.topic = wire, kafka, topic
        self.model = PartitionModel()
        self.producers = [WireProducer(kafka, f"{topic}-{number}", level=each) for number, each in enumerate(levels)]
        for producer in self.producers:
            assert producer.init() == 0
        self.open: dict[int, int] = {}
        """Producers with an open transaction -> its number in the model."""
        self._transactions = 0

    def move_to(self, wire: WireClient, kafka: KafkaWire) -> None:
        """Use other connections, after a restart of the broker."""
        self.wire, self.kafka = wire, kafka
        for producer in self.producers:
            producer.wire = kafka

    def write(self, number: int, *values: bytes, key: bytes | None = None) -> None:
        """Append a batch in the producer's transaction, which it may open."""
        if number not in self.open:
            self._transactions += 1
            self.open[number] = self._transactions
        assert self.producers[number].write(self.topic, 0, *values, key=key) == 0
        self.model.write(self.open[number], *values, key=key)

    def end(self, number: int, *, is_commit: bool) -> None:
        """Commit or abort the producer's transaction."""
        assert self.producers[number].end(is_commit=is_commit) == 0
        self.model.end(self.open.pop(number), is_commit=is_commit)

    def plain(self, batch: bytearray, value: bytes) -> None:
        """Append a batch outside of transactions, whose only record has that value."""
        assert self.wire.produce(self.topic, batch).error == 0
        self.model.write(0, value)

    def read_uncommitted(self) -> list[tuple[int, bytes | None]]:
        """Return offset and value of every record but the markers."""
        markers = {offset for offset, row in enumerate(self.model.log) if row is None}
        return [(each.offset, each.value) for each in read_all(self.wire, self.topic) if each.offset not in markers]

    def check(self, *starts: int) -> None:
        """Compare both isolation levels with the model, from each of `starts`. The log must not be compacted."""
        assert end_offset(self.kafka, self.topic, 0, committed=True) == self.model.last_stable_offset
        assert end_offset(self.kafka, self.topic, 0, committed=False) == self.model.end_offset
        for start in starts:
            assert fetch_committed(self.kafka, self.topic, 0, start).values == self.model.committed(start)
        assert self.read_uncommitted() == self.model.everything()
