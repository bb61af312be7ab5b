"""DescribeTopicPartitions (75)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest

decode_request, encode_response, encode_error = served(DescribeTopicPartitionsRequest)
