"""Producer ids, epochs and sequences, by which the broker recognises a repeated batch and stores it only once.

The producer has one id, requested when its first batch is about to be sent. Each partition's queue numbers its records
under that id: a batch gets its base sequence when it is first sent and keeps it, byte for byte, in every retry. A
broker that already has the batch answers with its offsets.

A queue begins a new epoch, at sequence 0, when its sequences cannot continue:
  - A batch that was sent has failed for good. The broker may or may not have it, so later batches may not follow its
    sequences. The new epoch also locks out copies of that batch in flight: the broker refuses the old epoch.
  - OUT_OF_ORDER_SEQUENCE_NUMBER (45) or UNKNOWN_PRODUCER_ID (59): the broker does not have the batches before this
    one, because it lost or deleted them. Only the first batch of a queue is ever in flight, so this one is not stored
    either, and is sent again in the new epoch.
INVALID_PRODUCER_EPOCH (47) means that the broker has seen a later epoch than this one: a new id is fetched. The batch
is sent again under it if this was its first attempt; else it may be stored already, and fails.

Each queue has its own epoch, because the broker keeps one per producer and partition; after 32,767 of them a new id is
fetched. Not covered, as in Kafka: a topic's max.message.bytes that is lowered between a lost answer and the second
attempt, and a broker that expires the producer's state meanwhile (producer.id.expiration.ms, which after a restart
counts from the records' own timestamps). Source: Kafka TransactionManager, KIP-360.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.producer.batch import PartitionQueue, ProducerBatch
from barnabas.clients.producer.sequences import MAX_EPOCH
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.records.layout import NO_PRODUCER_ID, NO_SEQUENCE

logger = logging.getLogger(__name__)

_LOST_TRACK_CODES = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


class Idempotence:
    """Owned by one Sender, which calls it for every batch that it sends, splits or gives up."""

    @property
    def failure(self) -> ClientError | None:
        """The error of batches that shall not be sent again: None, unless a transaction has failed."""
        return None

    def __init__(self, cluster: Cluster, config: ProducerConfig) -> None:
        self._cluster = cluster
        self._config = config
        self._producer_id = NO_PRODUCER_ID
        self._first_epoch = 0
        self._failures = 0

    @property
    def highest_produce(self) -> int | None:
        """The highest version of Produce, None without a limit."""
        return None

    def is_ready(self, queue: PartitionQueue) -> bool:
        """Whether the queue's next batch can be sent; if not, `make_ready` has to succeed first."""
        return queue.sequences.producer_id >= 0 or self._producer_id >= 0

    async def make_ready(self, queues: Sequence[PartitionQueue]) -> None:
        """Get an id from any broker, after a pause if the last attempt failed. Raises ClientError."""
        if self._producer_id >= 0:
            return
        if self._failures:
            await asyncio.sleep(
                backoff_s(self._failures, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
            )
        try:
            connection = await self._cluster.connections.any_connection()
            response: InitProducerIdResponse = await connection.request(InitProducerIdRequest())
            if response.error is not ErrorCode.NONE:
                raise RefusedError(response.error, f"no producer id: {reason_of(response.error)}")
        except RefusedError as error:
            self._failures += 1
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                raise RefusedError(
                    error.code, f"{error.message}; without it a producer needs enable_idempotence=False"
                ) from error
            raise
        except ClientError:
            self._failures += 1
            raise
        self._failures = 0
        self._producer_id, self._first_epoch = response.producer_id, response.producer_epoch
        logger.info("producer id %d, epoch %d", response.producer_id, response.producer_epoch)

    def stamp(self, batch: ProducerBatch) -> None:
        """Give the batch its sequences, unless it has them. The queue must be ready."""
        if batch.base_sequence != NO_SEQUENCE:
            return
        sequences = batch.queue.sequences
        if sequences.producer_id < 0:
            sequences.begin(self._producer_id, self._first_epoch)
        batch.closed = True
        batch.stamp(sequences.producer_id, sequences.epoch, sequences.take(len(batch)))

    def given_up(self, batch: ProducerBatch, error: BaseException) -> None:
        """Begin a new epoch after a batch failed for good, if it was ever sent."""
        if batch.base_sequence != NO_SEQUENCE:
            self._begin_epoch(batch.queue)

    def to_be_split(self, batch: ProducerBatch) -> None:
        """Return the sequences of a batch that was refused as a whole; its halves take them when they are sent."""
        if batch.base_sequence != NO_SEQUENCE:
            batch.queue.sequences.rewind(batch.base_sequence)

    def mends(self, batch: ProducerBatch, error: RefusedError) -> bool:
        """Recover from an error about the batch's sequence. Returns whether the batch may be sent again."""
        if error.code in _LOST_TRACK_CODES:
            logger.warning(
                "%s; sending on in a new epoch: earlier records that were acknowledged may be lost at the broker",
                error.message,
            )
            self._begin_epoch(batch.queue)
        elif error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            self._forget_id(batch.queue)
            if batch.attempts:
                return False
        else:
            return False
        batch.base_sequence = NO_SEQUENCE
        return True

    def _begin_epoch(self, queue: PartitionQueue) -> None:
        sequences = queue.sequences
        if sequences.epoch < MAX_EPOCH:
            sequences.begin(sequences.producer_id, sequences.epoch + 1)
        else:
            self._forget_id(queue)

    def _forget_id(self, queue: PartitionQueue) -> None:
        """Continue the queue under a new id. Other queues keep the old one while it works."""
        if self._producer_id == queue.sequences.producer_id:
            self._producer_id = NO_PRODUCER_ID
        queue.sequences.begin(NO_PRODUCER_ID, 0)
