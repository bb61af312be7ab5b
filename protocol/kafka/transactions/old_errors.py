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
