"""Topics, commits and committed offsets over Kafka's protocol, as raw requests of every version."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.support.kafka.kafka_wire import KafkaWire, schema


def create_topic(kafka: KafkaWire, name: str, partitions: int = 1) -> UUID:
    """Create a topic, and return its id."""
    kio = schema("create_topics", 7, "request")
    topic = kio.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
    answer = kafka.call("create_topics", 7, topics=(topic,), timeout=timedelta(seconds=30), validate_only=False)
    assert [each.error_code for each in answer.topics] == [0]
    found: UUID = answer.topics[0].topic_id
    return found


def commit(
    kafka: KafkaWire,
    group: str,
    topic: str,
    offsets: dict[int, int],
    *,
    version: int = 9,
    topic_id: UUID | None = None,
    metadata: str | None = "",
    generation: int = -1,
    member: str = "",
    retention_ms: int = -1,
) -> list[int]:
    """Commit, and return the error codes by partition."""
    kio = schema("offset_commit", version, "request")
    epoch = {"committed_leader_epoch": 5} if version >= 6 else {}
    key = {"topic_id": topic_id} if version >= 10 else {"name": topic}
    entries = tuple(
        kio.OffsetCommitRequestPartition(
            partition_index=number, committed_offset=offset, committed_metadata=metadata, **epoch
        )
        for number, offset in offsets.items()
    )
    fields: dict[str, Any] = {}
    if version <= 4:
        fields["retention_time"] = timedelta(milliseconds=retention_ms)
    answer = kafka.call(
        "offset_commit",
        version,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=(kio.OffsetCommitRequestTopic(**key, partitions=entries),),
        **fields,
    )
    return [each.error_code for each in answer.topics[0].partitions]


def fetch(
    kafka: KafkaWire,
    group: str,
    topic: str | None,
    partitions: tuple[int, ...] = (0,),
    *,
    version: int = 9,
    topic_id: UUID | None = None,
    require_stable: bool = False,
) -> dict[Any, tuple[int, int, str | None]]:
    """Return (offset, error, metadata) by partition, or by topic and partition if all are requested.

    The error of a whole group, whose answer has no partitions, is returned for each requested partition.
    """
    kio = schema("offset_fetch", version, "request")
    key = {"topic_id": topic_id} if version >= 10 else {"name": topic}
    kind = kio.OffsetFetchRequestTopics if version >= 8 else kio.OffsetFetchRequestTopic
    topics = None if topic is None else (kind(**key, partition_indexes=partitions),)
    stable = {"require_stable": require_stable} if version >= 7 else {}
    if version >= 8:
        groups = (kio.OffsetFetchRequestGroup(group_id=group, topics=topics),)
        answer = kafka.call("offset_fetch", version, groups=groups, **stable).groups[0]
    else:
        answer = kafka.call("offset_fetch", version, group_id=group, topics=topics, **stable)
    if version >= 2 and answer.error_code:
        assert not answer.topics
        return dict.fromkeys(partitions, (-1, int(answer.error_code), ""))
    return {
        each.partition_index if topic is not None else (found.name, each.partition_index): (
            each.committed_offset,
            each.error_code,
            each.metadata,
        )
        for found in answer.topics
        for each in found.partitions
    }


def until_loaded(kafka: KafkaWire) -> None:
    """Retry, as clients do, until all groups are loaded."""
    while kafka.call("list_groups", 5).error_code == 14:
        pass
