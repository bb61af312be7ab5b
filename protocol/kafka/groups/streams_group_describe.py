"""StreamsGroupDescribe (89)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.streams_group_describe import StreamsGroupDescribeRequest

decode_request, encode_response, encode_error = served(StreamsGroupDescribeRequest)
