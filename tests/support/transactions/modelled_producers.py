"""Model producers: each behaves like a client library, with one request at a time and answers that may be lost.

A client commits only what was acknowledged. It repeats a request whose answer was lost; after an error that its library
treats as fatal it is dead. What it wrote without an acknowledgement may still arrive later, from a connection that the
client has given up: `late` batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    TxnTopic,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest
from barnabas.protocol.records.record import Record
from tests.support.storage.records import build
from tests.support.transactions.host import TransactionHost
from tests.support.transactions.real_partitions import Place

RETRIABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


class Loss(Enum):
    """What the network loses. A lost Produce request may arrive later."""

    NONE = "none"
    REQUEST = "request"
    ANSWER = "answer"


class Written(NamedTuple):
    """One acknowledged batch."""

    place: Place
    producer_id: int
    offset: int


@dataclass
class Ledger:
    """What clients were answered: batches of committed and of aborted transactions, and batches still under way."""

    committed: list[Written] = field(default_factory=list)
    aborted: list[Written] = field(default_factory=list)
    late: list[tuple[str, bool, Place, bytes]] = field(default_factory=list)
    """Transactional id, whether the request adds partitions, place, batch."""


class ModelledProducer:
    """One instance of a transactional id. `level` 2: an epoch for each transaction; 0: a client before Kafka 4.0."""

    def __init__(
        self, host: TransactionHost, ledger: Ledger, transactional_id: str, level: int, timeout_ms: int
    ) -> None:
        self.transactional_id = transactional_id
        self.level = level
        self.is_dead = False
        self._host = host
        self._ledger = ledger
        self._timeout_ms = timeout_ms
        self._producer_id = -1
        self._epoch = -1
        self._needs_init = True
        self._must_abort = False
        self._ending: bool | None = None
        self._sequences: dict[Place, int] = {}
        self._added: set[Place] = set()
        self._written: list[Written] = []
        self._unacknowledged: dict[Place, bytes] = {}

    def init(self, *, is_lost: bool = False) -> None:
        """Get an id and an epoch; a client that has them already sends them (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            transaction_timeout_ms=self._timeout_ms,
        )
        answer = self._host.init_producer_id(request)
        if answer is None or is_lost or answer.error in RETRIABLE:
            return
        if answer.error != ErrorCode.NONE:
            self._die(answer.error)
            return
        self._give_up_unacknowledged()
        self._begin(answer.producer_id, answer.producer_epoch)
        self._ending, self._must_abort, self._needs_init = None, False, False
        self._written = []

    def write(self, places: tuple[Place, ...], loss: Loss = Loss.NONE) -> None:
        """Write one batch to each place; batches without an acknowledgement are repeated instead."""
        if self._needs_init:
            self.init()
        if self.is_dead or self._needs_init or self._ending is not None or self._must_abort:
            return
        if not self._unacknowledged:
            if self.level == 0 and not self._add(tuple(place for place in places if place not in self._added)):
                return
            self._unacknowledged = {place: self._batch(place) for place in places}
        if loss is Loss.REQUEST:
            return
        answers = self._host.produce(self.transactional_id, self._unacknowledged, adds=self.level == 2)
        if loss is Loss.ANSWER:
            return
        for place, (error, offset) in answers.items():
            if error == ErrorCode.NONE:
                del self._unacknowledged[place]
                self._sequences[place] = self._sequences.get(place, 0) + 1
                self._written.append(Written(place, self._producer_id, offset))
            elif error in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED):
                self._die(error)
                return
            elif error not in RETRIABLE:
                self._must_abort = True

    def end(self, *, is_commit: bool, is_lost: bool = False) -> None:
        """End the transaction. What was not acknowledged can only be aborted; a lost answer is requested again."""
        if self.is_dead or self._needs_init:
            return
        if self._ending is None:
            if not self._written and not self._unacknowledged and not self._must_abort:
                return  # clients send no EndTxn for an empty transaction
            self._ending = is_commit and not self._unacknowledged and not self._must_abort
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            is_commit=self._ending,
            version=5 if self.level == 2 else 4,
        )
        answer = self._host.end(request)
        if answer is None or is_lost or answer.error in RETRIABLE:
            return
        if answer.error != ErrorCode.NONE:
            self._die(answer.error)
            return
        (self._ledger.committed if self._ending else self._ledger.aborted).extend(self._written)
        self._written, self._ending, self._must_abort = [], None, False
        self._added.clear()
        if self.level == 2:
            self._give_up_unacknowledged()
            assert (answer.producer_id, answer.producer_epoch) > (self._producer_id, self._epoch)
            self._begin(answer.producer_id, answer.producer_epoch)
        elif self._unacknowledged:
            self._give_up_unacknowledged()
            self._needs_init = True  # its sequences are unknown: a new epoch (KIP-360)

    def vanish(self) -> None:
        """Leave without a word. A batch under way may still arrive."""
        self._give_up_unacknowledged()
        self.is_dead = True

    def _add(self, places: tuple[Place, ...]) -> bool:
        if not places:
            return True
        topics = [TxnTopic(name=topic, partitions=[number]) for topic, number in places]
        request = AddPartitionsToTxnRequest(
            version=3,
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=topics,
        )
        answer = self._host.add_partitions(request)
        if answer is None:
            return False
        errors = {each.error for topic in answer.topics for each in topic.partitions}
        fatal = errors - {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED, *RETRIABLE}
        if fatal:
            self._die(fatal.pop())
        elif errors == {ErrorCode.NONE}:
            self._added.update(places)
            return True
        return False

    def _batch(self, place: Place) -> bytes:
        record = Record(0, self._host.loop.wall_ms(), b"k", self.transactional_id.encode(), ())
        return bytes(
            build(
                [record],
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=self._sequences.get(place, 0),
                is_transactional=True,
            )
        )

    def _begin(self, producer_id: int, epoch: int) -> None:
        self._producer_id, self._epoch = producer_id, epoch
        self._sequences.clear()
        self._added.clear()

    def _give_up_unacknowledged(self) -> None:
        for place, batch in self._unacknowledged.items():
            self._ledger.late.append((self.transactional_id, self.level == 2, place, batch))
        self._unacknowledged = {}

    def _die(self, error: ErrorCode) -> None:
        expected = (
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.TRANSACTION_ABORTABLE,
        )
        assert error in expected, error
        self.vanish()
