"""DescribeConfigs (32), with the layer that sets each property, and DescribeCluster (60)."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.protocol.messages.cluster.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

TOPIC_LAYER: Final = 1
"""Source of a value that is set on the topic itself."""

DESCRIBE_CONFIGS: Final = ClientApi(ApiKey.DESCRIBE_CONFIGS, 1, 4, DescribeConfigsRequest, DescribeConfigsResponse)
DESCRIBE_CLUSTER: Final = ClientApi(ApiKey.DESCRIBE_CLUSTER, 0, 2, DescribeClusterRequest, DescribeClusterResponse)
