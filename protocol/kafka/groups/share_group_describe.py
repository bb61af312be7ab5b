"""ShareGroupDescribe (77)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.share_group_describe import ShareGroupDescribeRequest

decode_request, encode_response, encode_error = served(ShareGroupDescribeRequest)
