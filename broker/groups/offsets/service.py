"""Commit and delete offsets, list and delete groups: the rules of the coordinator.

Everything is decided from memory, and every change goes through the group log. The checks of a commit, in Kafka's
order: each partition is of an existing topic (UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION); the group's log is loaded
(COORDINATOR_LOAD_IN_PROGRESS); the group exists (GROUP_ID_NOT_FOUND, or ILLEGAL_GENERATION for a client that does not
know that code); the member may commit (errors of `Group.validate_offset_commit`); the metadata is not too long
(OFFSET_METADATA_TOO_LARGE). The remaining partitions are one batch of the log. Source: Kafka's OffsetMetadataManager,
GroupCoordinatorShard, KafkaApis.handleOffsetCommitRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.group import SIMPLE_GROUP, CommitCheck, GroupSummary
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.groups.offsets.checks import accept_partitions, refuse_long_metadata
from barnabas.broker.groups.offsets.committed import CommittedOffsets, PartitionKey
from barnabas.broker.groups.offsets.pending import GroupTransaction, PendingOffsets
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey
from barnabas.protocol.groups.values import NO_TIMESTAMP, OffsetCommitValue

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.protocol.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse

_LONG_MAX: Final = 2**63 - 1


class GroupOffsets:
    """The committed offsets of all groups, and those of open transactions (`pending`). In the event loop only."""

    def __init__(
        self,
        group_log: GroupLog,
        registry: GroupRegistry,
        store: MetadataView,
        config: LiveConfig,
        wall_ms: Callable[[], int],
    ) -> None:
        self.committed = CommittedOffsets()
        self.pending = PendingOffsets()
        self._log = group_log
        self._registry = registry
        self._store = store
        self._config = config
        self._wall_ms = wall_ms
        group_log.add_replay(self._replay)

    def __contains__(self, group_id: str) -> bool:
        """Return whether the group has an offset, committed or pending: then it exists."""
        return group_id in self.committed or group_id in self.pending

    def summary(self, group_id: str) -> GroupSummary | None:
        """Return the group, None if it does not exist. Raises BrokerError while its log is loaded."""
        self._log.ensure_loaded(group_id)
        group = self._registry.get(group_id)
        if group is not None:
            return GroupSummary(group.state, group.protocol_type, group.group_type)
        return SIMPLE_GROUP if group_id in self else None

    def summaries(self) -> dict[str, GroupSummary]:
        """Return all groups that could be loaded, by id. Raises BrokerError while any log is loaded."""
        self._log.ensure_all_loaded()
        found = dict.fromkeys(self.committed.group_ids(), SIMPLE_GROUP)
        found.update(dict.fromkeys(self.pending.group_ids(), SIMPLE_GROUP))
        for group in self._registry:
            found[group.group_id] = GroupSummary(group.state, group.protocol_type, group.group_type)
        return found

    def commit(
        self, request: OffsetCommitRequest, denied: frozenset[str] = frozenset()
    ) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
        """Commit offsets, but those of the topics in `denied`. The response is deferred until they are durable.

        Raises BrokerError for the whole request.
        """
        from barnabas.protocol.messages.groups.offset_commit import DEFAULT_RETENTION, OffsetCommitResponse

        topics, accepted = accept_partitions(self._store.image, request.topics, denied, by_id=request.is_by_id)
        response = OffsetCommitResponse(topics=topics)
        if not accepted:
            return response
        check = self._validate(request)
        now_ms = self._wall_ms()
        expire = NO_TIMESTAMP
        if request.retention_ms != DEFAULT_RETENTION:
            expire = min(max(now_ms + request.retention_ms, 0), _LONG_MAX)
        longest = self._config.broker.get_int("offset.metadata.max.bytes")
        records = []
        for topic, entry, _ in refuse_long_metadata(accepted, longest):
            if check is not None:
                check(topic.topic_id, entry.partition)
            value = OffsetCommitValue(
                entry.offset, entry.leader_epoch, entry.metadata or "", now_ms, expire, topic.topic_id
            )
            records.append(GroupRecord(OffsetCommitKey(request.group_id, topic.name, entry.partition), value))
        if not records:
            return response
        return _commit_answer(request, response, self._log.append(request.group_id, records, pauses=False))

    def delete(self, group_id: str, partitions: Sequence[PartitionKey]) -> Appended:
        """Delete offsets, committed and pending; partitions without one are ignored."""
        offsets, pending = self.committed.of(group_id), self.pending.of(group_id)
        records = [
            GroupRecord(OffsetCommitKey(group_id, topic, number), None)
            for topic, number in partitions
            if (topic, number) in offsets or (topic, number) in pending
        ]
        return self._log.append(group_id, records, atomic=False) if records else _done()

    def delete_group(self, group_id: str) -> Appended:
        """Delete a group and its offsets.

        Raises BrokerError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or as `summary`.
        """
        self.ensure_exists(group_id)
        group = self._registry.get(group_id)
        if group is not None:
            group.validate_delete()
        return self.remove_group(group_id)

    def remove_group(self, group_id: str) -> Appended:
        """Append tombstones of all records of the group."""
        partitions = dict.fromkeys((*self.committed.of(group_id), *self.pending.of(group_id)))
        records = [GroupRecord(OffsetCommitKey(group_id, topic, number), None) for topic, number in partitions]
        group = self._registry.get(group_id)
        if group is not None:
            records += group.tombstones()
        else:
            records.append(GroupRecord(GroupMetadataKey(group_id), None))  # Kafka writes it for simple groups, too
        return self._log.append(group_id, records, atomic=False)

    def ensure_exists(self, group_id: str) -> None:
        """Raise BrokerError GROUP_ID_NOT_FOUND if there is no group, or as `summary`."""
        if self.summary(group_id) is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {printable(group_id)}")

    def end_transaction(self, transaction: GroupTransaction, *, is_commit: bool) -> None:
        """Apply an end marker that is in the log."""
        for key, value in self.pending.end(transaction, is_commit=is_commit):
            self.committed.put(key, value)

    def _replay(self, record: GroupRecord) -> None:
        """Apply a record that no transaction contains."""
        self.committed.replay(record)
        if self.pending and isinstance(record.key, OffsetCommitKey):
            self.pending.replay_plain(record.key, is_tombstone=record.value is None)

    def _validate(self, request: OffsetCommitRequest) -> CommitCheck | None:
        group_id = request.group_id
        self._log.ensure_loaded(group_id)
        group = self._registry.get(group_id)
        if group is not None:
            return group.validate_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation,
                knows_member_epochs=request.knows_unknown_groups,
            )
        if request.generation >= 0:
            if group_id in self:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {printable(group_id)} has no members")
            code = ErrorCode.GROUP_ID_NOT_FOUND if request.knows_unknown_groups else ErrorCode.ILLEGAL_GENERATION
            raise BrokerError(code, f"there is no group {printable(group_id)}")
        return None


def _done() -> Appended:
    answer: Appended = Deferred()
    answer.resolve(None)
    return answer


def _commit_answer(
    request: OffsetCommitRequest, response: OffsetCommitResponse, appended: Appended
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """Answer once the records are appended; an error of the log is the error of every partition."""
    answer: Deferred[OffsetCommitResponse] = Deferred()
    appended.then(lambda error: answer.resolve(response if error is None else request.refused(error.code)))
    return answer
