"""Error codes that clients of old versions do not know, replaced as Kafka's KafkaApis does."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, Computed


def _error_without_fencing(result: Any) -> ErrorCode:
    error: ErrorCode = result.error
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error


ERROR_WITHOUT_FENCING: Final = Computed(INT16, _error_without_fencing)
"""A result's `error`, INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED."""


def _error_without_abortable(result: Any) -> ErrorCode:
    error: ErrorCode = result.error
    return ErrorCode.INVALID_TXN_STATE if error is ErrorCode.TRANSACTION_ABORTABLE else error


ERROR_WITHOUT_ABORTABLE: Final = Computed(INT16, _error_without_abortable)
"""A result's `error`, INVALID_TXN_STATE instead of TRANSACTION_ABORTABLE (KIP-890)."""


def _error_without_loading(result: Any) -> ErrorCode:
    error = _error_without_abortable(result)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error


ERROR_WITHOUT_LOADING: Final = Computed(INT16, _error_without_loading)
"""As ERROR_WITHOUT_ABORTABLE, and COORDINATOR_NOT_AVAILABLE instead of COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
