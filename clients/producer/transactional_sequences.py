"""Idempotence of a transactional producer: sequences under the coordinator's producer id and epoch.

All partitions have the same id and epoch. Where the coordinator raises the epoch with each transaction
(transaction.version 2) every transaction begins at sequence 0, else sequences continue. A batch that fails is not
repeated in a new epoch: its transaction can only be aborted.
"""

from __future__ import annotations

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClientError, RefusedError, TransactionAbortedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.producer.batch import PartitionQueue, ProducerBatch
from barnabas.clients.producer.idempotence import Idempotence
from barnabas.clients.producer.transaction_state import Phase, TransactionState
from barnabas.protocol.records.layout import NO_SEQUENCE


class TransactionalSequences(Idempotence):
    """Stamps the batches of `state`'s transaction, and reports their failures to it."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, state: TransactionState) -> None:
        super().__init__(cluster, config)
        self._state = state

    @property
    def failure(self) -> ClientError | None:
        """Why batches of the transaction are no longer sent again, None if they are."""
        if self._state.phase is Phase.ABORTING:
            return TransactionAbortedError(self._state.transactional_id)
        return self._state.failure

    def is_ready(self, queue: PartitionQueue) -> bool:
        """True: the producer has its id before its first transaction begins."""
        return True

    def stamp(self, batch: ProducerBatch) -> None:
        """Give the batch its sequences. A queue begins at 0 after a change of id or epoch."""
        state, sequences = self._state, batch.queue.sequences
        if (sequences.producer_id, sequences.epoch) != (state.producer_id, state.epoch):
            sequences.begin(state.producer_id, state.epoch)
        state.reached_broker = True
        super().stamp(batch)

    def given_up(self, batch: ProducerBatch, error: BaseException) -> None:
        """Make the transaction abort-only. A batch that was sent may still arrive."""
        self._state.fail(error, in_doubt=batch.base_sequence != NO_SEQUENCE)

    def mends(self, batch: ProducerBatch, error: RefusedError) -> bool:
        """False: see the module's docstring."""
        return False
