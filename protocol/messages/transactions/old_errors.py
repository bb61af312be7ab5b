"""Error codes that clients of old versions do not know, replaced as Kafka's KafkaApis does."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode

FENCED_FROM: Final = 2
"""The version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn that brought PRODUCER_FENCED."""


def without_fencing(error: ErrorCode) -> ErrorCode:
    """Return INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error


def without_abortable(error: ErrorCode) -> ErrorCode:
    """Return INVALID_TXN_STATE instead of TRANSACTION_ABORTABLE (KIP-890)."""
    return ErrorCode.INVALID_TXN_STATE if error is ErrorCode.TRANSACTION_ABORTABLE else error


def without_loading(error: ErrorCode) -> ErrorCode:
    """Return COORDINATOR_NOT_AVAILABLE instead of COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error
