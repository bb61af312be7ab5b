"""StreamsGroupDescribe (89), version 0: streams groups with their topology, and the members' tasks."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

STREAMS_GROUP_DESCRIBE: Final = ClientApi(
    ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
)
