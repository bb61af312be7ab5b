"""ElectLeaders (key 43): never changes a leader, because each partition has one replica.

CLUSTER_AUTHORIZATION_FAILED if the client may not ALTER the cluster. A served partition needs no election
(ELECTION_NOT_NEEDED) of either type. One whose log directory is offline has no other replica:
PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE, by the election type. An unknown partition is
UNKNOWN_TOPIC_OR_PARTITION. A request for all partitions is answered, as in Kafka, with a row for every topic that lists
only the partitions without a leader. INVALID_REQUEST for an unknown election type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.topics.elect_leaders import (
    PREFERRED,
    UNCLEAN,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe

_NO_LEADER: Final = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


class ElectLeadersHandler:
    """Serves ElectLeaders."""

    def __init__(self, store: MetadataView, partitions: PartitionRegistry, probe: ApiProbe) -> None:
        self._store = store
        self._partitions = partitions
        self._probe = probe

    def __call__(
        self, session: Session, request: ElectLeadersRequest
    ) -> ElectLeadersResponse | Coroutine[Any, Any, ElectLeadersResponse]:
        """Answer one ElectLeaders request as the module docstring specifies; of many partitions in several turns."""
        return in_turns(self._elect_all(session, request))

    async def _elect_all(self, session: Session, request: ElectLeadersRequest) -> ElectLeadersResponse:
        turns = Turns()
        ensure_cluster_allowed(session, Operation.ALTER, ApiKey.ELECT_LEADERS)
        no_leader = _NO_LEADER.get(request.election_type)
        if no_leader is None and (request.topics is None or request.topics):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        named = request.topics
        if named is not None:
            rows = []
            for asked in named:
                results = []
                for number in asked.partitions:
                    if turns.is_over:
                        await turns.next()
                    results.append(self._elect(asked.name, number, no_leader))
                rows.append(ElectLeadersTopicResult(name=asked.name, partitions=results))
            return ElectLeadersResponse(topics=rows)
        rows = []
        for name, topic in self._store.image.topics.items():
            if turns.is_over:
                await turns.next()
            results = [self._elect(name, number, no_leader) for number in topic.partitions]
            rows.append(
                ElectLeadersTopicResult(
                    name=name, partitions=[each for each in results if each.error != ErrorCode.ELECTION_NOT_NEEDED]
                )
            )
        return ElectLeadersResponse(topics=rows)

    def _elect(self, topic: str, number: int, no_leader: ErrorCode | None) -> ElectLeadersPartitionResult:
        assert no_leader is not None
        if self._store.image.partition(topic, number) is None:
            self._probe.count_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name.lower())
            is_here = topic in self._store.image.topics
            message = f"No such partition as {topic}-{number}" if is_here else f"No such topic as {printable(topic)}"
            return ElectLeadersPartitionResult(
                partition=number, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message
            )
        partition = self._partitions.get(topic, number)
        if partition is None or not partition.is_available:
            self._probe.count_error(no_leader.name.lower())
            return ElectLeadersPartitionResult(
                partition=number, error=no_leader, message="its log directory is offline"
            )
        return ElectLeadersPartitionResult(partition=number, error=ErrorCode.ELECTION_NOT_NEEDED)
