"""Creation, deletion and growth of topics: functions from an image and a request to answers and records.

Nothing is written here. Each item of a request fails alone, with one wire code; the order of the checks and the
sentences are Kafka's (ReplicationControlManager). The cluster is a single node: the replication factor is 1, or -1 for
the default, and this node leads every partition.

Different from Kafka: partitions that this process could not hold open are refused (placement.py), and the default
replication factor is always 1, because users bring a server.properties with another `default.replication.factor`;
a warning at start mentions it; the broker's own topics have own defaults (own_topics.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from barnabas.broker.metadata.assignments import assigned_partition_count, ensure_assignments_of_growth
from barnabas.broker.metadata.config_resources import ensure_texts_fit
from barnabas.broker.metadata.image import MetadataImage, TopicImage
from barnabas.broker.metadata.mirrors.image import mirror_record
from barnabas.broker.metadata.mirrors.refusals import ensure_not_mirrored
from barnabas.broker.metadata.own_topics import completed
from barnabas.broker.metadata.placement import Placement
from barnabas.broker.metadata.plan import Plan, PlanningImage
from barnabas.broker.metadata.topic_quota import TakeQuota, take_freely
from barnabas.config import BrokerConfig, ConfigError, validate_topic_configs
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.topics.topics import (
    DEFAULT_COUNT,
    CreatableTopicResult,
    CreatePartitionsTopicResult,
    DeletableTopicResult,
    NewPartitions,
    NewTopic,
    TopicReference,
)
from barnabas.protocol.metadata.records import (
    TOPIC_RESOURCE,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.protocol.mirrors.topic import TopicMirrorState, topic_mirror_key
from barnabas.protocol.topic_name import (
    CLUSTER_METADATA_TOPIC,
    collision_key,
    has_collision_characters,
    validate_topic_name,
)
from barnabas.protocol.uuids import ZERO_UUID, random_uuid, uuid_text

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Most new partitions in one request, as in Kafka. Above it: POLICY_VIOLATION."""


def plan_create_topics(
    image: MetadataImage,
    topics: Sequence[NewTopic],
    *,
    config: BrokerConfig,
    placement: Placement,
    take_quota: TakeQuota = take_freely,
) -> Plan[CreatableTopicResult]:
    """Plan the creation of `topics`. A result's message may be a warning."""
    planning = PlanningImage(image)
    collisions = _CollisionIndex(image.topics)
    results = []
    times_named = Counter(topic.name for topic in topics)
    room = MAX_PARTITIONS_PER_REQUEST
    for topic in topics:
        try:
            if times_named[topic.name] > 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name: '{topic.name}'.")
            _ensure_new_name(planning, collisions, topic.name)
            topic = completed(topic, config)
            configs = _texts_of(topic.values)
            warnings = _ensure_configs(configs, config)
            count = _partition_count(topic, config, placement, room)
            take_quota(count)
            result, records = _create(topic.name, configs, count, placement)
            result.warning = " ".join(warnings) or None
            planning.add(records)
            collisions.add(topic.name)
            room -= count
            results.append(result)
        except BrokerError as error:
            results.append(CreatableTopicResult(name=topic.name, error=error.code, message=error.message))
    return Plan(results, planning.records)


def plan_delete_topics(
    image: MetadataImage,
    asked: Sequence[TopicReference],
    *,
    config: BrokerConfig,
    take_quota: TakeQuota = take_freely,
) -> Plan[DeletableTopicResult]:
    """Plan the deletion of topics. A name or an id that is given twice is refused."""
    planning = PlanningImage(image)
    results = []
    times_asked = Counter((reference.name, reference.topic_id) for reference in asked)
    for reference in asked:
        try:
            if not config.get_bool("delete.topic.enable"):
                message = "Topic deletion is disabled: delete.topic.enable is false."
                raise BrokerError(ErrorCode.TOPIC_DELETION_DISABLED, message)
            _ensure_one_reference(reference)
            if times_asked[reference.name, reference.topic_id] > 1:
                by_id = reference.name is None
                message = "Duplicate topic id." if by_id else f"Duplicate topic name: '{reference.name}'."
                raise BrokerError(ErrorCode.INVALID_REQUEST, message)
            topic = _referred(planning, reference)
            take_quota(len(topic.partitions))
            planning.add([RemoveTopicRecord(topic.topic_id), *_of_deleted_mirror(image, topic.name)])
            results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
        except BrokerError as error:
            results.append(
                DeletableTopicResult(
                    name=reference.name, topic_id=reference.topic_id, error=error.code, message=error.message
                )
            )
    return Plan(results, planning.records)


def plan_create_partitions(
    image: MetadataImage,
    topics: Sequence[NewPartitions],
    *,
    placement: Placement,
    take_quota: TakeQuota = take_freely,
    by_mirror: bool = False,
) -> Plan[CreatePartitionsTopicResult]:
    """Plan the growth of topics to the requested partition counts. A mirrored topic grows only `by_mirror`."""
    planning = PlanningImage(image)
    results = []
    times_named = Counter(topic.name for topic in topics)
    room = MAX_PARTITIONS_PER_REQUEST
    for asked in topics:
        try:
            if times_named[asked.name] > 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name: '{asked.name}'.")
            topic = _existing(planning, asked.name)
            if not by_mirror:
                ensure_not_mirrored(image, asked.name)
            _ensure_growth(topic, asked, placement, room)
            numbers = range(len(topic.partitions), asked.count)
            take_quota(len(numbers))
            planning.add([PartitionRecord(number, topic.topic_id, placement.next_state()) for number in numbers])
            room -= len(numbers)
            results.append(CreatePartitionsTopicResult(name=asked.name))
        except BrokerError as error:
            results.append(CreatePartitionsTopicResult(name=asked.name, error=error.code, message=error.message))
    return Plan(results, planning.records)


