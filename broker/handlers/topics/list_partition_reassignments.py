"""ListPartitionReassignments (key 46): always empty, because a single node has nothing to reassign.

As in Kafka, a move between log directories is not a reassignment: DescribeLogDirs lists those. Log directories in which
Kafka left a reassignment are refused at start, since it names other nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session


def list_partition_reassignments(
    session: Session, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Serves ListPartitionReassignments."""
    return ListPartitionReassignmentsResponse()
