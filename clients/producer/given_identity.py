"""A producer that continues where another one with the same id and epoch stopped, perhaps in another process.

    identity = ProducerIdentity(producer_id=4001, epoch=7)
    async with Producer(config, identity=identity) as producer:
        await producer.resume("orders")     # queries how many records of this epoch the partitions already have
        sent = identity.stored(TopicPartition("orders", 0))

Sequences count the records of an epoch from 0 on, because every epoch begins at 0. So a partition's last sequence is
the number of the epoch's stored records less one, over any number of batches (a broker remembers the last five only). A
program that sends the same records in the same order skips that many. A batch that is sent twice nevertheless, by an
older attempt that still runs, is recognised or refused by its sequences, so no record is stored twice.

An ordinary producer answers a refused sequence with a new epoch (idempotence.py). This one fails, and the next attempt
queries again. Not covered: a broker that has expired the producer's state (producer.id.expiration.ms).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any
from barnabas.clients.partition_producers import describe_producers
from barnabas.clients.producer.batch import PartitionQueue, ProducerBatch
from barnabas.clients.producer.idempotence import Idempotence
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.describe_producers import ActiveProducer
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.records.layout import NO_SEQUENCE
from barnabas.protocol.topic_partition import TopicPartition


class ProducerIdentity:
    """A producer id and epoch, with the number of its records in each partition that was queried.

    `cluster_id` is the cluster that issued the id, empty if unknown. In another cluster the id is another producer's.
    """

    __slots__ = ("_stored", "cluster_id", "epoch", "producer_id")

    def __init__(self, producer_id: int, epoch: int, cluster_id: str = "") -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.cluster_id = cluster_id
        self._stored: dict[TopicPartition, int] = {}

    def stored(self, topic_partition: TopicPartition) -> int:
        """Number of this epoch's records in the partition at its last query; 0 if it was not queried."""
        return self._stored.get(topic_partition, 0)

    def note(self, stored: Mapping[TopicPartition, int]) -> None:
        """Keep the partitions' answers."""
        self._stored.update(stored)


class GivenIdentity(Idempotence):
    """Idempotence with a given id and epoch instead of the sender's own."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, identity: ProducerIdentity) -> None:
        super().__init__(cluster, config)
        self._identity = identity

    def is_ready(self, queue: PartitionQueue) -> bool:
        """True: the id is given."""
        return True

    def stamp(self, batch: ProducerBatch) -> None:
        """Give the batch its sequences; the partition's first batch continues after the stored records."""
        sequences = batch.queue.sequences
        if batch.base_sequence == NO_SEQUENCE and sequences.producer_id < 0:
            sequences.begin(self._identity.producer_id, self._identity.epoch)
            sequences.rewind(self._identity.stored(batch.queue.topic_partition))
        super().stamp(batch)

    def given_up(self, batch: ProducerBatch, error: BaseException) -> None:
        """Do nothing: later batches keep their sequences, and are refused while this one is missing."""

    def mends(self, batch: ProducerBatch, error: RefusedError) -> bool:
        """False: see the module's docstring."""
        return False


async def new_identity(config: ProducerConfig) -> ProducerIdentity:
    """Get a new producer id from the cluster, for the caller to keep. Raises ClientError."""
    cluster = Cluster(config)
    try:
        await cluster.start()
        response: InitProducerIdResponse = await ask_any(cluster, config, InitProducerIdRequest())
    finally:
        await cluster.close()
    if response.error is not ErrorCode.NONE:
        raise RefusedError(response.error, f"no producer id: {reason_of(response.error)}")
    return ProducerIdentity(response.producer_id, response.producer_epoch, cluster.cluster_id)


async def stored_records(
    cluster: Cluster, config: ProducerConfig, topic: str, identity: ProducerIdentity
) -> dict[TopicPartition, int]:
    """Query the number of records of the identity's epoch in each partition of `topic`.

    Raises UnknownTopicError, RefusedError INVALID_PRODUCER_EPOCH if a partition has seen a later epoch of the id, and
    other ClientErrors.
    """
    view = await cluster.require_topic(topic, config.max_block_ms)
    partitions = [TopicPartition(topic, number) for number in range(len(view.leaders))]
    producers = await describe_producers(cluster, config, partitions)
    return {partition: _stored(partition, answer, identity) for partition, answer in producers.items()}


def _stored(
    topic_partition: TopicPartition, answer: Sequence[ActiveProducer] | RefusedError, identity: ProducerIdentity
) -> int:
    if isinstance(answer, RefusedError):
        raise answer
    for producer in answer:
        if producer.producer_id != identity.producer_id:
            continue
        if producer.epoch > identity.epoch:
            raise RefusedError.of_partition(
                topic_partition,
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {identity.producer_id} has gone on to epoch {producer.epoch}, this is {identity.epoch}",
            )
        if producer.epoch == identity.epoch:
            return producer.last_sequence + 1
    return 0
