"""ShareGroupDescribe (77), version 1, and DescribeShareGroupOffsets (90), versions 0-1."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.protocol.messages.groups.share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

SHARE_GROUP_DESCRIBE: Final = ClientApi(
    ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, ShareGroupDescribeRequest, ShareGroupDescribeResponse
)
DESCRIBE_SHARE_GROUP_OFFSETS: Final = ClientApi(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
)
