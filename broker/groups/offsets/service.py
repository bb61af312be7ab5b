"""Committing, fetching and deleting offsets, and listing and deleting groups: the rules of the coordinator.

Everything is decided from memory; what changes goes through the group log. Order of the checks of a commit, as in
Kafka: each partition is of a topic that is here (UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION); the group's log is
loaded (COORDINATOR_LOAD_IN_PROGRESS); the group and the member (GROUP_ID_NOT_FOUND or, to a client of before that code,
ILLEGAL_GENERATION for a member of an unknown group; then the members' own codes); the metadata is not too long
(OFFSET_METADATA_TOO_LARGE). What is left of the request is one batch of the log.
Source: Kafka's OffsetMetadataManager, GroupCoordinatorShard, KafkaApis.handleOffsetCommitRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.group_records import GroupRecord
from barnabas.broker.groups.members import CLASSIC, EMPTY, GroupMembers, GroupSummary
from barnabas.broker.groups.offsets.committed import CommittedOffsets, PartitionKey
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey
from barnabas.protocol.groups.offsets import NO_TIMESTAMP, OffsetCommitValue
from barnabas.protocol.messages.groups.offset_commit import (
    DEFAULT_RETENTION,
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
    refuse_commit,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.offsets import CommitCheck
    from barnabas.broker.groups.group_log import Appended, GroupLog
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import TopicImage
    from barnabas.broker.metadata.store import MetadataStore

_LONG_MAX: Final = 2**63 - 1

_SIMPLE: Final = GroupSummary(EMPTY, "", CLASSIC)
"""A group that has offsets and never had a member."""


class GroupOffsets:
    """The offsets' half of the group coordinator; in the event loop."""

    def __init__(
        self,
        group_log: GroupLog,
        members: GroupMembers,
        store: MetadataStore,
        config: LiveConfig,
        wall_ms: Callable[[], int],
    ) -> None:
        self.members = members
        self.committed = CommittedOffsets()
        self._log = group_log
        self._store = store
        self._config = config
        self._wall_ms = wall_ms
        group_log.add_replay(self._replay)

    def summary(self, group_id: str) -> GroupSummary | None:
        """None for a group that does not exist. Raises BrokerError while its log is being loaded."""
        self._log.ensure_loaded(group_id)
        known = self.members.summary(group_id)
        return known if known is not None or group_id not in self.committed else _SIMPLE

    def summaries(self) -> dict[str, GroupSummary]:
        """All groups that could be loaded. Raises BrokerError while any log is being loaded."""
        self._log.ensure_all_loaded()
        found = dict.fromkeys(self.committed.group_ids(), _SIMPLE)
        for group_id in self.members.group_ids():
            summary = self.members.summary(group_id)
            if summary is not None:
                found[group_id] = summary
        return found

    def commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
        """The answer, at once where nothing has to be waited for. Raises BrokerError for the whole request."""
        response, accepted = self._accept(request)
        if not accepted:
            return response
        check = self._validate(request)
        now_ms = self._wall_ms()
        expire = NO_TIMESTAMP
        if request.retention_ms != DEFAULT_RETENTION:
            expire = min(max(now_ms + request.retention_ms, 0), _LONG_MAX)
        longest = self._config.broker.get_int("offset.metadata.max.bytes")
        records = []
        for topic, entry, result in accepted:
            metadata = entry.metadata or ""
            if _utf16_length(metadata) > longest:
                result.error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            if check is not None:
                check(topic.topic_id, entry.partition)
            value = OffsetCommitValue(entry.offset, entry.leader_epoch, metadata, now_ms, expire, topic.topic_id)
            records.append(GroupRecord(OffsetCommitKey(request.group_id, topic.name, entry.partition), value))
        if not records:
            return response
        return _commit_answer(request, response, self._log.append(request.group_id, records))

    def delete(self, group_id: str, partitions: Sequence[PartitionKey]) -> Appended:
        """Take offsets back; those that are not there are gone anyway."""
        offsets = self.committed.of(group_id)
        records = [
            GroupRecord(OffsetCommitKey(group_id, topic, number), None)
            for topic, number in partitions
            if (topic, number) in offsets
        ]
        return self._log.append(group_id, records, atomic=False) if records else _done()

    def delete_group(self, group_id: str) -> Appended:
        """Take a group back, with its offsets.

        Raises BrokerError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or as `summary`.
        """
        self.ensure_exists(group_id)
        if self.members.summary(group_id) is not None:
            self.members.validate_delete(group_id)
        return self.remove_group(group_id)

    def remove_group(self, group_id: str) -> Appended:
        """Tombstones of all that the log has of the group."""
        records = [
            GroupRecord(OffsetCommitKey(group_id, topic, number), None) for topic, number in self.committed.of(group_id)
        ]
        records += self.members.tombstones(group_id)
        return self._log.append(group_id, records, atomic=False)

    def ensure_exists(self, group_id: str) -> None:
        """Raises BrokerError GROUP_ID_NOT_FOUND, or as `summary`."""
        if self.summary(group_id) is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {printable(group_id)}")

    def _accept(
        self, request: OffsetCommitRequest
    ) -> tuple[OffsetCommitResponse, list[tuple[TopicImage, OffsetCommitPartition, OffsetCommitPartitionResult]]]:
        """An answer without errors but for unknown partitions; and the others."""
        accepted = []
        topics = []
        image = self._store.image
        for asked in request.topics:
            by_id = asked.topic_id is not None
            topic = image.topic_by_id(asked.topic_id) if asked.topic_id is not None else image.topics.get(asked.name)
            results = []
            for entry in asked.partitions:
                result = OffsetCommitPartitionResult(entry.partition)
                results.append(result)
                if topic is None and by_id:
                    result.error = ErrorCode.UNKNOWN_TOPIC_ID
                elif topic is None or entry.partition not in topic.partitions:
                    result.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    accepted.append((topic, entry, result))
            topics.append(OffsetCommitTopicResult(asked.name, results, asked.topic_id))
        return OffsetCommitResponse(topics), accepted

    def _validate(self, request: OffsetCommitRequest) -> CommitCheck | None:
        group_id = request.group_id
        self._log.ensure_loaded(group_id)
        if self.members.summary(group_id) is not None:
            return self.members.validate_offset_commit(
                group_id,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                generation=request.generation,
                knows_member_epochs=request.knows_unknown_groups,
            )
        if request.generation >= 0:
            if group_id in self.committed:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {printable(group_id)} has no members")
            code = ErrorCode.GROUP_ID_NOT_FOUND if request.knows_unknown_groups else ErrorCode.ILLEGAL_GENERATION
            raise BrokerError(code, f"there is no group {printable(group_id)}")
        return None

    def _replay(self, record: GroupRecord) -> None:
        self.committed.replay(record)
        if isinstance(record.key, GroupMetadataKey) and record.value is None:
            self.members.unload(record.key.group)


def _utf16_length(text: str) -> int:
    """As Java counts a string's characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


def _done() -> Appended:
    answer: Appended = Deferred()
    answer.resolve(None)
    return answer


def _commit_answer(
    request: OffsetCommitRequest, response: OffsetCommitResponse, appended: Appended
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """Whatever is not known is not committed: an error of the log is every partition's."""
    answer: Deferred[OffsetCommitResponse] = Deferred()
    appended.then(lambda error: answer.resolve(response if error is None else refuse_commit(request, error.code)))
    return answer
