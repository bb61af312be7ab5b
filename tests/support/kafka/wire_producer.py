"""A transactional producer over Kafka's protocol, request by request: tests decide what is sent, late and repeated.

    producer = WireProducer(wire, "id")            # a client of transaction.version 2; level=0: one before Kafka 4.0
    producer.init()
    producer.write("topic", 0, b"a", b"b")
    producer.end(is_commit=True)

Every method returns Kafka's error code. Retriable answers of a coordinator that is loading, or that still writes the
markers of an earlier transaction, are repeated up to a deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from barnabas.protocol.records.record import Record
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.storage.records import TIMESTAMP, build

LEVELS = (0, 2)
RETRIABLE = (3, 5, 6, 7, 14, 15, 16, 19, 51)
"""Errors after which clients repeat a request."""
WAIT_S = 30.0
_GROUP, _TRANSACTION = 0, 1
_INIT, _ADD_PARTITIONS, _ADD_OFFSETS = 4, 3, 3
_PRODUCE = {0: 11, 2: 12}
_COMMIT_OFFSETS = {0: 3, 2: 5}
_END = {0: 4, 2: 5}


class WireProducer:
    """One instance of a transactional id. Sequences continue by partition, and restart with each new epoch."""

    def __init__(
        self,
        wire: KafkaWire,
        transactional_id: str,
        *,
        level: int = 2,
        timeout_ms: int = 60_000,
        wait_s: float = WAIT_S,
    ) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.level = level
        self.producer_id = -1
        self.epoch = -1
        self.timestamp = TIMESTAMP
        self._timeout_ms = timeout_ms
        self._wait_s = wait_s
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[object] = set()

    def init(self) -> int:
        """Get a producer id and an epoch; ends the transaction that an earlier instance left open."""

        def ask() -> int:
            answer = self.wire.call(
                "init_producer_id",
                _INIT,
                transactional_id=self.transactional_id,
                transaction_timeout=timedelta(milliseconds=self._timeout_ms),
            )
            if answer.error_code == 0:
                self._begin(answer.producer_id, answer.producer_epoch)
            return int(answer.error_code)

        return find_coordinator(self.wire, self.transactional_id) or self._repeated(ask)

    def write(self, topic: str, partition: int, *values: bytes, key: bytes | None = None) -> int:
        """Append one batch to a partition, which is added to the transaction first at level 0."""
        return self.write_many({(topic, partition): values}, key=key)

    def write_many(self, values: Mapping[tuple[str, int], tuple[bytes, ...]], *, key: bytes | None = None) -> int:
        """Append a batch to each of several partitions with one request; return the first error."""
        if self.level == 0 and (error := self.add_partitions(*values)):
            return error
        batches = {place: self.batch(place, *each, key=key) for place, each in values.items()}
        error = self._repeated(lambda: self.send(batches))
        if error == 0:
            for place, each in values.items():
                self._sequences[place] = self._sequences.get(place, 0) + len(each)
        return error

    def batch(self, place: tuple[str, int], *values: bytes, key: bytes | None = None) -> bytes:
        """Build the next batch of a partition. The timestamp is `self.timestamp`."""
        records = [Record(offset, self.timestamp, key, value, ()) for offset, value in enumerate(values)]
        header: dict[str, Any] = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "is_transactional": True,
        }
        return bytes(build(records, base_sequence=self._sequences.get(place, 0), **header))

    def send(self, batches: Mapping[tuple[str, int], bytes]) -> int:
        """Send batches as they are, once; return the first error."""
        version = _PRODUCE[self.level]
        kio = schema("produce", version, "request")
        topics = tuple(
            kio.TopicProduceData(name=topic, partition_data=(kio.PartitionProduceData(index=number, records=batch),))
            for (topic, number), batch in batches.items()
        )
        answer = self.wire.call(
            "produce",
            version,
            transactional_id=self.transactional_id,
            acks=-1,
            timeout=timedelta(seconds=30),
            topic_data=_merged(kio, topics),
        )
        errors = [int(each.error_code) for topic in answer.responses for each in topic.partition_responses]
        return next((error for error in errors if error), 0)

    def add_partitions(self, *places: tuple[str, int]) -> int:
        """Add partitions to the transaction with a request of their own, unless they are part of it."""
        new = [place for place in places if place not in self._added]
        if not new:
            return 0
        kio = schema("add_partitions_to_txn", _ADD_PARTITIONS, "request")
        topics = tuple(
            kio.AddPartitionsToTxnTopic(name=name, partitions=tuple(n for topic, n in new if topic == name))
            for name in dict.fromkeys(topic for topic, _ in new)
        )

        def ask() -> int:
            answer = self.wire.call(
                "add_partitions_to_txn",
                _ADD_PARTITIONS,
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=topics,
            )
            results = [each for topic in answer.results_by_topic_v3_and_below for each in topic.results_by_partition]
            return next((int(each.partition_error_code) for each in results if each.partition_error_code), 0)

        error = self._repeated(ask)
        if error == 0:
            self._added.update(new)
        return error

    def commit_offsets(self, group: str, topic: str, offsets: Mapping[int, int], metadata: str = "") -> int:
        """Commit a group's offsets as part of the transaction; returns the first error."""
        if self.level == 0 and ("group", group) not in self._added:
            error = self._repeated(lambda: self._add_offsets(group))
            if error:
                return error
            self._added.add(("group", group))
        version = _COMMIT_OFFSETS[self.level]
        kio = schema("txn_offset_commit", version, "request")
        partitions = tuple(
            kio.TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=offset, committed_metadata=metadata)
            for n, offset in offsets.items()
        )
        topics = (kio.TxnOffsetCommitRequestTopic(name=topic, partitions=partitions),)

        def ask() -> int:
            answer = self.wire.call(
                "txn_offset_commit",
                version,
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                topics=topics,
            )
            errors = [int(each.error_code) for found in answer.topics for each in found.partitions]
            return next((error for error in errors if error), 0)

        return self._repeated(ask)

    def end(self, *, is_commit: bool) -> int:
        """Commit or abort. At level 2 the answer has the epoch of the next transaction."""
        version = _END[self.level]

        def ask() -> int:
            answer = self.wire.call(
                "end_txn",
                version,
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=is_commit,
            )
            if answer.error_code == 0 and self.level == 2:
                self._begin(answer.producer_id, answer.producer_epoch)
            return int(answer.error_code)

        error = self._repeated(ask)
        if error == 0:
            self._added.clear()
        return error

    def _begin(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences.clear()
        self._added.clear()

    def _add_offsets(self, group: str) -> int:
        answer = self.wire.call(
            "add_offsets_to_txn",
            _ADD_OFFSETS,
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return int(answer.error_code)

    def _repeated(self, ask: Callable[[], int]) -> int:
        deadline = time.monotonic() + self._wait_s
        while (error := ask()) in RETRIABLE and time.monotonic() < deadline:
            time.sleep(0.01)  # polling another process with a deadline
        return error


def find_coordinator(wire: KafkaWire, key: str, *, is_group: bool = False) -> int:
    """Find a coordinator, which creates `__transaction_state` or `__consumer_offsets`; returns Kafka's error code."""
    deadline = time.monotonic() + WAIT_S
    while (error := coordinator_error(wire, key, is_group=is_group)) in RETRIABLE and time.monotonic() < deadline:
        time.sleep(0.01)  # polling another process with a deadline
    return error


def coordinator_error(wire: KafkaWire, key: str, *, is_group: bool = False) -> int:
    """Return the error code of one FindCoordinator."""
    key_type = _GROUP if is_group else _TRANSACTION
    (found,) = wire.call("find_coordinator", 4, key_type=key_type, coordinator_keys=(key,)).coordinators
    return int(found.error_code)


def transaction_state(wire: KafkaWire, transactional_id: str) -> str:
    """Return the state that ListTransactions shows, empty for an unknown id."""
    # Not DescribeTransactions: kio does not read the start time of an id without a transaction, -1.
    found = wire.call("list_transactions", 0, state_filters=(), producer_id_filters=())
    assert found.error_code == 0, found
    states = {each.transactional_id: str(each.transaction_state) for each in found.transaction_states}
    return states.get(transactional_id, "")


def await_complete(wire: KafkaWire, transactional_id: str) -> str:
    """Wait until the markers of the last transaction are written: Kafka answers EndTxn earlier. Returns the state."""
    deadline = time.monotonic() + WAIT_S
    while not (state := transaction_state(wire, transactional_id)).startswith(("Complete", "Empty")):
        assert time.monotonic() < deadline, state
        time.sleep(0.01)  # polling another process with a deadline
    return state


def _merged(kio: Any, topics: tuple[Any, ...]) -> tuple[Any, ...]:
    """Merge the entries of one topic: the broker refuses a request that names a topic twice."""
    partitions: dict[str, list[Any]] = {}
    for topic in topics:
        partitions.setdefault(topic.name, []).extend(topic.partition_data)
    return tuple(kio.TopicProduceData(name=name, partition_data=tuple(each)) for name, each in partitions.items())
