"""The offsets of share groups as administrators see, set and delete them, and the deletion of groups.

Offsets are part of the states at the share coordinator. Only groups without members are changed. Source: Kafka's
GroupCoordinatorService (describeShareGroupOffsets and others), GroupMetadataManager (alterShareGroupOffsets).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.groups.share import states as share_states
from barnabas.broker.groups.share.change import ShareGroupChange
from barnabas.broker.groups.share.records import states_record
from barnabas.broker.groups.share.states import StateTopic
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.share_group_offsets import (
    AlteredPartition,
    AlteredTopic,
    DeletedTopicOffsets,
    TopicToAlter,
)
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.groups.share.context import ShareContext
    from barnabas.broker.groups.share.group import ShareGroup
    from barnabas.broker.groups.share.initialization import ShareStates
    from barnabas.broker.groups.share.log import ShareGroupLog
    from barnabas.broker.share.coordinator import ShareStateSummary, TopicIdPartition

UNKNOWN: str = "This server does not host this topic-partition."
"""Kafka's message of UNKNOWN_TOPIC_OR_PARTITION."""


class _Groups(Protocol):
    """What is needed of ShareGroups."""

    def get(self, group_id: str) -> ShareGroup | None:
        """Return the share group, or None."""

    def existing(self, group_id: str) -> ShareGroup:
        """Return the share group. Raises BrokerError GROUP_ID_NOT_FOUND."""

    def existing_or_new(self, group_id: str) -> ShareGroup:
        """Return the share group, or a new one. Raises BrokerError GROUP_ID_NOT_FOUND."""


class ShareGroupOffsets:
    """Serves these requests. In the event loop only."""

    def __init__(self, groups: _Groups, log: ShareGroupLog, states: ShareStates, context: ShareContext) -> None:
        self._groups = groups
        self._log = log
        self._states = states
        self._context = context

    def initialized(self, group_id: str) -> dict[bytes, frozenset[int]]:
        """Return the partitions with state of a group; none of a group that does not exist."""
        group = self._groups.get(group_id)
        return {} if group is None else share_states.partitions_of(group.states.initialized)

    async def summaries(
        self, group_id: str, partitions: Sequence[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, ShareStateSummary]:
        """Return where the group begins in partitions."""
        return await self._states.coordinator.read_summaries(group_id, partitions)

    async def alter(self, group_id: str, topics: Sequence[TopicToAlter]) -> list[AlteredTopic]:
        """Begin anew at given offsets; the results are in the order of the request.

        Raises BrokerError GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or the log's.
        """
        # Before `__consumer_offsets` exists nothing is replayed: another request could create this group meanwhile.
        await self._states.durable(self._log.ready(group_id))
        group = self._groups.existing_or_new(group_id)
        group.ensure_empty()
        image = self._context.image()
        initializing: dict[bytes, StateTopic] = {}
        offsets: dict[TopicIdPartition, int] = {}
        for topic in topics:
            known = image.topics.get(topic.topic)
            if known is None:
                continue
            new = {each.partition: each.start_offset for each in topic.partitions if each.partition in known.partitions}
            if new:
                initializing[known.topic_id] = StateTopic(topic.topic, frozenset(new))
                offsets.update(((known.topic_id, number), offset) for number, offset in new.items())
        results: Mapping[TopicIdPartition, ErrorCode] = {}
        if offsets:
            change = ShareGroupChange(group, self._context)
            after = share_states.with_initializing(group.states, initializing, image)
            change.records.append(states_record(group_id, after))
            await self._states.durable(self._log.write(change))
            results = await self._states.initialize(group_id, offsets, group.epoch)
        altered = []
        for topic in topics:
            known = image.topics.get(topic.topic)
            rows = []
            for each in topic.partitions:
                if known is None or (known.topic_id, each.partition) not in offsets:
                    rows.append(
                        AlteredPartition(
                            partition=each.partition, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=UNKNOWN
                        )
                    )
                    continue
                code = results.get((known.topic_id, each.partition), ErrorCode.NONE)
                message = f"the share coordinator answered {code.name}" if code else None
                rows.append(AlteredPartition(partition=each.partition, error=code, message=message))
            topic_id = ZERO_UUID if known is None else known.topic_id
            altered.append(AlteredTopic(topic=topic.topic, topic_id=topic_id, partitions=rows))
        return altered

    async def delete(self, group_id: str, topics: Sequence[str]) -> list[DeletedTopicOffsets]:
        """Delete the offsets in topics. Raises BrokerError GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or the log's."""
        group = self._groups.existing(group_id)
        group.ensure_empty()
        if not group.has_states:
            return []
        image, states = self._context.image(), group.states
        refused: list[DeletedTopicOffsets] = []
        found: dict[bytes, StateTopic] = {}
        for name in topics:
            topic = image.topics.get(name)
            if topic is None:
                refused.append(
                    DeletedTopicOffsets(topic=name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=UNKNOWN)
                )
            elif topic.topic_id in states.initialized:
                found[topic.topic_id] = StateTopic(name, states.initialized[topic.topic_id].partitions)
            elif topic.topic_id in states.deleting:
                found[topic.topic_id] = StateTopic(name, frozenset(topic.partitions))
            else:
                message = "There is no offset information to delete."
                refused.append(
                    DeletedTopicOffsets(topic=name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)
                )
        await self._states.write(group_id, lambda now: share_states.topics_deleting(now, found, image))
        if not found:
            return refused
        results = await self._states.delete(group_id, _pairs(found))
        errors = _error_by_topic(results)
        for topic_id, code in errors.items():
            message = f"the share coordinator answered {code.name}"
            refused.append(
                DeletedTopicOffsets(topic=found[topic_id].name, topic_id=topic_id, error=code, message=message)
            )
        gone = {topic_id: topic.name for topic_id, topic in found.items() if topic_id not in errors}
        if gone:
            await self._states.write(
                group_id, lambda now: share_states.topics_deleted(now, gone, self._context.image())
            )
        return [*refused, *(DeletedTopicOffsets(topic=name, topic_id=topic_id) for topic_id, name in gone.items())]

    async def delete_states(self, group_id: str) -> None:
        """Delete all states of a group, before the group itself is deleted.

        Raises BrokerError NON_EMPTY_GROUP, the share coordinator's error, or the log's.
        """
        group = self._groups.existing(group_id)
        group.ensure_empty()
        if not group.has_states:
            return
        states, topics = share_states.all_deleting(group.states, self._context.image())
        await self._states.write(group_id, lambda _: states)
        if not topics:
            return
        for code in _error_by_topic(await self._states.delete(group_id, _pairs(topics))).values():
            raise BrokerError(code, "the states of its partitions could not be deleted")


def _pairs(topics: Mapping[bytes, StateTopic]) -> list[TopicIdPartition]:
    return [(topic_id, number) for topic_id, topic in topics.items() for number in sorted(topic.partitions)]


def _error_by_topic(results: Mapping[TopicIdPartition, ErrorCode]) -> dict[bytes, ErrorCode]:
    errors: dict[bytes, ErrorCode] = {}
    for (topic_id, _), code in results.items():
        if code:
            errors.setdefault(topic_id, code)
    return errors
