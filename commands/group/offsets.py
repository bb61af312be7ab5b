"""A group's committed offsets compared with its partitions: for `group describe` and `group reset-offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.clients.admin.admin import Admin
from barnabas.clients.admin.group_description import GroupMemberDescription
from barnabas.clients.errors import UnknownTopicError
from barnabas.commands.failures import CommandFailure
from barnabas.commands.group.reset_target import ResetTarget
from barnabas.commands.group.share_group import SHARE_TYPE, described_share_group
from barnabas.commands.group.streams_group import STREAMS_TYPE, streams_group_facts
from barnabas.commands.topic.partition_offsets import chosen_partitions, earliest_and_latest, offsets_at
from barnabas.protocol.topic_partition import TopicPartition


async def described(admin: Admin, group: str) -> dict[str, Any]:
    """The group as JSON: state, members, and a row for each partition with a committed offset or a member.

    A row's committed offset is None without one, end and lag are None if the topic no longer exists, member_id and
    client are None without a member. Members of a streams group have their tasks, too. Of a share group what
    `share_group` describes. Raises CommandFailure for an unknown group.
    """
    listed = {each.group_id: each for each in await admin.list_groups()}
    if group not in listed:
        raise CommandFailure(f"there is no group {group}")
    if listed[group].group_type == SHARE_TYPE:
        return await described_share_group(admin.config, group)
    members: list[dict[str, Any]] = []
    owners: Mapping[TopicPartition, tuple[str, str]] = {}
    if listed[group].group_type == STREAMS_TYPE:
        members, owners = await streams_group_facts(admin.config, group)
    elif listed[group].protocol_type:
        found = (await admin.describe_group(group)).members
        members = [_member(each) for each in found]
        owners = {
            partition: (each.member_id, f"{each.client_id}@{each.host}")
            for each in found
            for partition in each.partitions
        }
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
                    "member_id": None if owner is None else owner[0],
                    "client": None if owner is None else owner[1],
                }
            )
    return {
        "group": group,
        "type": listed[group].group_type,
        "state": listed[group].state,
        "members": members,
        "partitions": rows,
    }


def _member(found: GroupMemberDescription) -> dict[str, Any]:
    return {
        "member_id": found.member_id,
        "instance_id": found.group_instance_id,
        "client_id": found.client_id,
        "host": found.host,
        "partitions": len(found.partitions),
    }


async def planned_reset(
    admin: Admin, group: str, topics: Sequence[str], partitions: Sequence[int], target: ResetTarget
) -> list[dict[str, Any]]:
    """A row for each partition: the committed offset (None without one) and the new one."""
    if any(each.group_id == group and each.group_type == SHARE_TYPE for each in await admin.list_groups()):
        raise CommandFailure(
            f"group {group} is a share group: kafka-share-groups.sh --reset-offsets sets where it begins"
        )
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
