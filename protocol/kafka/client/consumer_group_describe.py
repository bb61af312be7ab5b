"""ConsumerGroupDescribe (69), versions 0-1: groups of the consumer protocol with their members."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

CONSUMER_GROUP_DESCRIBE: Final = ClientApi(
    ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
)
