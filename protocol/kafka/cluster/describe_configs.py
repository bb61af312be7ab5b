"""DescribeConfigs (32)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.configs import DescribeConfigsRequest

decode_request, encode_response, encode_error = served(DescribeConfigsRequest)
