"""Admission of transactional batches: the transaction's coordinator must know a partition before it is written.

Otherwise a late produce would open a transaction in the log that no coordinator ends. A partition in which the
producer's transaction is open already needs no check: its coordinator has admitted it before. Every other one is added
to the transaction (Produce version 12 and later, the native dialect) or verified to be part of it (older clients, which
send AddPartitionsToTxn). Because the coordinator is in this process, nothing happens between the check and the append,
so Kafka's verification guards are not needed.

Error codes of a partition, as in Kafka: INVALID_PRODUCER_EPOCH for an epoch that is not the producer's current one;
NOT_ENOUGH_REPLICAS, which every client retries without fetching metadata, while the coordinator is loaded or not
available, and for version 11 and older while it ends the previous transaction (CONCURRENT_TRANSACTIONS from 12 on);
TRANSACTION_ABORTABLE for a partition that is not part of the transaction, INVALID_TXN_STATE for version 10 and older;
OUT_OF_ORDER_SEQUENCE_NUMBER for a batch that overtook an earlier one of a producer without state in the log, from
version 12 on by its sequence, else by the sequences that were refused before. INVALID_PRODUCER_ID_MAPPING for the whole
request if its batches have several producers. Source: Kafka ReplicaManager.handleProduceAppend,
AddPartitionsToTxnManager, ProducerAppendInfo.checkSequence.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.layout import HEADER_SIZE, TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.messages.data.produce import ProduceRequest

PartitionKey = tuple[str, int]
"""Topic and partition number."""

Admission = Mapping[PartitionKey, ErrorCode]
"""The refused partitions; empty: all may be written."""

Refusals = Mapping[PartitionKey, BrokerError]
"""The refused partitions of a Produce request, with their errors."""

REFUSED_SEQUENCES_MAX: Final = 10_000
"""Producers and partitions whose refused sequences are kept; beyond that the oldest are dropped."""

_unpack_producer = struct.Struct(">22xB20xqhi").unpack_from
"""Low byte of the attributes, producer id, producer epoch, base sequence."""

_RETRIED_AS_NOT_ENOUGH_REPLICAS: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class TransactionAdmission(Protocol):
    """The part of the transaction coordinator that Produce needs."""

    def admit(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[PartitionKey],
        *,
        adds: bool,
    ) -> Admission | Deferred[Admission]:
        """Check that partitions belong to the producer's open transaction; with `adds`, make them belong to it."""
        ...


class Batch(NamedTuple):
    """The records for one existing partition."""

    key: PartitionKey
    partition: Partition
    records: memoryview


_Waiting = tuple[PartitionKey, "Partition", int]
"""A transactional batch whose partition needs the coordinator's admission: key, partition, base sequence."""


