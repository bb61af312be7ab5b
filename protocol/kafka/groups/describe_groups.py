"""DescribeGroups (15)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.describe_groups import DescribeGroupsRequest

decode_request, encode_response, encode_error = served(DescribeGroupsRequest)