class _CollisionIndex:
    """Topic names that differ only in `.` and `_`. Built at the first name that can collide: most cannot."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names
        self._first_by_key: dict[str, str] | None = None

    def add(self, name: str) -> None:
        """Add the name of a topic planned by this request."""
        if self._first_by_key is not None:
            self._first_by_key.setdefault(collision_key(name), name)

    def find(self, name: str) -> str | None:
        """Return the oldest topic that `name` collides with."""
        if self._first_by_key is None:
            self._first_by_key = {}
            for existing in self._names:
                self._first_by_key.setdefault(collision_key(existing), existing)
        return self._first_by_key.get(collision_key(name))


def _ensure_new_name(planning: PlanningImage, collisions: _CollisionIndex, name: str) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if planning.topic(name) is not None:
        raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    validate_topic_name(name)
    if has_collision_characters(name):
        other = collisions.find(name)
        if other is not None:
            message = f"Topic '{name}' collides with existing topic: {other}"
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)


def _partition_count(topic: NewTopic, config: BrokerConfig, placement: Placement, room: int) -> int:
    if topic.assignments:
        _ensure_room(len(topic.assignments), room, placement)
        return assigned_partition_count(topic, placement.node_id)
    factor = topic.replication_factor
    if factor != DEFAULT_COUNT and factor < 1:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if topic.partitions != DEFAULT_COUNT and topic.partitions < 1:
        message = "Number of partitions was set to an invalid non-positive value."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, message)
    if factor > 1:
        message = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            "reached because only 1 broker(s) are registered."
        )
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    count = config.get_int("num.partitions") if topic.partitions == DEFAULT_COUNT else topic.partitions
    _ensure_room(count, room, placement)
    return count


def _ensure_growth(topic: TopicImage, asked: NewPartitions, placement: Placement, room: int) -> None:
    current, count = len(topic.partitions), asked.count
    if count == current:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if count < current:
        message = f"The topic {topic.name} currently has {current} partition(s); {count} would not be an increase."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, message)
    _ensure_room(count - current, room, placement)
    if asked.assignments is not None:
        ensure_assignments_of_growth(asked.assignments, count - current, placement.node_id)


def _ensure_room(count: int, room: int, placement: Placement) -> None:
    if count > room:
        message = f"Excessively large number of partitions per request: at most {MAX_PARTITIONS_PER_REQUEST}."
        raise BrokerError(ErrorCode.POLICY_VIOLATION, message)
    placement.ensure_room(count)


def _texts_of(configs: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)
    texts = {name: value for name, value in configs.items() if value is not None}
    for name, value in texts.items():
        ensure_texts_fit(name, value)
    return texts


def _ensure_configs(configs: Mapping[str, str], config: BrokerConfig) -> list[str]:
    """Return warnings about legal configs. Raises BrokerError for illegal ones."""
    try:
        return validate_topic_configs(configs, config)
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _existing(planning: PlanningImage, name: str) -> TopicImage:
    topic = planning.topic(name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")
    return topic


def _of_deleted_mirror(image: MetadataImage, topic: str) -> list[ConfigRecord]:
    """Return the record by which the mirror of a deleted topic does not create the topic again."""
    found = image.mirror_of(topic)
    if found is None:
        return []
    if found.mirror not in image.mirrors.definitions:
        return [mirror_record(topic_mirror_key(topic), None)]
    deleted = replace(found, state=TopicMirrorState.DELETED_HERE, promoted=None)
    return [mirror_record(topic_mirror_key(topic), deleted.text())]


def _ensure_one_reference(reference: TopicReference) -> None:
    """Raise BrokerError INVALID_REQUEST for neither a name nor an id, and for both."""
    if reference.topic_id == ZERO_UUID:
        if reference.name is None:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    elif reference.name is not None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")


def _referred(planning: PlanningImage, reference: TopicReference) -> TopicImage:
    if reference.name is not None:
        return _existing(planning, reference.name)
    topic = planning.topic_by_id(reference.topic_id)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {uuid_text(reference.topic_id)}")
    return topic


def _create(
    topic: str, configs: Mapping[str, str], count: int, placement: Placement
) -> tuple[CreatableTopicResult, list[MetadataRecord]]:
    topic_id = random_uuid()
    records: list[MetadataRecord] = [TopicRecord(topic, topic_id)]
    for name, value in sorted(configs.items()):
        records.append(ConfigRecord(TOPIC_RESOURCE, topic, name, value))
    records.extend(PartitionRecord(number, topic_id, placement.next_state()) for number in range(count))
    return CreatableTopicResult(name=topic, topic_id=topic_id, partitions=count, replication_factor=1), records
