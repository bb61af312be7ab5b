"""ConsumerGroupDescribe (69)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest

decode_request, encode_response, encode_error = served(ConsumerGroupDescribeRequest)
