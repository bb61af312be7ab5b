"""DescribeQuorum (55)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.describe_quorum import DescribeQuorumRequest

decode_request, encode_response, encode_error = served(DescribeQuorumRequest)
