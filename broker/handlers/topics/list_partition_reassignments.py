"""ListPartitionReassignments (key 46): nothing moves between nodes, because there is one.

A move between log directories is no reassignment, in Kafka neither: DescribeLogDirs tells of those. A directory in
which Kafka left a reassignment is refused at the start, since it names other nodes.
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
