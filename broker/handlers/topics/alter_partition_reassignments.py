"""AlterPartitionReassignments (key 45): changes nothing, because this node is the only one and has every replica.

CLUSTER_AUTHORIZATION_FAILED if the client may not ALTER the cluster. A partition that shall be where it is, on this
node alone, succeeds; other replicas are refused with INVALID_REPLICA_ASSIGNMENT, and a cancellation with
NO_REASSIGNMENT_IN_PROGRESS, both in Kafka's words. An unknown partition is UNKNOWN_TOPIC_OR_PARTITION. Source: Kafka's
ReplicationControlManager (alterPartitionReassignments).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.metadata.assignments import ensure_assignment
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.topics.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignedPartition,
    ReassignedPartitionResult,
    ReassignedTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class AlterPartitionReassignmentsHandler:
    """Serves AlterPartitionReassignments."""

    def __init__(self, store: MetadataView, probe: ApiProbe) -> None:
        self._store = store
        self._probe = probe

    def __call__(
        self, session: Session, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse | Coroutine[Any, Any, AlterPartitionReassignmentsResponse]:
        """Answer one request as the module docstring specifies; of many partitions in several turns."""
        return in_turns(self._reassign_all(session, request))

    async def _reassign_all(
        self, session: Session, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        ensure_cluster_allowed(session, Operation.ALTER, ApiKey.ALTER_PARTITION_REASSIGNMENTS)
        turns = Turns()
        topics = []
        for topic in request.topics:
            results = []
            for wanted in topic.partitions:
                if turns.is_over:
                    await turns.next()
                results.append(self._reassign(topic.name, wanted))
            topics.append(ReassignedTopicResult(name=topic.name, partitions=results))
        return AlterPartitionReassignmentsResponse(topics=topics, allows_other_factor=request.allows_other_factor)

    def _reassign(self, topic: str, wanted: ReassignedPartition) -> ReassignedPartitionResult:
        try:
            self._ensure_nothing_to_do(topic, wanted)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return ReassignedPartitionResult(partition=wanted.partition, error=error.code, message=error.message)
        return ReassignedPartitionResult(partition=wanted.partition, error=ErrorCode.NONE)

    def _ensure_nothing_to_do(self, topic: str, wanted: ReassignedPartition) -> None:
        image = self._store.image
        if topic not in image.topics:
            message = f"Unable to find a topic named {printable(topic)}."
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        if image.partition(topic, wanted.partition) is None:
            message = f"Unable to find partition {topic}:{wanted.partition}."
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        if wanted.replicas is None:
            message = "No partition reassignment is in progress."
            raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
        ensure_assignment(wanted.replicas, self._store.node_id)