class ProduceAdmission:
    """Admits the transactional batches of Produce requests. Event loop only."""

    def __init__(self, coordinator: TransactionAdmission) -> None:
        self._coordinator = coordinator
        self._refused_sequences: dict[tuple[PartitionKey, int], tuple[int, int]] = {}
        """Partition and producer id -> epoch and lowest sequence refused in it, of clients before version 12."""

    def admit(self, request: ProduceRequest, batches: Sequence[Batch]) -> Refusals | Deferred[Refusals]:
        """Return the partitions that must not be written. Raises BrokerError INVALID_PRODUCER_ID_MAPPING.

        A Deferred while the coordinator's log is created or flushed: copy the records then.
        """
        producer: tuple[int, int] | None = None
        waiting: list[_Waiting] = []
        refusals: dict[PartitionKey, BrokerError] = {}
        for key, partition, records in batches:
            if len(records) < HEADER_SIZE:
                continue  # the log refuses it
            attributes, producer_id, epoch, base_sequence = _unpack_producer(records)
            if not attributes & TRANSACTIONAL_MASK or producer_id < 0:
                continue
            if producer is None:
                producer = (producer_id, epoch)
            elif producer != (producer_id, epoch):
                raise BrokerError(
                    ErrorCode.INVALID_PRODUCER_ID_MAPPING, "transactional records of more than one producer"
                )
            state = partition.producer(producer_id)
            if state is not None and epoch <= state.epoch:
                if epoch < state.epoch:
                    refusals[key] = BrokerError(
                        ErrorCode.INVALID_PRODUCER_EPOCH,
                        f"producer {producer_id} has epoch {epoch}, the last seen in {key[0]}-{key[1]} is"
                        f" {state.epoch}",
                    )
                    continue
                if state.has_open_transaction:
                    continue
            waiting.append((key, partition, base_sequence))
        if producer is None or not waiting:
            return refusals
        admission = self._coordinator.admit(
            request.transactional_id or "",
            *producer,
            [key for key, _, _ in waiting],
            adds=request.adds_partitions,
        )
        if not isinstance(admission, Deferred):
            return self._settle(request, producer, waiting, refusals, admission)
        answer: Deferred[Refusals] = Deferred()
        settled = partial(self._settle, request, producer, waiting, refusals)
        admission.then(lambda found: answer.resolve(settled(found)))
        return answer

    def _settle(
        self,
        request: ProduceRequest,
        producer: tuple[int, int],
        waiting: Sequence[_Waiting],
        refusals: dict[PartitionKey, BrokerError],
        admission: Admission,
    ) -> Refusals:
        """Add the coordinator's refusals, and batches that overtook refused ones."""
        if not admission and not self._refused_sequences and not any(sequence for _, _, sequence in waiting):
            return refusals  # a batch with sequence 0 overtook none
        for each in waiting:
            key, partition, base_sequence = each
            code = admission.get(key)
            if code is not None:
                refusals[key] = _as_produce_error(request, code)
                if not request.adds_partitions:
                    self._note_refused(each, producer)
            elif (expected := self._expected_sequence(request, each, producer)) < base_sequence:
                refusals[key] = overtook = BrokerError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer[0]} begins in {key[0]}-{key[1]} with sequence {base_sequence},"
                    f" expected is {expected}",
                )
                # Kafka checks the sequence in its append, whose errors have the start offset.
                overtook.log_start_offset = partition.log.log_start_offset
        return refusals

    def _expected_sequence(self, request: ProduceRequest, waiting: _Waiting, producer: tuple[int, int]) -> int:
        """Return the highest sequence with which the producer may begin here; its own if there is no limit."""
        producer_id, epoch = producer
        key, partition, base_sequence = waiting
        if request.adds_partitions:
            state = partition.producer(producer_id)
            return base_sequence if state is not None and state.batches else 0
        if not self._refused_sequences:
            return base_sequence
        refused_epoch, lowest = self._refused_sequences.get((key, producer_id), (epoch, base_sequence))
        if refused_epoch != epoch or base_sequence <= lowest:
            self._refused_sequences.pop((key, producer_id), None)
            return base_sequence
        return lowest

    def _note_refused(self, waiting: _Waiting, producer: tuple[int, int]) -> None:
        """Remember the lowest refused sequence: the client sends it again, and a later one must not come before it."""
        producer_id, epoch = producer
        partition_key, _, base_sequence = waiting
        key = (partition_key, producer_id)
        refused_epoch, lowest = self._refused_sequences.pop(key, (epoch, base_sequence))
        if refused_epoch == epoch:
            lowest = min(lowest, base_sequence)
        elif epoch > refused_epoch:
            lowest = base_sequence
        self._refused_sequences[key] = (max(epoch, refused_epoch), lowest)
        if len(self._refused_sequences) > REFUSED_SEQUENCES_MAX:
            del self._refused_sequences[next(iter(self._refused_sequences))]


def _as_produce_error(request: ProduceRequest, code: ErrorCode) -> BrokerError:
    """Return the error of a refused partition that the client's version of Produce knows."""
    is_concurrent = code == ErrorCode.CONCURRENT_TRANSACTIONS and not request.adds_partitions
    if is_concurrent or code in _RETRIED_AS_NOT_ENOUGH_REPLICAS:
        return BrokerError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
        )
    if code == ErrorCode.PRODUCER_FENCED:
        return BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH, "a newer instance has fenced this producer")
    if code == ErrorCode.TRANSACTION_ABORTABLE and not request.knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    if code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE):
        return BrokerError(code, "Partition was not added to the transaction")
    return BrokerError(code, f"the transaction's coordinator refused the partition: {code.name}")
