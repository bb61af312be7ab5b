"""OffsetForLeaderEpoch (23), versions 2-4: where a leader epoch ends."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

OFFSET_FOR_LEADER_EPOCH: Final = ClientApi(
    ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
)
