"""Requests of steps, as kio's entities for one broker, whose topic ids and producer ids are its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.interop.differential import steps
from tests.interop.differential.batches import missing_producer
from tests.support.kafka.kafka_wire import message_type, schema

_TIMEOUT = timedelta(seconds=30)
UNKNOWN_ID = UUID(int=0x0BADCAFE)
PRODUCE_IDS_FROM = FETCH_IDS_FROM = 13
SESSIONS_FROM = 7
REPLICA_OF_CONSUMERS = -1
_NO_SESSION = 0, -1
_MAX_INT32 = 2**31 - 1


@dataclass
class Names:
    """What one broker calls what a script names."""

    prefix: str
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    old_ids: dict[UUID, str] = field(default_factory=dict)
    """Ids of deleted topics, which sessions still name."""
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    sessions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Id and next epoch by the script's name of a fetch session."""

    def topic(self, name: str) -> str:
        """Return the name of a topic of the script."""
        return f"{self.prefix}.{name}"

    def transactional_id(self, name: str | None) -> str | None:
        """Return a transactional id of the script."""
        return name and f"{self.prefix}.{name}"

    def topic_id(self, name: str) -> UUID:
        """Return the id of a topic of the script."""
        return self.topic_ids.get(name, UNKNOWN_ID)

    def producer(self, name: str, epoch_shift: int) -> tuple[int, int]:
        """Return id and epoch of a producer; those of nobody if there is none."""
        producer_id, epoch = self.producers.get(name) or missing_producer(name)
        return producer_id, max(-1, epoch + epoch_shift)

    def forget(self, name: str) -> None:
        """Follow the deletion of a topic."""
        if name in self.topic_ids:
            self.old_ids[self.topic_ids.pop(name)] = f"{name}, deleted {len(self.old_ids)}"

    def session(self, used: steps.InSession) -> tuple[int, int]:
        """Return id and epoch that a Fetch sends."""
        session_id, epoch = self.sessions.get(used.name, (0, 1))
        sent = epoch + used.epoch_shift if used.epoch is None else used.epoch
        return (session_id + used.id_shift) & _MAX_INT32, sent

    def answered(self, used: steps.InSession, session_id: int) -> None:
        """Follow the answer to a Fetch of a session that was not refused."""
        sent = self.session(used)[1]
        if session_id and sent >= 0:
            self.sessions[used.name] = session_id, sent + 1


@dataclass(frozen=True)
class Request:
    """An entity, and how its answer is read."""

    api: str
    version: int
    entity: Any
    is_answered: bool = True


def build(step: steps.Step, names: Names) -> Request:
    """Return the request of a step that is one request."""
    return _BUILDERS[type(step)](step, names)


def _made(kind: Any, **values: Any) -> Any:
    """Make an entity of those values whose fields its version has."""
    present = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in present})


def _whole(api: str, version: int, **values: Any) -> Request:
    return Request(api, version, _made(message_type(api, version, "request"), **values))


def _produce(step: steps.Produce, names: Names) -> Request:
    kio = schema("produce", step.version, "request")
    topics = tuple(
        _made(
            kio.TopicProduceData,
            name=names.topic(topic),
            topic_id=names.topic_id(topic),
            partition_data=tuple(
                kio.PartitionProduceData(
                    index=number,
                    records=None if batches is None else b"".join(each.bytes_for(names.producers) for each in batches),
                )
                for number, batches in partitions
            ),
        )
        for topic, partitions in step.topics
    )
    entity = kio.ProduceRequest(
        transactional_id=names.transactional_id(step.transactional_id),
        acks=step.acks,
        timeout=_TIMEOUT,
        topic_data=topics,
    )
    return Request("produce", step.version, entity, is_answered=step.acks != 0)


def _fetch(step: steps.Fetch, names: Names) -> Request:
    kio = schema("fetch", step.version, "request")
    topics = tuple(
        _made(
            kio.FetchTopic,
            topic=names.topic(topic),
            topic_id=names.topic_id(topic),
            partitions=tuple(
                _made(
                    kio.FetchPartition,
                    partition=part.partition,
                    fetch_offset=part.offset,
                    partition_max_bytes=part.max_bytes,
                    current_leader_epoch=part.leader_epoch,
                    last_fetched_epoch=part.last_epoch,
                )
                for part in parts
            ),
        )
        for topic, parts in step.topics
    )
    session_id, epoch = _NO_SESSION if step.session is None else names.session(step.session)
    forgotten = () if step.session is None or step.version < SESSIONS_FROM else step.session.forgotten
    return _whole(
        "fetch",
        step.version,
        replica_id=REPLICA_OF_CONSUMERS,
        max_wait=timedelta(milliseconds=step.max_wait_ms),
        min_bytes=step.min_bytes,
        max_bytes=step.max_bytes,
        isolation_level=step.isolation,
        topics=topics,
        session_id=session_id,
        session_epoch=epoch,
        forgotten_topics_data=tuple(
            _made(kio.ForgottenTopic, topic=names.topic(topic), topic_id=names.topic_id(topic), partitions=numbers)
            for topic, numbers in forgotten
        ),
        rack_id="",
    )


