"""A group's committed offsets compared with its partitions: for `group describe` and `group reset-offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.clients.admin.admin import Admin
from barnabas.clients.admin.group_description import GroupMemberDescription
from barnabas.clients.errors import UnknownTopicError
from barnabas.commands.failures import CommandFailure
from barnabas.commands.group.reset_target import ResetTarget
from barnabas.commands.topic.partition_offsets import chosen_partitions, earliest_and_latest, offsets_at
from barnabas.protocol.topic_partition import TopicPartition


async def described(admin: Admin, group: str) -> dict[str, Any]:
    """The group as JSON: state, members, and a row for each partition with a committed offset or a member.

    A row's committed offset is None without one, end and lag are None if the topic no longer exists, member_id and
    client are None without a member. Raises CommandFailure for an unknown group.
    """
    listed = {each.group_id: each for each in await admin.list_groups()}
    if group not in listed:
        raise CommandFailure(f"there is no group {group}")
    members: Sequence[GroupMemberDescription] = ()
    if listed[group].protocol_type:
        members = (await admin.describe_group(group)).members
    owners = {partition: each for each in members for partition in each.partitions}
    committed = await admin.group_offsets(group)
    rows = []
    for topic, partitions in _by_topic({**committed, **owners}).items():
        ends = await _ends(admin, topic, partitions)
        for partition in partitions:
            at = committed.get(TopicPartition(topic, partition))
            owner = owners.get(TopicPartition(topic, partition))
            end = ends.get(partition)
            rows.append(
                {
                    "topic": topic,
                    "partition": partition,
                    "committed": None if at is None else at.offset,
                    "end": end,
                    "lag": None if end is None or at is None else max(0, end - at.offset),
                    "leader_epoch": -1 if at is None else at.leader_epoch,
                    "metadata": "" if at is None else at.metadata,
                    "member_id": None if owner is None else owner.member_id,
                    "client": None if owner is None else f"{owner.client_id}@{owner.host}",
                }
            )
    return {
        "group": group,
        "state": listed[group].state,
        "members": [
            {
                "member_id": each.member_id,
                "instance_id": each.group_instance_id,
                "client_id": each.client_id,
                "host": each.host,
                "partitions": len(each.partitions),
            }
            for each in members
        ],
        "partitions": rows,
    }


async def planned_reset(
    admin: Admin, group: str, topics: Sequence[str], partitions: Sequence[int], target: ResetTarget
) -> list[dict[str, Any]]:
    """A row for each partition: the committed offset (None without one) and the new one."""
    committed = await admin.group_offsets(group)
    chosen = {topic: await chosen_partitions(admin, topic, partitions) for topic in topics} or _by_topic(committed)
    rows = []
    for topic, numbers in chosen.items():
        bounds = await earliest_and_latest(admin, topic, numbers)
        found = {} if target.offset is not None else await offsets_at(admin, topic, numbers, target.timestamp)
        for number in numbers:
            earliest, latest = bounds[number]
            wanted = target.offset if target.offset is not None else found[number].offset
            if wanted < 0:  # no record is that late
                wanted = latest
            at = committed.get(TopicPartition(topic, number))
            rows.append(
                {
                    "topic": topic,
                    "partition": number,
                    "committed": None if at is None else at.offset,
                    "new": min(max(wanted, earliest), latest),
                }
            )
    return rows


async def _ends(admin: Admin, topic: str, partitions: Sequence[int]) -> dict[int, int]:
    """Each partition's end offset; {} if the topic no longer exists."""
    try:
        bounds = await earliest_and_latest(admin, topic, partitions)
    except UnknownTopicError:
        return {}
    return {partition: latest for partition, (_, latest) in bounds.items()}


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found
