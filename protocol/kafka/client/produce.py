"""Produce (0), versions 3-9: a batch for one or more partitions."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Array,
    Constant,
    Message,
    Records,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProducePartitionResult, ProduceResponse, ProduceTopicResult

_RECORD_ERROR: Final = Struct(dict, batch_index=INT32, message=NULLABLE_STRING)


PRODUCE: Final = ClientApi(
    ApiKey.PRODUCE,
    3,
    9,
    Message(
        9,
        _transactional_id=Constant(NULLABLE_STRING, None),
        acks=INT16,
        timeout_ms=INT32,
        topics=rows(name=STRING, partitions=rows(partition=INT32, records=Records())),
    ),
    Message(
        9,
        ProduceResponse,
        topics=rows(
            ProduceTopicResult,
            name=STRING,
            partitions=rows(
                ProducePartitionResult,
                partition=INT32,
                error=ERROR,
                base_offset=INT64,
                log_append_time_ms=INT64,
                log_start_offset=since(5, INT64),
                _record_errors=since(8, Array(_RECORD_ERROR)),
                message=since(8, NULLABLE_STRING),
            ),
        ),
        _throttle_ms=INT32,
    ),
)
"""Writes a ProduceRequest, reads a ProduceResponse."""
