"""AlterPartitionReassignments (45)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.partition_reassignments import AlterPartitionReassignmentsRequest

decode_request, encode_response, encode_error = served(AlterPartitionReassignmentsRequest)
