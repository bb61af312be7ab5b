"""OffsetForLeaderEpoch (23), versions 2-4: where a leader epoch ends."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import INT32, INT64, STRING, Array, Constant, Message, Struct, rows, since
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    EpochPartitionResult,
    EpochTopicResult,
    OffsetForLeaderEpochResponse,
)

_REQUESTED: Final = Struct(partition=INT32, current_leader_epoch=INT32, leader_epoch=INT32)
_RESULT: Final = Struct(EpochPartitionResult, error=ERROR, partition=INT32, leader_epoch=INT32, end_offset=INT64)
OFFSET_FOR_LEADER_EPOCH: Final = ClientApi(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    2,
    4,
    Message(
        4,
        _replica_id=since(3, Constant(INT32, -1)),
        topics=rows(name=STRING, partitions=Array(_REQUESTED)),
    ),
    Message(
        4,
        OffsetForLeaderEpochResponse,
        _throttle_ms=INT32,
        topics=rows(EpochTopicResult, name=STRING, partitions=Array(_RESULT)),
    ),
)
"""Writes an OffsetForLeaderEpochRequest, reads an OffsetForLeaderEpochResponse."""
