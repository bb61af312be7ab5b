"""The transaction coordinator and the path of a Produce, without sockets, on real logs.

    host = TransactionHost(directory, [("t", 0)], feature=2)
    answer = host.init_producer_id(InitProducerIdRequest("id"))       # None: it is not answered yet

Time, faults of partitions and restarts are the test's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.handlers.data.produce import ProduceHandler
from barnabas.broker.handlers.transactions.add_partitions_to_txn import AddPartitionsToTxnHandler
from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.image import MetadataImage, TopicImage
from barnabas.broker.metadata.view import MetadataView
from barnabas.broker.metadata_changes import MetadataChanges
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.flush_waits import FlushWaits
from barnabas.broker.probes import ApiProbe, TransactionProbe
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.transactions.coordinator import TransactionCoordinator
from barnabas.broker.transactions.state import TransactionState
from barnabas.config import Listener
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.transactions.records import TransactionLogValue, transactional_id_of
from tests.support.manual_loop import InlineExecutor, ManualLoop
from tests.support.storage.bench import broker_config
from tests.support.transactions.real_partitions import KilledError, Place, RealPartitions

STATE: Place = ("__transaction_state", 0)
_ID_BLOCK = 1000
_SETTINGS = {
    "transaction_state_log_num_partitions": 1,
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": 1000,
}


class Decision(NamedTuple):
    """One record of `__transaction_state`. `offset` is its place in the log."""

    offset: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    partitions: tuple[Place, ...]
    client_version: int

    @property
    def is_prepared(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_commit(self) -> bool:
        return self.state is TransactionState.PREPARE_COMMIT


class TransactionHost:
    """One coordinator. `feature` is the cluster's transaction.version, `settings` are properties of the broker."""

    def __init__(self, directory: Path, places: Sequence[Place], feature: int, **settings: object) -> None:
        self._settings = {**_SETTINGS, **settings}
        self.loop = ManualLoop()
        ids = {topic: topic.encode().ljust(16, b"\0")[:16] for topic, _ in [*places, STATE]}
        self.partitions = RealPartitions(directory, {place: ids[place[0]] for place in [*places, STATE]}, self.loop)
        topics = {
            topic: TopicImage(topic, ids[topic], {n: cast(Any, None) for name, n in [*places, STATE] if name == topic})
            for topic in ids
        }
        names = {topic_id: topic for topic, topic_id in ids.items()}
        features = {"transaction.version": feature}
        self.image = MetadataImage(end_offset=1, topics=topics, names=names, features=features)
        self._next_block = 0
        self.before_start: Callable[[], None] = lambda: None
        """Called after a kill, when the logs are open and the coordinator has not started yet."""
        self._start()

    def restart(self) -> None:
        """Kill the broker and start it again. Faults are gone."""
        self._end_tasks()
        self.partitions.crash()
        self.before_start()
        self._start()

    def grow_state_topic(self) -> None:
        """Give `__transaction_state` a second partition, and start the broker again."""
        name, number = STATE
        topic = self.image.topics[name]
        self.partitions.add((name, number + 1), topic.topic_id)
        grown = topic._replace(partitions={**topic.partitions, number + 1: cast(Any, None)})
        self.image = self.image._replace(topics={**self.image.topics, name: grown})
        self.restart()

    def mend(self) -> None:
        """End all faults."""
        for partition in self.partitions.all.values():
            partition.is_full, partition.fails_in, partition.kills_in = False, 0, 0

    def close(self) -> None:
        """Stop the coordinator and close the logs."""
        self._end_tasks()
        self.partitions.close()
        self.loop.close()

    def init_producer_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse | None:
        """Serve InitProducerId."""
        try:
            return cast(InitProducerIdResponse | None, self._answer(lambda: self.coordinator.initialize(request)))
        except BrokerError as error:
            return InitProducerIdResponse(error=error.code)

    def add_partitions(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse | None:
        """Serve AddPartitionsToTxn."""
        handler = AddPartitionsToTxnHandler(self.coordinator, cast(MetadataView, self), ApiProbe())
        return cast(AddPartitionsToTxnResponse | None, self._answer(lambda: handler(self._session, request)))

    def end(self, request: EndTxnRequest) -> EndTxnResponse | None:
        """Serve EndTxn."""
        try:
            return cast(EndTxnResponse | None, self._answer(lambda: self.coordinator.end(request)))
        except BrokerError as error:
            return EndTxnResponse(error=error.code)

    def produce(
        self, transactional_id: str, batches: Mapping[Place, bytes], *, adds: bool
    ) -> dict[Place, tuple[ErrorCode, int]]:
        """Serve Produce; return error and base offset by place, empty while it is not answered."""
        topics = [
            ProduceTopic(name=topic, partitions=[ProducePartition(number, memoryview(bytearray(batch)))])
            for (topic, number), batch in batches.items()
        ]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topics=topics,
            transactional_id=transactional_id,
            version=12 if adds else 11,
        )
        answer = self._answer(lambda: self._produce(self._session, request))
        if answer is None:
            return {}
        return {
            (topic.name, each.partition): (each.error, each.base_offset)
            for topic in answer.topics
            for each in topic.partitions
        }

    def decisions(self) -> list[Decision]:
        """Return the records of `__transaction_state`, without tombstones."""
        found = []
        for batch in self.partitions.batches(STATE):
            for record in read_records(batch):
                transactional_id = transactional_id_of(record.key or b"")
                value = None if record.value is None else TransactionLogValue.from_bytes(record.value)
                if transactional_id is None or value is None:
                    continue
                found.append(
                    Decision(
                        record.offset,
                        transactional_id,
                        value.producer_id,
                        value.producer_epoch,
                        TransactionState(value.transaction_status),
                        tuple(value.partitions),
                        value.client_transaction_version,
                    )
                )
        return found

    def add_listener(self, listener: object) -> None:
        """Do nothing: the image of these tests does not change."""

    async def take_producer_id_block(self) -> range:
        """Return the next ids, as MetadataChanges does."""
        first = self._next_block
        self._next_block += _ID_BLOCK
        return range(first, first + _ID_BLOCK)

    def _start(self) -> None:
        config = LiveConfig(broker_config(**self._settings), 1, self.image)
        flush_waits = FlushWaits(self.loop)
        changes = cast(MetadataChanges, self)
        parts = LogParts(
            partitions=self.partitions.registry,
            store=cast(MetadataView, self),
            changes=changes,
            config=config,
            flush_waits=flush_waits,
            wall_ms=self.loop.wall_ms,
            loop=self.loop,
        )
        self.coordinator = TransactionCoordinator(
            parts,
            offsets=_NoOffsets(),
            producer_ids=ProducerIds(changes, lambda: 0),
            blocking_io=InlineExecutor(),
            probe=TransactionProbe(),
        )
        self._session = Session(Listener("PLAINTEXT", "127.0.0.1", 0))
        self._produce = ProduceHandler(
            self.partitions.registry,
            lambda _: None,
            flush_waits,
            self.coordinator,
            ApiProbe(),
            self.loop,
            InlineExecutor(),
        )
        self.loop.run(self.coordinator.start)
        self.loop.settle()

    def _end_tasks(self) -> None:
        self.loop.run_until_complete(self.coordinator.stop())

    def _answer(self, serve: Callable[[], Any]) -> Any:
        """Return the answer of `serve` once everything due has run; None if it is not there then, but comes to `late`.

        A kill that a partition waits for restarts the broker, without an answer.
        """
        try:
            answer = self.loop.run(serve)
        except KilledError:
            self.restart()
            return None
        if not isinstance(answer, Deferred):
            return answer
        found = self.late = list[Any]()
        answer.then(found.append)
        self.loop.settle()
        return found[0] if found else None


class _NoOffsets:
    """The group coordinator: no transaction of these tests has a group's offsets."""

    def write_offsets_marker(self, *arguments: Any, **settings: Any) -> Any:
        raise AssertionError(arguments)
