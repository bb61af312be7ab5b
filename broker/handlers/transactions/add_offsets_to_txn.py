"""AddOffsetsToTxn (key 25): adds the group's partition of `__consumer_offsets` to a transaction.

The client may WRITE the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED) and READ the group
(GROUP_AUTHORIZATION_FAILED). The other checks and codes are those of AddPartitionsToTxn, for this one partition.
Differs from Kafka: that partition need not exist yet, because the topic is created when the group's first offset is
committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.handlers.transactions.counting import counted
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.transactions.checks import ProducerIdAndEpoch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.topic_name import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.transactions.coordinator import TransactionCoordinator


class AddOffsetsToTxnHandler:
    """Serves AddOffsetsToTxn."""

    def __init__(
        self, transactions: TransactionCoordinator, offsets_partition_of: Callable[[str], int], probe: ApiProbe
    ) -> None:
        self._transactions = transactions
        self._offsets_partition_of = offsets_partition_of
        self._probe = probe

    def __call__(
        self, session: Session, request: AddOffsetsToTxnRequest
    ) -> AddOffsetsToTxnResponse | Deferred[AddOffsetsToTxnResponse]:
        """Answer one AddOffsetsToTxn request as the module docstring specifies."""
        api = ApiKey.ADD_OFFSETS_TO_TXN
        ensure_allowed(session, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id, api)
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, api)
        answer: Deferred[AddOffsetsToTxnResponse] = Deferred()
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        partition = (OFFSETS_TOPIC, self._offsets_partition_of(request.group_id))
        self._transactions.add_partitions(request.transactional_id, producer, [partition], version=0).then(
            lambda error: answer.resolve(AddOffsetsToTxnResponse(error=ErrorCode.NONE if error is None else error.code))
        )
        return counted(answer, self._probe)
