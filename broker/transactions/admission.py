"""Error codes of a partition that a transaction's coordinator does not admit, as Kafka answers them to producers.

Kafka's partition leader asks the coordinator by AddPartitionsToTxn, and translates its answer. Source: Kafka's
AddPartitionsToTxnManager, ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode

_AS_NOT_ENOUGH_REPLICAS: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Errors that every producer has to retry without a look at the metadata."""


def partition_code(code: ErrorCode) -> ErrorCode:
    """Return the code of a partition for a code of the coordinator: producers know PRODUCER_FENCED by another name."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


def produce_code(code: ErrorCode, *, adds: bool) -> ErrorCode:
    """Return the code that Produce answers. `adds`: the request adds partitions, from its version 12 on.

    TRANSACTION_ABORTABLE is left as it is; the codec of a version before 11 answers INVALID_TXN_STATE instead.
    """
    if code in _AS_NOT_ENOUGH_REPLICAS or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return partition_code(code)
