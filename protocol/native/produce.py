"""produce (0): one record batch for each of several partitions; the batches follow the header in that order.

request   acks 0, 1 or -1 (0 has no answer), timeout_ms int, topics [[name, [[partition, size]]]],
          transactional_id str or nil (or left out): the partitions become part of its transaction
response  topics [[name, [[partition, error, message, base_offset, log_append_time_ms, log_start_offset]]]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.data.produce import (
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResult,
)
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    error_code,
    field,
    integer,
    long_text,
    row,
    topics_of,
)


def encode_request(request: ProduceRequest) -> dict[str, Any]:
    """The body of a request; the batches are sent after it, in the order of the arrays."""
    body = {
        "acks": request.acks,
        "timeout_ms": request.timeout_ms,
        "topics": [[topic.name, [[p.partition, len(p.batch)] for p in topic.partitions]] for topic in request.topics],
    }
    if request.transactional_id is not None:
        body["transactional_id"] = request.transactional_id
    return body


def decode_response(body: dict[str, Any]) -> ProduceResponse:
    """Raises DecodeError, naming the field."""
    return ProduceResponse(topics=topics_of(field(body, "topics"), _topic, _result))


def _topic(name: str, partitions: list[ProducePartitionResult]) -> ProduceTopicResult:
    return ProduceTopicResult(name=name, partitions=partitions)


def _result(entry: Any) -> ProducePartitionResult:
    partition, error, message, base_offset, log_append_time_ms, log_start_offset = row(entry, "partitions[]", 6)
    return ProducePartitionResult(
        integer(partition, "partition", INT32),
        error_code(error, "error"),
        message=long_text(message, "message"),
        base_offset=integer(base_offset, "base_offset", INT64),
        log_append_time_ms=integer(log_append_time_ms, "log_append_time_ms", INT64),
        log_start_offset=integer(log_start_offset, "log_start_offset", INT64),
    )
