"""Idempotence of a transactional producer: sequences under the coordinator's producer id and epoch.

All partitions have the same id and epoch. Where the coordinator raises the epoch with each transaction
(transaction.version 2) every transaction begins at sequence 0, else sequences continue. A batch that fails is not
repeated in a new epoch: its transaction can only be aborted.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClientError, RefusedError, TransactionAbortedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.producer.batch import PartitionQueue, ProducerBatch
from barnabas.clients.producer.idempotence import Idempotence
from barnabas.clients.producer.transaction_requests import ProducerEpoch, TransactionRequests, highest_version
from barnabas.clients.producer.transaction_state import Phase, TransactionState
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.records.layout import NO_SEQUENCE


class TransactionalSequences(Idempotence):
    """Stamps the batches of `state`'s transaction, and reports their failures to it."""

    def __init__(
        self, cluster: Cluster, config: ProducerConfig, state: TransactionState, requests: TransactionRequests
    ) -> None:
        super().__init__(cluster, config)
        self._state = state
        self._requests = requests

    @property
    def failure(self) -> ClientError | None:
        """Why batches of the transaction are no longer sent again, None if they are."""
        if self._state.phase is Phase.ABORTING:
            return TransactionAbortedError(self._state.transactional_id)
        return self._state.failure

    @property
    def highest_produce(self) -> int | None:
        """That of the transaction's rules."""
        return highest_version(ApiKey.PRODUCE, adds_first=self._state.adds_first)

    def is_ready(self, queue: PartitionQueue) -> bool:
        """Whether the partition need not be added to the transaction: the producer has its id before it begins one."""
        return not self._state.adds_first or queue.topic_partition in self._state.added

    async def make_ready(self, queues: Sequence[PartitionQueue]) -> None:
        """Add the partitions to the transaction. A failure makes it abort-only."""
        state, added = self._state, self._state.added
        partitions = [each.topic_partition for each in queues if not self.is_ready(each)]

        def ensure_open() -> None:
            failure = self.failure
            if failure is not None or state.added is not added:
                raise failure or TransactionAbortedError(state.transactional_id)

        state.reached_broker = True
        try:
            current = ProducerEpoch(state.producer_id, state.epoch)
            await self._requests.add_partitions(current, partitions, ensure_open)
        except ClientError as error:
            state.fail(error, in_doubt=True)
            raise
        added.update(partitions)

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
