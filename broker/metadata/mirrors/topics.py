"""Plans of a mirror about its topics: take, grow, record the state, raise leader epochs.

A mirror is not bound by the refusals of read-only topics, nor by the quotas of clients.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.mirrors.definitions import unknown_mirror
from barnabas.broker.metadata.mirrors.image import mirror_record
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.topics import plan_create_partitions, plan_create_topics
from barnabas.config import BrokerConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.topics.topics import (
    CreatableTopicResult,
    CreatePartitionsTopicResult,
    NewPartitions,
    NewTopic,
    config_rows,
)
from barnabas.protocol.metadata.records import TOPIC_RESOURCE, ConfigRecord, MetadataRecord, PartitionRecord
from barnabas.protocol.mirrors.definition import DesiredState
from barnabas.protocol.mirrors.topic import TopicMirror, TopicMirrorState, topic_mirror_key
from barnabas.protocol.topic_name import is_internal
from barnabas.protocol.topic_partition import TopicPartition


def plan_take_topic(
    image: MetadataImage,
    mirror: str,
    topic: str,
    *,
    source_id: bytes | None,
    partitions: int,
    configs: Mapping[str, str],
    config: BrokerConfig,
    placement: Placement,
) -> Plan[CreatableTopicResult]:
    """Plan a topic of the source's partition count and configs that is read-only from its creation on.

    An existing topic is taken only if the definition names it in `take_existing`; it keeps its id. Any other is not
    taken, not even an empty one: a client might write to it meanwhile. The result has the error: TOPIC_ALREADY_EXISTS,
    RESOURCE_NOT_FOUND (the mirror), INVALID_PARTITIONS, INVALID_CONFIG, POLICY_VIOLATION (no room), ...
    """
    definition = image.mirrors.definitions.get(mirror)
    if definition is None:
        return _refused(topic, unknown_mirror(mirror))
    if definition.desired is DesiredState.PROMOTED:
        error = BrokerError(ErrorCode.POLICY_VIOLATION, f"mirror '{mirror}' is promoted: it takes no topics")
        return _refused(topic, error)
    if is_internal(topic):
        error = BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"internal topic '{topic}' is never mirrored")
        return _refused(topic, error)
    existing, recorded = image.topics.get(topic), image.mirrors.topics.get(topic)
    if (
        existing is None
        and recorded is not None
        and (recorded.mirror, recorded.state) == (mirror, TopicMirrorState.DELETED_HERE)
    ):
        message = f"topic '{topic}' was deleted here: `barnabas mirror resume {mirror}` creates it again"
        return _refused(topic, BrokerError(ErrorCode.POLICY_VIOLATION, message))
    if existing is None:
        plan = plan_create_topics(
            image,
            [NewTopic(name=topic, partitions=partitions, replication_factor=1, configs=config_rows(configs))],
            config=config,
            placement=placement,
        )
        (result,) = plan.results
        if result.error is not ErrorCode.NONE:
            return plan
        taken = TopicMirror(mirror, result.topic_id, source_id)
        return Plan(plan.results, [*plan.records, mirror_record(topic_mirror_key(topic), taken.text())])
    owner = image.mirror_of(topic)
    if topic in definition.take_existing and (owner is None or not owner.is_read_only):
        if len(existing.partitions) > partitions:
            message = f"topic '{topic}' has {len(existing.partitions)} partitions, and {partitions} at the source"
            return _refused(topic, BrokerError(ErrorCode.INVALID_PARTITIONS, message))
        taken = TopicMirror(mirror, existing.topic_id, source_id)
        return Plan([CreatableTopicResult(name=topic)], [mirror_record(topic_mirror_key(topic), taken.text())])
    if owner is not None:
        message = f"topic '{topic}' belongs to mirror '{owner.mirror}' already, state {owner.state}"
        return _refused(topic, BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, message))
    message = f"topic '{topic}' exists here: delete it, or exclude it from the mirror"
    return _refused(topic, BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, message))


def plan_grow_topic(
    image: MetadataImage, topic: str, partitions: int, *, placement: Placement
) -> Plan[CreatePartitionsTopicResult]:
    """Plan the growth of a mirrored topic to the source's partition count."""
    return plan_create_partitions(
        image, [NewPartitions(name=topic, count=partitions)], placement=placement, by_mirror=True
    )


def plan_follow_configs(image: MetadataImage, topic: str, configs: Mapping[str, str]) -> Plan[CreatableTopicResult]:
    """Plan that the topic's own configs become exactly `configs`, which have been validated."""
    return Plan([CreatableTopicResult(name=topic)], [*_config_changes(image, topic, configs)])


def plan_set_topic_mirror(image: MetadataImage, topic: str, mirrored: TopicMirror) -> Plan[TopicMirror]:
    """Plan another state of a topic of a mirror; the new record is the only result. Raises BrokerError.

    RESOURCE_NOT_FOUND: the topic is deleted or no longer belongs to that mirror.
    """
    before = image.mirror_of(topic)
    if before is None or (before.mirror, before.topic_id) != (mirrored.mirror, mirrored.topic_id):
        message = f"topic '{topic}' does not belong to mirror '{mirrored.mirror}'"
        raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, message)
    if mirrored == before:
        return Plan([mirrored], [])
    if before.promoted is not None:  # planned by a mirror that has been stopped meanwhile
        return Plan([before], [])
    return Plan([mirrored], [mirror_record(topic_mirror_key(topic), mirrored.text())])


def plan_forget_deleted(image: MetadataImage, mirror: str, source_ids: Mapping[str, bytes | None]) -> Plan[str]:
    """Plan that topics which were deleted here may be created again; the results are those whose record is removed.

    `source_ids` are the ids that the topics had at the source: a record of another one stays.
    """
    forgotten = [
        topic
        for topic, source_id in source_ids.items()
        if (recorded := image.mirrors.topics.get(topic)) is not None
        and (recorded.mirror, recorded.state, recorded.source_id) == (mirror, TopicMirrorState.DELETED_HERE, source_id)
    ]
    return Plan(forgotten, [mirror_record(topic_mirror_key(topic), None) for topic in forgotten])


def plan_raise_leader_epochs(image: MetadataImage, epochs: Mapping[TopicPartition, int]) -> Plan[TopicPartition]:
    """Plan leader epochs of at least these for partitions; the results are the partitions that change.

    A PartitionRecord of an existing partition replaces its state in Kafka as well; a PartitionChangeRecord could only
    raise the epoch by one.
    """
    changed: list[TopicPartition] = []
    records: list[MetadataRecord] = []
    for topic_partition, epoch in epochs.items():
        topic, state = image.topics.get(topic_partition.topic), image.partition(*topic_partition)
        if topic is None or state is None or state.leader_epoch >= epoch:
            continue
        changed.append(topic_partition)
        raised = state._replace(leader_epoch=epoch, partition_epoch=state.partition_epoch + 1)
        records.append(PartitionRecord(topic_partition.partition, topic.topic_id, raised))
    return Plan(changed, records)


def _config_changes(image: MetadataImage, topic: str, configs: Mapping[str, str]) -> list[ConfigRecord]:
    before = image.topic_configs(topic)
    names = sorted({*before, *configs})
    return [
        ConfigRecord(TOPIC_RESOURCE, topic, name, configs.get(name))
        for name in names
        if before.get(name) != configs.get(name)
    ]


def _refused(topic: str, error: BrokerError) -> Plan[CreatableTopicResult]:
    return Plan([CreatableTopicResult(name=topic, error=error.code, message=error.message)], [])