def _list_offsets(step: steps.ListOffsets, names: Names) -> Request:
    kio = schema("list_offsets", step.version, "request")
    topics = tuple(
        kio.ListOffsetsTopic(
            name=names.topic(topic),
            partitions=tuple(
                _made(kio.ListOffsetsPartition, partition_index=number, timestamp=timestamp, current_leader_epoch=epoch)
                for number, timestamp, epoch in partitions
            ),
        )
        for topic, partitions in step.topics
    )
    return _whole(
        "list_offsets",
        step.version,
        replica_id=REPLICA_OF_CONSUMERS,
        isolation_level=step.isolation,
        topics=topics,
        timeout=_TIMEOUT,
    )


def _delete_records(step: steps.DeleteRecords, names: Names) -> Request:
    kio = schema("delete_records", step.version, "request")
    topics = tuple(
        kio.DeleteRecordsTopic(
            name=names.topic(topic),
            partitions=tuple(
                kio.DeleteRecordsPartition(partition_index=number, offset=offset) for number, offset in partitions
            ),
        )
        for topic, partitions in step.topics
    )
    return _whole("delete_records", step.version, topics=topics, timeout=_TIMEOUT)


def _epoch_ends(step: steps.EpochEnds, names: Names) -> Request:
    kio = schema("offset_for_leader_epoch", step.version, "request")
    topics = tuple(
        kio.OffsetForLeaderTopic(
            topic=names.topic(topic),
            partitions=tuple(
                kio.OffsetForLeaderPartition(partition=number, current_leader_epoch=current, leader_epoch=asked)
                for number, current, asked in partitions
            ),
        )
        for topic, partitions in step.topics
    )
    return _whole("offset_for_leader_epoch", step.version, replica_id=REPLICA_OF_CONSUMERS, topics=topics)


def _init_producer(step: steps.InitProducer, names: Names) -> Request:
    producer_id, epoch = names.producer(step.producer, step.epoch_shift) if step.continues else (-1, -1)
    return _whole(
        "init_producer_id",
        step.version,
        transactional_id=names.transactional_id(step.transactional_id),
        transaction_timeout=timedelta(minutes=10),
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def _add_partitions(step: steps.AddPartitions, names: Names) -> Request:
    kio = schema("add_partitions_to_txn", step.version, "request")
    producer_id, epoch = names.producer(step.producer, step.epoch_shift)
    topics = tuple(
        kio.AddPartitionsToTxnTopic(name=names.topic(topic), partitions=partitions) for topic, partitions in step.topics
    )
    return _whole(
        "add_partitions_to_txn",
        step.version,
        v3_and_below_transactional_id=names.transactional_id(step.transactional_id),
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
    )


def _end_transaction(step: steps.EndTransaction, names: Names) -> Request:
    producer_id, epoch = names.producer(step.producer, step.epoch_shift)
    return _whole(
        "end_txn",
        step.version,
        transactional_id=names.transactional_id(step.transactional_id),
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=step.commit,
    )


def _describe_producers(step: steps.DescribeProducers, names: Names) -> Request:
    kio = schema("describe_producers", 0, "request")
    topic = kio.TopicRequest(name=names.topic(step.topic), partition_indexes=step.partitions)
    return _whole("describe_producers", 0, topics=(topic,))


_BUILDERS: Mapping[type, Callable[[Any, Names], Request]] = {
    steps.Produce: _produce,
    steps.Fetch: _fetch,
    steps.ListOffsets: _list_offsets,
    steps.DeleteRecords: _delete_records,
    steps.EpochEnds: _epoch_ends,
    steps.InitProducer: _init_producer,
    steps.AddPartitions: _add_partitions,
    steps.EndTransaction: _end_transaction,
    steps.DescribeProducers: _describe_producers,
}
