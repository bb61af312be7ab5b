"""ListOffsets (2), versions 1-11: the first and last offset of a log, and the offset of a timestamp."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import INT8, INT32, INT64, STRING, Array, Constant, Message, Struct, rows, since
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.list_offsets import (
    ListOffsetsPartitionResult,
    ListOffsetsResponse,
    ListOffsetsTopicResult,
)

_REMOTE_TIMEOUT_MS: Final = 30_000
"""How long the broker may look into remote storage, as in Kafka's clients."""

_REQUESTED: Final = Struct(partition=INT32, current_leader_epoch=since(4, INT32), timestamp=INT64)
_RESULT: Final = Struct(
    ListOffsetsPartitionResult,
    partition=INT32,
    error=ERROR,
    timestamp=INT64,
    offset=INT64,
    leader_epoch=since(4, INT32),
)
LIST_OFFSETS: Final = ClientApi(
    ApiKey.LIST_OFFSETS,
    1,
    11,
    Message(
        6,
        _replica_id=Constant(INT32, -1),
        isolation=since(2, INT8),
        topics=rows(name=STRING, partitions=Array(_REQUESTED)),
        _timeout_ms=since(10, Constant(INT32, _REMOTE_TIMEOUT_MS)),
    ),
    Message(
        6,
        ListOffsetsResponse,
        _throttle_ms=since(2, INT32),
        topics=rows(ListOffsetsTopicResult, name=STRING, partitions=Array(_RESULT)),
    ),
)
"""Writes a ListOffsetsRequest, reads a ListOffsetsResponse."""
