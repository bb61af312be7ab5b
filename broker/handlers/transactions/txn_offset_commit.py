"""TxnOffsetCommit (key 28): offsets of a group that take effect when the transaction commits.

The order of the checks, as in Kafka: the client may WRITE the transactional id and READ the group
(TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED for every partition), and READ each topic
(TOPIC_AUTHORIZATION_FAILED for it alone); each partition exists (UNKNOWN_TOPIC_OR_PARTITION for it alone); the group id
is not empty (INVALID_GROUP_ID); the producer's open transaction includes the group's partition of `__consumer_offsets`,
to which version 5 adds it (errors of TransactionCoordinator.admit); then those of `groups.offsets.transactional`. An
error of the whole request is the error of every partition that exists. An offset answered without an error is in
`__consumer_offsets`, as durable as its flush settings demand, and pending until the transaction ends. Source: Kafka's
KafkaApis.handleTxnOffsetCommitRequest, GroupCoordinatorService.commitTransactionalOffsets.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.broker.groups.offsets.checks import AcceptedPartition, accept_partitions, topic_names
from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns_then_deferred
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.protocol.topic_name import OFFSETS_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.groups.coordinator import GroupCoordinator
    from barnabas.broker.handlers.data.produce_admission import Admission, TransactionAdmission
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class TxnOffsetCommitHandler:
    """Serves TxnOffsetCommit."""

    def __init__(
        self, groups: GroupCoordinator, transactions: TransactionAdmission, store: MetadataView, probe: ApiProbe
    ) -> None:
        self._groups = groups
        self._transactions = transactions
        self._store = store
        self._probe = probe

    def __call__(
        self, session: Session, request: TxnOffsetCommitRequest
    ) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse] | Coroutine[Any, Any, TxnOffsetCommitResponse]:
        """Answer one TxnOffsetCommit request as the module docstring specifies."""
        return in_turns_then_deferred(self._serve(session, request))

    async def _serve(
        self, session: Session, request: TxnOffsetCommitRequest
    ) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
        """Check the permissions, in several turns if there are many, and commit in one."""
        api = ApiKey.TXN_OFFSET_COMMIT
        ensure_allowed(session, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id, api)
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, api)
        denied: frozenset[str] = frozenset()
        if session.access is not None:
            names = topic_names(self._store.image, request.topics)
            denied = await denied_in_turns(Turns(), session, Operation.READ, ResourceType.TOPIC, names, api)
        topics, accepted = accept_partitions(self._store.image, request.topics, denied)
        answer: Deferred[TxnOffsetCommitResponse] = Deferred()

        def done(error: BrokerError | None) -> None:
            if error is not None:
                for each in accepted:
                    each.result.error = error.code
            response = TxnOffsetCommitResponse(topics=topics)
            self._count(response)
            answer.resolve(response)

        if not accepted:
            done(None)
        elif not request.group_id:
            done(BrokerError(ErrorCode.INVALID_GROUP_ID, "the group id is empty"))
        else:
            self._commit(request, accepted).then(done)
        return answer

    def _commit(
        self, request: TxnOffsetCommitRequest, accepted: Sequence[AcceptedPartition]
    ) -> Deferred[BrokerError | None]:
        """Admit, check and append; the answer carries the error of the whole request."""
        answer: Deferred[BrokerError | None] = Deferred()
        partition = (OFFSETS_TOPIC, self._groups.offsets_partition_of(request.group_id))
        offsets = self._groups.transactional_offsets

        def ready(error: BrokerError | None) -> None:
            if error is not None:
                answer.resolve(error)
                return
            admission = self._transactions.admit(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                [partition],
                adds=request.adds_offsets,
            )
            if isinstance(admission, Deferred):
                admission.then(admitted)
            else:
                admitted(admission)

        def admitted(refused: Admission) -> None:
            try:
                if partition in refused:
                    raise _as_group_error(refused[partition])
                appended = offsets.commit(request, accepted)
            except BrokerError as error:
                answer.resolve(error)
            else:
                appended.then(answer.resolve)

        offsets.when_ready(request.group_id, ready)
        return answer

    def _count(self, response: TxnOffsetCommitResponse) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                if each.error is not ErrorCode.NONE:
                    self._probe.count_error(each.error.name.lower())


def _as_group_error(code: ErrorCode) -> BrokerError:
    """Return the error of an admission as Kafka's group coordinator answers it."""
    return BrokerError(
        ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code,
        f"the transaction's coordinator refused the group's partition: {code.name}",
    )
