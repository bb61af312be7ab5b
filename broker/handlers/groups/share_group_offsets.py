"""DescribeShareGroupOffsets (key 90), AlterShareGroupOffsets (91), DeleteShareGroupOffsets (92).

All: UNSUPPORTED_VERSION while share.version is 0.

Describe, for each group: GROUP_AUTHORIZATION_FAILED if the client may not DESCRIBE it. Of a named topic:
TOPIC_AUTHORIZATION_FAILED if it may not DESCRIBE that; without names such topics are left out. An unknown group, topic
or partition is no error: its start offset is -1. The lag is the end of the partition, less the start offset and the
records after it that are done; -1 before anything was delivered.

Alter: GROUP_AUTHORIZATION_FAILED if the client may not READ the group, INVALID_GROUP_ID for an empty id,
GROUP_ID_NOT_FOUND for a group of another protocol, NON_EMPTY_GROUP. A group that does not exist is created. For each
partition: TOPIC_AUTHORIZATION_FAILED if the client may not READ the topic, UNKNOWN_TOPIC_OR_PARTITION.

Delete: GROUP_AUTHORIZATION_FAILED if the client may not DELETE the group, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND,
NON_EMPTY_GROUP. For each topic: TOPIC_AUTHORIZATION_FAILED if it may not READ the topic; UNKNOWN_TOPIC_OR_PARTITION if
the topic does not exist, or the group has no state in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import denial, denied_names, ensure_allowed
from barnabas.broker.handlers.turns import Turns
from barnabas.broker.share.feature import ensure_share_groups
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.share_group_offsets import (
    NO_OFFSET,
    AlteredPartition,
    AlteredTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeletedTopicOffsets,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribedGroupOffsets,
    DescribedOffset,
    DescribedTopicOffsets,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    GroupToDescribe,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.groups.share.groups import ShareGroups
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.share.coordinator import ShareStateSummary


class DescribeShareGroupOffsetsHandler:
    """Serves DescribeShareGroupOffsets."""

    def __init__(
        self, groups: ShareGroups, partitions: PartitionRegistry, store: MetadataView, probe: ApiProbe
    ) -> None:
        self._groups = groups
        self._partitions = partitions
        self._store = store
        self._probe = probe

    async def __call__(
        self, session: Session, request: DescribeShareGroupOffsetsRequest
    ) -> DescribeShareGroupOffsetsResponse:
        """Answer one request as the module docstring specifies."""
        groups = []
        turns = Turns()
        for asked in request.groups:
            if turns.is_over:
                await turns.next()
            try:
                groups.append(await self._describe(turns, session, asked))
            except BrokerError as error:
                self._probe.count_error(error.code.name.lower())
                groups.append(DescribedGroupOffsets(group_id=asked.group_id, error=error.code, message=error.message))
        return DescribeShareGroupOffsetsResponse(groups=groups)

    async def _describe(self, turns: Turns, session: Session, asked: GroupToDescribe) -> DescribedGroupOffsets:
        api, group_id = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, asked.group_id
        ensure_share_groups(self._store.image)
        ensure_allowed(session, Operation.DESCRIBE, ResourceType.GROUP, group_id, api)
        image = self._store.image
        if asked.topics is None:
            self._groups.ensure_serving(group_id)
            found = self._groups.offsets.initialized(group_id).items()
            wanted = [(image.names[each], sorted(numbers)) for each, numbers in found if each in image.names]
        else:
            wanted = [(each.topic, list(each.partitions)) for each in asked.topics]
        denied = denied_names(session, Operation.DESCRIBE, ResourceType.TOPIC, [name for name, _ in wanted], api)
        known = {name: image.topics[name].topic_id for name, _ in wanted if name in image.topics and name not in denied}
        pairs = [(known[name], number) for name, numbers in wanted if name in known for number in numbers]
        summaries = await self._groups.offsets.summaries(group_id, pairs) if pairs else {}
        topics = []
        for name, numbers in wanted:
            if turns.is_over:
                await turns.next()
            if name in denied:
                continue
            topic_id = known.get(name, ZERO_UUID)
            rows = []
            for number in numbers:
                if turns.is_over:
                    await turns.next()
                rows.append(self._row(name, number, summaries.get((topic_id, number))))
            topics.append(DescribedTopicOffsets(topic=name, topic_id=topic_id, partitions=rows))
        if asked.topics is not None:
            error = denial(ResourceType.TOPIC)
            topics += [
                DescribedTopicOffsets(
                    topic=name,
                    partitions=[
                        DescribedOffset(partition=number, error=error.code, message=error.message) for number in numbers
                    ],
                )
                for name, numbers in wanted
                if name in denied
            ]
        return DescribedGroupOffsets(group_id=group_id, topics=topics)

    def _row(self, topic: str, number: int, summary: ShareStateSummary | None) -> DescribedOffset:
        if summary is None or summary.error:
            return DescribedOffset(partition=number)
        done = summary.delivery_complete_count
        if NO_OFFSET in (summary.start_offset, done):
            return DescribedOffset(
                partition=number, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch
            )
        partition = self._partitions.get(topic, number)
        if partition is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return DescribedOffset(
                partition=number, start_offset=0, error=code, message="the end of the partition is unknown"
            )
        lag = partition.log.high_watermark - summary.start_offset - done
        return DescribedOffset(
            partition=number, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch, lag=lag
        )


class AlterShareGroupOffsetsHandler:
    """Serves AlterShareGroupOffsets."""

    def __init__(self, groups: ShareGroups, store: MetadataView, probe: ApiProbe) -> None:
        self._groups = groups
        self._store = store
        self._probe = probe

    async def __call__(
        self, session: Session, request: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        """Answer one request as the module docstring specifies."""
        api, group_id = ApiKey.ALTER_SHARE_GROUP_OFFSETS, request.group_id
        try:
            ensure_share_groups(self._store.image)
            ensure_allowed(session, Operation.READ, ResourceType.GROUP, group_id, api)
            names = [each.topic for each in request.topics]
            denied = denied_names(session, Operation.READ, ResourceType.TOPIC, names, api)
            if not group_id:
                raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
            self._groups.ensure_serving(group_id)
            allowed = [each for each in request.topics if each.topic not in denied]
            topics = await self._groups.offsets.alter(group_id, allowed)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return request.refused(error.code, error.message)
        refusal = denial(ResourceType.TOPIC)
        ids = self._store.image.topics
        refused = [
            AlteredTopic(
                topic=each.topic,
                topic_id=ids[each.topic].topic_id if each.topic in ids else ZERO_UUID,
                partitions=[
                    AlteredPartition(partition=row.partition, error=refusal.code, message=refusal.message)
                    for row in each.partitions
                ],
            )
            for each in request.topics
            if each.topic in denied
        ]
        _count(self._probe, [row.error for topic in (*refused, *topics) for row in topic.partitions])
        return AlterShareGroupOffsetsResponse(topics=[*refused, *topics])


class DeleteShareGroupOffsetsHandler:
    """Serves DeleteShareGroupOffsets."""

    def __init__(self, groups: ShareGroups, store: MetadataView, probe: ApiProbe) -> None:
        self._groups = groups
        self._store = store
        self._probe = probe

    async def __call__(
        self, session: Session, request: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        """Answer one request as the module docstring specifies."""
        api, group_id = ApiKey.DELETE_SHARE_GROUP_OFFSETS, request.group_id
        try:
            ensure_share_groups(self._store.image)
            ensure_allowed(session, Operation.DELETE, ResourceType.GROUP, group_id, api)
            names = list(dict.fromkeys(each.topic for each in request.topics))
            denied = denied_names(session, Operation.READ, ResourceType.TOPIC, names, api)
            if not group_id:
                raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
            self._groups.ensure_serving(group_id)
            allowed = [each for each in names if each not in denied]
            topics = await self._groups.offsets.delete(group_id, allowed)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return request.refused(error.code, error.message)
        refusal = denial(ResourceType.TOPIC)
        refused = [
            DeletedTopicOffsets(topic=each, error=refusal.code, message=refusal.message)
            for each in names
            if each in denied
        ]
        _count(self._probe, [topic.error for topic in (*refused, *topics)])
        return DeleteShareGroupOffsetsResponse(topics=[*refused, *topics])


def _count(probe: ApiProbe, codes: Sequence[ErrorCode]) -> None:
    for code in filter(None, codes):
        probe.count_error(code.name.lower())
