"""Offsets that a transaction commits: pending from TxnOffsetCommit until the end marker in the group's partition.

A commit is one transactional batch with the producer's id and epoch. Its checks, in Kafka's order, after those of the
transaction: the group's log is loaded (COORDINATOR_LOAD_IN_PROGRESS); a group without members is named without a
generation (ILLEGAL_GENERATION); the member, if the request names one, is of this generation (errors of
`Group.validate_transactional_commit`, a stale epoch as ILLEGAL_GENERATION); the metadata is not too long
(OFFSET_METADATA_TOO_LARGE). Records have no topic id, as Kafka's. Source: Kafka's OffsetMetadataManager
(commitTransactionalOffset, replayEndTransactionMarker), CoordinatorOperationExceptionHelper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.log.records import GroupRecord, TransactionWriter
from barnabas.broker.groups.offsets.checks import AcceptedPartition, refuse_long_metadata
from barnabas.broker.groups.offsets.pending import PendingOffset, PendingRecord
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.groups.values import OffsetCommitValue
from barnabas.protocol.topic_name import OFFSETS_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.groups.group import CommitCheck
    from barnabas.broker.groups.log.group_log import GroupLog
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.storage.log.append import TransactionEnd
    from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest

_AS_SERVER_ERROR: Final = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
)
"""Errors of an append that clients of a coordinator do not know."""


class TransactionalOffsets:
    """Commits offsets in transactions, and ends these. In the event loop only."""

    def __init__(
        self,
        offsets: GroupOffsets,
        group_log: GroupLog,
        registry: GroupRegistry,
        config: LiveConfig,
        wall_ms: Callable[[], int],
    ) -> None:
        self._offsets = offsets
        self._log = group_log
        self._registry = registry
        self._config = config
        self._wall_ms = wall_ms

    def when_ready(self, group_id: str, then: Callable[[BrokerError | None], None]) -> None:
        """Call `then` once the group's partition exists, or with an error."""
        self._log.when_ready(group_id, then)

    def commit(self, request: TxnOffsetCommitRequest, accepted: Sequence[AcceptedPartition]) -> Appended:
        """Append the offsets of partitions that exist, after `when_ready`; errors of single ones go to their results.

        The transaction must include the group's partition already. Raises BrokerError for the whole request; the answer
        carries the error of the append.
        """
        check = self._validate(request)
        now_ms = self._wall_ms()
        longest = self._config.broker.get_int("offset.metadata.max.bytes")
        records = []
        for topic, entry, _ in refuse_long_metadata(accepted, longest):
            if check is not None:
                _check_generation(check, topic.topic_id, entry.partition)
            value = OffsetCommitValue(entry.offset, entry.leader_epoch, entry.metadata or "", now_ms)
            records.append(GroupRecord(OffsetCommitKey(request.group_id, topic.name, entry.partition), value))
        if not records:
            return self._log.settled(request.group_id)
        return self._append(request.group_id, records, TransactionWriter(request.producer_id, request.producer_epoch))

    def end(self, number: int, end: TransactionEnd) -> Appended:
        """Append an end marker to a partition of `__consumer_offsets`, and commit or drop the pending offsets there.

        The answer comes once the marker is as durable as the topic demands. Raises BrokerError if it is not appended:
        UNKNOWN_TOPIC_OR_PARTITION without the topic, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, and the
        errors of `Partition.append_marker`.
        """
        if not self._log.exists:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {OFFSETS_TOPIC}")
        is_appended = False

        def replay() -> None:
            nonlocal is_appended
            is_appended = True
            self._offsets.end_transaction((number, end.producer_id), is_commit=end.marker.is_commit)

        answer = self._log.append_marker(number, end, replay)
        if not is_appended:
            answer.then(_raise)
        return answer

    def _append(self, group_id: str, records: Sequence[GroupRecord], writer: TransactionWriter) -> Appended:
        def replay(number: int, base_offset: int) -> None:
            for record_offset, (key, value) in enumerate(records, base_offset):
                assert isinstance(key, OffsetCommitKey)
                assert isinstance(value, OffsetCommitValue)
                pending = PendingOffset(value, record_offset)
                self._offsets.pending.put(PendingRecord((number, writer.producer_id), key, pending))

        answer: Appended = Deferred()
        appended = self._log.append_in_transaction(group_id, records, writer, replay)

        def written(error: BrokerError | None) -> None:
            if error is not None:
                self._log.warn_of_refusal(group_id, error)
                error = _as_client_error(error)
            answer.resolve(error)

        appended.then(written)
        return answer

    def _validate(self, request: TxnOffsetCommitRequest) -> CommitCheck | None:
        group_id = request.group_id
        self._log.ensure_loaded(group_id)
        group = self._registry.get(group_id)
        if group is None:
            if request.generation < 0:
                return None
            if group_id in self._offsets:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {printable(group_id)} has no members")
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {printable(group_id)}")
        try:
            return group.validate_transactional_commit(request.member_id, request.group_instance_id, request.generation)
        except BrokerError as error:
            raise _as_illegal_generation(error) from error


def _check_generation(check: CommitCheck, topic_id: bytes, partition: int) -> None:
    try:
        check(topic_id, partition)
    except BrokerError as error:
        raise _as_illegal_generation(error) from error


def _as_illegal_generation(error: BrokerError) -> BrokerError:
    """Return a stale member epoch, which no producer knows, as ILLEGAL_GENERATION; other errors as they are."""
    if error.code is ErrorCode.STALE_MEMBER_EPOCH:
        return BrokerError(ErrorCode.ILLEGAL_GENERATION, str(error))
    return error


def _as_client_error(error: BrokerError) -> BrokerError:
    if error.code in _AS_SERVER_ERROR:
        return BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    return error


def _raise(error: BrokerError | None) -> None:
    if error is not None:
        raise error
