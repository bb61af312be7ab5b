"""OffsetFetch (key 9): the committed offsets of groups, in given partitions or in all.

The client may DESCRIBE the group (GROUP_AUTHORIZATION_FAILED for the group) and each topic (TOPIC_AUTHORIZATION_FAILED
for its partitions; topics that were not named are left out). A partition without a committed offset gets offset -1 and
no error, in an unknown group as well. Version 10 names topics by id: an unknown id is UNKNOWN_TOPIC_ID, and offsets
committed to an earlier topic of the same name are left out. If all topics of a group are requested by id, deleted
topics are left out. COORDINATOR_LOAD_IN_PROGRESS is an error of the group and, in old versions, of each partition. A
request that requires stable offsets gets UNSTABLE_OFFSET_COMMIT for a partition with an offset of an open transaction;
if all topics are requested, for those that have a committed one, too. Differs from Kafka: INVALID_REQUEST for each
occurrence of a group that is listed more than ten times with all topics; metadata that is too long for a string of the
version is OFFSET_METADATA_TOO_LARGE for its partition, where Kafka fails the whole request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.handlers.repetitions import DESCRIBED_MAX, repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Mapping

    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.offsets.committed import PartitionKey
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.groups.values import OffsetCommitValue


class _FetchedOffsets(NamedTuple):
    """The offsets of one group that a request asks for. `unstable`: partitions whose offset is refused."""

    request: OffsetFetchRequest
    committed: Mapping[PartitionKey, OffsetCommitValue]
    unstable: Collection[PartitionKey]


class OffsetFetchHandler:
    """Serves OffsetFetch."""

    def __init__(
        self,
        offsets: GroupOffsets,
        registry: GroupRegistry,
        group_log: GroupLog,
        store: MetadataView,
        probe: ApiProbe,
    ) -> None:
        self._offsets = offsets
        self._registry = registry
        self._log = group_log
        self._store = store
        self._probe = probe

    def __call__(
        self, session: Session, request: OffsetFetchRequest
    ) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
        """Answer one OffsetFetch request as the module docstring specifies; of many partitions in several turns."""
        return in_turns(self._fetch_all(session, request))

    async def _fetch_all(self, session: Session, request: OffsetFetchRequest) -> OffsetFetchResponse:
        turns = Turns()
        groups = request.asked_groups
        refused = repeated((each.group_id for each in groups), DESCRIBED_MAX)
        results = []
        for group in groups:
            if turns.is_over:
                await turns.next()
            results.append(await self._group(turns, session, group, request, refused))
        return request.answered(results)

    async def _group(
        self,
        turns: Turns,
        session: Session,
        group: OffsetFetchGroup,
        request: OffsetFetchRequest,
        refused: frozenset[str],
    ) -> OffsetFetchGroupResult:
        group_id = group.group_id
        try:
            ensure_allowed(session, Operation.DESCRIBE, ResourceType.GROUP, group_id, ApiKey.OFFSET_FETCH)
            if group.topics is None and group_id in refused:
                raise repetition_error("group", DESCRIBED_MAX)
            self._log.ensure_loaded(group_id)
            registered = self._registry.get(group_id)
            if registered is not None:
                registered.validate_offset_fetch(group.member_id, group.member_epoch)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return request.refused_group(group, error.code)
        unstable = self._offsets.pending.of(group_id) if request.require_stable else ()
        offsets = _FetchedOffsets(request, self._offsets.committed.of(group_id), unstable)
        image = self._store.image  # one for the decisions and the answers: topics may be created between turns
        if group.topics is None:
            # Of this moment, as in Kafka: between turns, offsets are committed and deleted.
            offsets = offsets._replace(committed=dict(offsets.committed), unstable=frozenset(unstable))
            names = [name for name, _ in offsets.committed]
            denied = await denied_in_turns(
                turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, ApiKey.OFFSET_FETCH
            )
            topics = await self._all(turns, offsets, denied, image if request.is_by_id else None)
            return OffsetFetchGroupResult(group_id=group_id, topics=topics)
        denied = frozenset()
        if session.access is not None:
            named = (_name_of(image, each, request) for each in group.topics)
            names = [name for name in named if name is not None]
            denied = await denied_in_turns(
                turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, ApiKey.OFFSET_FETCH
            )
        topics = []
        for each in group.topics:
            topics.append(await self._topic(turns, image, each, offsets, denied))
            if turns.is_over:
                await turns.next()
        return OffsetFetchGroupResult(group_id=group_id, topics=topics)

    async def _all(
        self,
        turns: Turns,
        offsets: _FetchedOffsets,
        denied: frozenset[str],
        ids_from: MetadataImage | None,
    ) -> list[OffsetFetchTopicResult]:
        topics: dict[str, list[OffsetFetchPartitionResult]] = {}
        for name, number in offsets.committed:
            if turns.is_over:
                await turns.next()
            if name in denied:
                continue
            topics.setdefault(name, []).append(self._partition(name, number, offsets, ZERO_UUID))
        if ids_from is None:
            return [OffsetFetchTopicResult(name=name, partitions=results) for name, results in topics.items()]
        known = ids_from.topics
        return [
            OffsetFetchTopicResult(name=name, partitions=results, topic_id=known[name].topic_id)
            for name, results in topics.items()
            if name in known
        ]

    async def _topic(
        self,
        turns: Turns,
        image: MetadataImage,
        topic: OffsetFetchTopic,
        offsets: _FetchedOffsets,
        denied: frozenset[str],
    ) -> OffsetFetchTopicResult:
        name = _name_of(image, topic, offsets.request)
        if name is None or name in denied:
            code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            self._probe.count_error(code.name.lower())
            refused = [OffsetFetchPartitionResult(each, error=code) for each in topic.partitions]
            return OffsetFetchTopicResult(name=topic.name, partitions=refused, topic_id=topic.topic_id)
        results = []
        for number in topic.partitions:
            results.append(self._partition(name, number, offsets, topic.topic_id))
            if turns.is_over:
                await turns.next()
        return OffsetFetchTopicResult(name=topic.name, partitions=results, topic_id=topic.topic_id)

    def _partition(
        self, name: str, number: int, offsets: _FetchedOffsets, topic_id: bytes
    ) -> OffsetFetchPartitionResult:
        if (name, number) in offsets.unstable:
            return self._refused(number, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        value = offsets.committed.get((name, number))
        if value is None or (topic_id not in (ZERO_UUID, value.topic_id) and value.topic_id != ZERO_UUID):
            return OffsetFetchPartitionResult(number)
        if not offsets.request.fits(value.metadata):
            return self._refused(number, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        return OffsetFetchPartitionResult(number, value.offset, value.leader_epoch, value.metadata)

    def _refused(self, number: int, code: ErrorCode) -> OffsetFetchPartitionResult:
        self._probe.count_error(code.name.lower())
        return OffsetFetchPartitionResult(number, error=code)


def _name_of(image: MetadataImage, topic: OffsetFetchTopic, request: OffsetFetchRequest) -> str | None:
    return topic.name if topic.name or not request.is_by_id else image.names.get(topic.topic_id)
