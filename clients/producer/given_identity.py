"""A producer that goes on where another one with the same id and epoch stopped, perhaps in another process.

    identity = ProducerIdentity(producer_id=4001, epoch=7)
    async with Producer(config, identity=identity) as producer:
        await producer.resume("orders")     # asks how many records of this epoch the partitions have already
        sent = identity.stored(TopicPartition("orders", 0))

Sequences count the records of an epoch from 0 on, so the last one that a partition knows says how many of them it has,
whatever batches they came in and however many those were (the five batches that a broker remembers do not bound
this). Whoever sends the same records in the same order skips that many. A batch that is nevertheless sent twice, by an
older attempt that still runs, is recognised or refused by its sequences: none is stored twice.

So nothing here mends a refused sequence by a new epoch, as an ordinary producer does (idempotence.py): it fails, and
the next attempt asks again. What is not covered: a broker that forgot the producer (producer.id.expiration.ms).
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any
from barnabas.clients.producer.batch import PartitionQueue, ProducerBatch
from barnabas.clients.producer.idempotence import Idempotence
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.describe_producers import (
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.records.layout import NO_SEQUENCE
from barnabas.protocol.topic_partition import TopicPartition


class ProducerIdentity:
    """An id and an epoch, and how many records each partition has of it as far as was asked.

    `cluster_id`: of which cluster the id is, empty where nobody said so; to another one it means somebody else.
    """

    __slots__ = ("_stored", "cluster_id", "epoch", "producer_id")

    def __init__(self, producer_id: int, epoch: int, cluster_id: str = "") -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.cluster_id = cluster_id
        self._stored: dict[TopicPartition, int] = {}

    def stored(self, topic_partition: TopicPartition) -> int:
        """Records of this epoch that the partition had when it was asked; 0 where it was not."""
        return self._stored.get(topic_partition, 0)

    def note(self, stored: Mapping[TopicPartition, int]) -> None:
        """What partitions answered."""
        self._stored.update(stored)


class GivenIdentity(Idempotence):
    """In the place of a sender's own ids and epochs."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, identity: ProducerIdentity) -> None:
        super().__init__(cluster, config)
        self._identity = identity

    def is_ready(self, queue: PartitionQueue) -> bool:
        """Always: the id is given."""
        return True

    def stamp(self, batch: ProducerBatch) -> None:
        """Give the batch its place behind what the partition has already."""
        sequences = batch.queue.sequences
        if batch.base_sequence == NO_SEQUENCE and sequences.producer_id < 0:
            sequences.begin(self._identity.producer_id, self._identity.epoch)
            sequences.rewind(self._identity.stored(batch.queue.topic_partition))
        super().stamp(batch)

    def given_up(self, batch: ProducerBatch) -> None:
        """Nothing: what follows has its own place, and is refused while this one is missing."""

    def mends(self, batch: ProducerBatch, error: RefusedError) -> bool:
        """Never: see the top of the file."""
        return False


async def new_identity(config: ProducerConfig) -> ProducerIdentity:
    """An id that nobody had before, to be kept somewhere. Raises ClientError."""
    cluster = Cluster(config)
    try:
        await cluster.start()
        response: InitProducerIdResponse = await ask_any(
            cluster, config, ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest()
        )
    finally:
        await cluster.close()
    return ProducerIdentity(response.producer_id, response.producer_epoch, cluster.cluster_id)


async def stored_records(
    cluster: Cluster, config: ProducerConfig, topic: str, identity: ProducerIdentity
) -> dict[TopicPartition, int]:
    """How many records of the identity's epoch each partition of `topic` has.

    Raises UnknownTopicError, RefusedError INVALID_PRODUCER_EPOCH where a partition has seen a later epoch of the id,
    and other ClientErrors.
    """
    view = await cluster.require_topic(topic, config.max_block_ms)
    request = DescribeProducersRequest(
        [DescribeProducersTopic(topic, range(len(view.leaders)))], producer_id=identity.producer_id
    )
    response: DescribeProducersResponse = await ask_any(cluster, config, ApiKey.DESCRIBE_PRODUCERS, request)
    return {
        TopicPartition(topic, result.partition): _stored(TopicPartition(topic, result.partition), result, identity)
        for each in response.topics
        for result in each.partitions
    }


def _stored(
    topic_partition: TopicPartition, result: DescribeProducersPartitionResult, identity: ProducerIdentity
) -> int:
    if result.error is not ErrorCode.NONE:
        raise RefusedError.of_partition(topic_partition, result.error, result.message)
    for producer in result.producers:
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
