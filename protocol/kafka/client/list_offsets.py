"""ListOffsets (2), versions 1-11: the first and last offset of a log, and the offset of a timestamp."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LIST_OFFSETS: Final = ClientApi(ApiKey.LIST_OFFSETS, 1, 11, ListOffsetsRequest, ListOffsetsResponse)
