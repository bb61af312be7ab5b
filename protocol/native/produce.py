"""produce (0): one record batch for each of several partitions; the batches follow the header in that order.

request   acks 0, 1 or -1 (0 has no answer), timeout_ms int, topics [[name, [[partition, size]]]],
          transactional_id str or nil (or left out): the partitions become part of its transaction
response  topics [[name, [[partition, error, message, base_offset, log_append_time_ms, log_start_offset]]]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.data.produce import (
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResult,
)
from barnabas.protocol.native.fields import (
    INT16,
    INT32,
    INT64,
    array,
    error_code,
    field,
    integer,
    long_text,
    optional_text,
    row,
    text,
    topics_of,
)

DEFAULT_TIMEOUT_MS = 30_000

INT32_MAX = INT32[1]


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


def decode_request(body: dict[str, Any], records: memoryview) -> ProduceRequest:
    """Decode a request; each partition's `records` is its slice of `records`. Raises DecodeError, naming the field."""
    position = 0
    end = len(records)
    topics: list[ProduceTopic] = []
    for topic in array(field(body, "topics"), "topics"):
        name, entries = row(topic, "topics[]", 2)
        partitions: list[ProducePartition] = []
        for entry in array(entries, "partitions"):
            partition, size = row(entry, "partitions[]", 2)
            if not (type(size) is int and type(partition) is int and 0 <= size <= end and 0 <= partition <= INT32_MAX):
                # The slow checks raise an error that names the fault; a negative partition is just unknown.
                integer(size, "size", (0, INT32_MAX))
                integer(partition, "partition", INT32)
            following = position + size
            if following > end:
                raise DecodeError(f"the sizes add up to more than the {end} bytes of records in the frame")
            partitions.append(ProducePartition(partition, records[position:following]))
            position = following
        topics.append(ProduceTopic(name=name if type(name) is str else text(name, "name"), partitions=partitions))
    if position != end:
        raise DecodeError(f"the sizes add up to {position}, but {end} bytes of records follow the header")
    return ProduceRequest(
        acks=integer(field(body, "acks"), "acks", INT16),
        timeout_ms=integer(field(body, "timeout_ms", DEFAULT_TIMEOUT_MS), "timeout_ms", INT32),
        topics=topics,
        transactional_id=optional_text(field(body, "transactional_id", None), "transactional_id"),
    )


def encode_response(response: ProduceResponse) -> dict[str, Any]:
    """The body of an answer."""
    # Loops, not nested comprehensions: each of those is a function call, and this runs once per request.
    topics: list[Any] = []
    for topic in response.topics:
        partitions: list[Any] = []
        for p in topic.partitions:
            partitions.append(  # noqa: PERF401 - see above
                [p.partition, p.error, p.message, p.base_offset, p.log_append_time_ms, p.log_start_offset]
            )
        topics.append([topic.name, partitions])
    return {"topics": topics}


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
