"""DescribeGroups (15), versions 0-6: classic groups with their members."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

DESCRIBE_GROUPS: Final = ClientApi(ApiKey.DESCRIBE_GROUPS, 0, 6, DescribeGroupsRequest, DescribeGroupsResponse)
