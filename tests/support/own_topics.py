"""What a client sees of the topics that a broker makes for itself, and how it can make them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from barnabas.protocol.topic_name import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request, schema
from tests.support.share.share_wire import states

NAMES = (OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC)
TIMEOUT = timedelta(seconds=30)
DELETE, SET = 1, 0
_TOPIC, _SET_BY_THE_TOPIC = 2, 1


def by_metadata(kafka: KafkaWire, name: str) -> None:
    """Ask for the topic; Kafka creates it after its answer."""
    kafka.send(metadata_request(12, name))
    kafka.receive("metadata", 12)


def by_create_topics(kafka: KafkaWire, name: str) -> None:
    kinds = schema("create_topics", 7, "request")
    entry = kinds.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=(), configs=())
    (made,) = kafka.call("create_topics", 7, topics=(entry,), timeout=TIMEOUT, validate_only=False).topics
    assert made.error_code == 0, made
    answered = {each.name: each.value for each in made.configs if each.config_source == _SET_BY_THE_TOPIC}
    assert (made.num_partitions, answered) == described(kafka, name)


def by_first_use(kafka: KafkaWire, name: str) -> None:
    _FIRST_USES[name](kafka)


def _use_offsets(kafka: KafkaWire) -> None:
    partition = schema("offset_commit", 8, "request").OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    topic = schema("offset_commit", 8, "request").OffsetCommitRequestTopic(name="used", partitions=(partition,))
    kafka.topic_id("used")
    kafka.call(
        "offset_commit",
        8,
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=(topic,),
    )


def _use_transactions(kafka: KafkaWire) -> None:
    kafka.call(
        "init_producer_id",
        4,
        transactional_id="id",
        transaction_timeout=TIMEOUT,
        producer_id=-1,
        producer_epoch=-1,
    )


def _use_share_states(kafka: KafkaWire) -> None:
    partition = {"partition": 0, "state_epoch": 0, "start_offset": 0}
    states(kafka, "initialize_share_group_state", 0, "g", kafka.topic_id("used").bytes, partition)


_FIRST_USES: dict[str, Callable[[KafkaWire], None]] = {
    OFFSETS_TOPIC: _use_offsets,
    TRANSACTION_TOPIC: _use_transactions,
    SHARE_STATE_TOPIC: _use_share_states,
}


def described(kafka: KafkaWire, name: str) -> tuple[int, dict[str, str | None]] | None:
    """Return the topic's partition count and the configs that it has itself; None if it does not exist."""
    kinds = schema("metadata", 12, "request")
    asked = kinds.MetadataRequestTopic(topic_id=uuid.UUID(int=0), name=name)
    answer = kafka.call(
        "metadata", 12, topics=(asked,), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    (topic,) = answer.topics
    if topic.error_code:
        return None
    assert topic.is_internal
    kinds = schema("describe_configs", 4, "request")
    resource = kinds.DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=None)
    (result,) = kafka.call(
        "describe_configs", 4, resources=(resource,), include_synonyms=False, include_documentation=False
    ).results
    configs = {each.name: each.value for each in result.configs if each.config_source == _SET_BY_THE_TOPIC}
    return len(topic.partitions), configs


def alter(kafka: KafkaWire, name: str, operation: int, configs: dict[str, str | None]) -> None:
    """Set or delete configs of a topic."""
    kinds = schema("incremental_alter_configs", 1, "request")
    rows = tuple(
        kinds.AlterableConfig(name=each, config_operation=operation, value=value) for each, value in configs.items()
    )
    resource = kinds.AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=rows)
    answer: Any = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False)
    assert answer.responses[0].error_code == 0, answer


def delete(kafka: KafkaWire, name: str) -> None:
    """Delete the topic if it exists."""
    entry = schema("delete_topics", 6, "request").DeleteTopicState(name=name, topic_id=None)
    kafka.call("delete_topics", 6, topics=(entry,), timeout=TIMEOUT)
