"""DescribeProducers (61)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.data.describe_producers import DescribeProducersRequest

decode_request, encode_response, encode_error = served(DescribeProducersRequest)
