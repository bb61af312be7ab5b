"""Requests of share groups over Kafka's protocol, encoded by kio: a member, and administrators."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from barnabas.protocol.errors import ErrorCode
from tests.support.kafka.kafka_wire import KafkaWire, schema

TIMEOUT = timedelta(seconds=30)

NOT_READY = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
"""What a coordinator answers while its topic is being created or loaded."""

SETTLING_S = 30.0
"""How long the states of a group's partitions may take to be initialized."""


def create(kafka: KafkaWire, topic: str, partitions: int = 1) -> None:
    kinds = schema("create_topics", 7, "request")
    entry = kinds.CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    (result,) = kafka.call("create_topics", 7, topics=(entry,), timeout=TIMEOUT, validate_only=False).topics
    assert result.error_code == ErrorCode.NONE, result.error_message


def heartbeat(kafka: KafkaWire, group: str, member: str, epoch: int, *topics: str) -> Any:
    return kafka.call(
        "share_group_heartbeat",
        1,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=None,
        subscribed_topic_names=topics or None,
    )


def settled(kafka: KafkaWire, group: str, member: str, epoch: int) -> tuple[int, list[int]]:
    """Send heartbeats until the member has partitions; return its epoch and the partitions."""
    deadline = time.monotonic() + SETTLING_S
    while time.monotonic() < deadline:
        answer = heartbeat(kafka, group, member, epoch)
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return epoch, partitions(answer)
        time.sleep(0.005)
    raise AssertionError(f"no partition after {SETTLING_S:g} s of heartbeats: {describe(kafka, group)}")


def partitions(answer: Any) -> list[int]:
    return sorted(number for topic in answer.assignment.topic_partitions for number in topic.partitions)


def joined(kafka: KafkaWire, group: str, member: str, *topics: str) -> tuple[int, list[int]]:
    answer = heartbeat(kafka, group, member, 0, *topics)
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    if answer.assignment.topic_partitions:
        return answer.member_epoch, partitions(answer)
    return settled(kafka, group, member, answer.member_epoch)


def describe(kafka: KafkaWire, group: str) -> Any:
    (found,) = kafka.call("share_group_describe", 1, group_ids=(group,), include_authorized_operations=True).groups
    return found


def offsets(kafka: KafkaWire, group: str, topics: dict[str, tuple[int, ...]] | None = None) -> Any:
    kinds = schema("describe_share_group_offsets", 1, "request")
    rows = None
    if topics is not None:
        rows = tuple(
            kinds.DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=numbers)
            for topic, numbers in topics.items()
        )
    asked = kinds.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=rows)
    (found,) = kafka.call("describe_share_group_offsets", 1, groups=(asked,)).groups
    return found


def alter(kafka: KafkaWire, group: str, topic: str, **new: int) -> Any:
    kinds = schema("alter_share_group_offsets", 0, "request")
    rows = tuple(
        kinds.AlterShareGroupOffsetsRequestPartition(partition_index=int(number.removeprefix("p")), start_offset=offset)
        for number, offset in new.items()
    )
    row = kinds.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=rows)
    return kafka.call("alter_share_group_offsets", 0, group_id=group, topics=(row,))


def delete_offsets(kafka: KafkaWire, group: str, *topics: str) -> Any:
    kinds = schema("delete_share_group_offsets", 0, "request")
    rows = tuple(kinds.DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics)
    return kafka.call("delete_share_group_offsets", 0, group_id=group, topics=rows)


def delete_group(kafka: KafkaWire, group: str) -> int:
    (result,) = kafka.call("delete_groups", 2, groups_names=(group,)).results
    return int(result.error_code)
