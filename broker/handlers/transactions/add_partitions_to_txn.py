"""AddPartitionsToTxn (key 24): partitions that a transaction is about to write, or that are verified to belong to it.

Version 4 and later are sent by brokers: CLUSTER_AUTHORIZATION_FAILED for the whole request without CLUSTER_ACTION on
the cluster. Order of checks for each transaction: the client may WRITE the transactional id
(TRANSACTIONAL_ID_AUTHORIZATION_FAILED for all partitions); it may WRITE the topics, of which none is internal
(TOPIC_AUTHORIZATION_FAILED); all partitions exist (UNKNOWN_TOPIC_OR_PARTITION) and none is mirrored (POLICY_VIOLATION;
each of these failures is OPERATION_NOT_ATTEMPTED for the transaction's other partitions); the transactional id is not
empty (INVALID_REQUEST); its partition is loaded (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE); the last
transaction's end is complete (CONCURRENT_TRANSACTIONS); the id and its producer id are known
(INVALID_PRODUCER_ID_MAPPING); the epoch is current (PRODUCER_FENCED). A partition that is verified and not part of the
transaction gets TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import ensure_cluster_allowed, is_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns_then_deferred
from barnabas.broker.metadata.mirrors.refusals import read_only_mirror
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.transactions.checks import ProducerIdAndEpoch
from barnabas.broker.transactions.metadata import EPOCH_PER_TRANSACTION, PartitionKey
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnPartitionResult,
    TxnPartitions,
    TxnResult,
    TxnTopicResult,
)
from barnabas.protocol.topic_name import is_internal

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.transactions.coordinator import TransactionCoordinator


class AddPartitionsToTxnHandler:
    """Serves AddPartitionsToTxn."""

    def __init__(self, transactions: TransactionCoordinator, store: MetadataView, probe: ApiProbe) -> None:
        self._transactions = transactions
        self._store = store
        self._probe = probe

    def __call__(
        self, session: Session, request: AddPartitionsToTxnRequest
    ) -> (
        AddPartitionsToTxnResponse
        | Deferred[AddPartitionsToTxnResponse]
        | Coroutine[Any, Any, AddPartitionsToTxnResponse]
    ):
        """Answer one AddPartitionsToTxn request as the module docstring specifies.

        Permissions on many topics are checked in several turns, as are many transactions; one is changed in one turn.
        """
        return in_turns_then_deferred(self._serve_all(session, request))

    async def _serve_all(
        self, session: Session, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse | Deferred[AddPartitionsToTxnResponse]:
        turns = Turns()
        if request.is_batched:
            ensure_cluster_allowed(session, Operation.CLUSTER_ACTION, ApiKey.ADD_PARTITIONS_TO_TXN)
        answer: Deferred[AddPartitionsToTxnResponse] = Deferred()
        asked = request.asked
        results: list[TxnResult | None] = [None] * len(asked)
        left = len(results) + 1

        def ended(position: int, result: TxnResult | None) -> None:
            nonlocal left
            if result is not None:
                results[position] = result
                self._count(result)
            left -= 1
            if left == 0:
                answer.resolve(request.answered([each for each in results if each is not None]))

        for position, transaction in enumerate(asked):
            if position > 0 and turns.is_over:
                await turns.next()
            served = await self._serve(turns, session, transaction, is_batched=request.is_batched)
            served.then(
                lambda result, position=position: ended(position, result)  # type: ignore[misc]
            )
        ended(-1, None)
        return answer

    async def _serve(
        self, turns: Turns, session: Session, transaction: TxnPartitions, *, is_batched: bool
    ) -> Deferred[TxnResult]:
        answer: Deferred[TxnResult] = Deferred()
        partitions = [(topic.name, number) for topic in transaction.topics for number in topic.partitions]
        denied: frozenset[str] = frozenset()
        if not is_batched:
            api, kind = ApiKey.ADD_PARTITIONS_TO_TXN, ResourceType.TRANSACTIONAL_ID
            if not is_allowed(session, Operation.WRITE, kind, transaction.transactional_id, api):
                answer.resolve(transaction.refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
                return answer
            denied = await _denied_topics(turns, session, transaction)
        failed = self._refused(transaction, denied)
        if failed:
            answer.resolve(_results(transaction, failed, others=ErrorCode.OPERATION_NOT_ATTEMPTED))
            return answer
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        if transaction.verify_only:
            answer.resolve(self._verify(transaction, producer, partitions))
            return answer
        version = EPOCH_PER_TRANSACTION if is_batched else 0
        self._transactions.add_partitions(transaction.transactional_id, producer, partitions, version=version).then(
            lambda error: answer.resolve(transaction.refused(ErrorCode.NONE if error is None else error.code))
        )
        return answer

    def _verify(
        self, transaction: TxnPartitions, producer: ProducerIdAndEpoch, partitions: list[PartitionKey]
    ) -> TxnResult:
        try:
            missing = self._transactions.missing_partitions(transaction.transactional_id, producer, partitions)
        except BrokerError as error:
            return transaction.refused(error.code)
        return _results(transaction, dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE), others=ErrorCode.NONE)

    def _count(self, result: TxnResult) -> None:
        errors = Counter(each.error for topic in result.topics for each in topic.partitions)
        for error, times in errors.items():
            if error is not ErrorCode.NONE:
                self._probe.count_error(error.name.lower(), times)

    def _refused(self, transaction: TxnPartitions, denied: frozenset[str]) -> dict[PartitionKey, ErrorCode]:
        """Return the code of each partition that the transaction cannot write."""
        image = self._store.image
        failed: dict[PartitionKey, ErrorCode] = {}
        for asked in transaction.topics:
            name, numbers = asked.name, asked.partitions
            topic = image.topics.get(name)
            if name in denied:
                failed.update(((name, number), ErrorCode.TOPIC_AUTHORIZATION_FAILED) for number in numbers)
            elif topic is None:
                failed.update(((name, number), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for number in numbers)
            else:
                if read_only_mirror(image, name):
                    failed.update(((name, number), ErrorCode.POLICY_VIOLATION) for number in numbers)
                unknown = set(numbers).difference(topic.partitions)
                failed.update(((name, number), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for number in unknown)
        return failed


async def _denied_topics(turns: Turns, session: Session, transaction: TxnPartitions) -> frozenset[str]:
    """Return the topics that the client may not write: internal ones too, as in Kafka, also without an authorizer."""
    names = {topic.name for topic in transaction.topics}
    internal = {name for name in names if is_internal(name)}
    api = ApiKey.ADD_PARTITIONS_TO_TXN
    plain = sorted(names - internal)
    return await denied_in_turns(turns, session, Operation.WRITE, ResourceType.TOPIC, plain, api) | internal


def _results(transaction: TxnPartitions, failed: Mapping[PartitionKey, ErrorCode], *, others: ErrorCode) -> TxnResult:
    """Return a result with the codes of `failed` partitions, and `others` for the rest."""
    return TxnResult(
        transactional_id=transaction.transactional_id,
        topics=[
            TxnTopicResult(
                name=topic.name,
                partitions=[
                    TxnPartitionResult(partition=number, error=failed.get((topic.name, number), others))
                    for number in topic.partitions
                ],
            )
            for topic in transaction.topics
        ],
    )
