"""ListPartitionReassignments (key 46): always empty, because a single node has nothing to reassign.

CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE the cluster. As in Kafka, a move between log directories is
not a reassignment: DescribeLogDirs lists those. Log directories in which Kafka left a reassignment are refused at
start, since it names other nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.topics.partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session


def list_partition_reassignments(
    session: Session, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Serves ListPartitionReassignments."""
    ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.LIST_PARTITION_REASSIGNMENTS)
    return ListPartitionReassignmentsResponse()
