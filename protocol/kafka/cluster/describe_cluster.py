"""DescribeCluster (60)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.describe_cluster import DescribeClusterRequest

decode_request, encode_response, encode_error = served(DescribeClusterRequest)
