"""OffsetForLeaderEpoch (key 23): the largest leader epoch not above the requested one, and its end offset.

The current epoch ends at the log end offset. An epoch above it, or below all epochs of the log, is answered -1 and -1.
Errors per partition: TOPIC_AUTHORIZATION_FAILED if the client may neither DESCRIBE the topic nor do CLUSTER_ACTION on
the cluster; UNKNOWN_TOPIC_OR_PARTITION, and FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH if the client's
current epoch is another. Source: Kafka ReplicaManager.lastOffsetForLeaderEpoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import denial, is_cluster_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    EpochPartition,
    EpochPartitionResult,
    EpochTopicResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe


class OffsetForLeaderEpochHandler:
    """Serves OffsetForLeaderEpoch."""

    def __init__(self, partitions: PartitionRegistry, probe: ApiProbe) -> None:
        self._partitions = partitions
        self._probe = probe

    def __call__(
        self, session: Session, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse | Coroutine[Any, Any, OffsetForLeaderEpochResponse]:
        """Answer one OffsetForLeaderEpoch request as the module docstring specifies; many partitions in turns."""
        return in_turns(self._look_up_all(session, request))

    async def _look_up_all(
        self, session: Session, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        turns = Turns()
        api = ApiKey.OFFSET_FOR_LEADER_EPOCH
        denied: frozenset[str] = frozenset()
        if not is_cluster_allowed(session, Operation.CLUSTER_ACTION, api, log_denied=False):
            names = (topic.name for topic in request.topics)
            denied = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, api)
        topics = []
        for topic in request.topics:
            results = []
            for entry in topic.partitions:
                if turns.is_over:
                    await turns.next()
                results.append(self._look_up(topic.name, entry, is_denied=topic.name in denied))
            topics.append(EpochTopicResult(name=topic.name, partitions=results))
        return OffsetForLeaderEpochResponse(topics=topics)

    def _look_up(self, topic: str, entry: EpochPartition, *, is_denied: bool) -> EpochPartitionResult:
        try:
            if is_denied:
                raise denial(ResourceType.TOPIC)
            partition = self._partitions.get(topic, entry.partition)
            if partition is None:
                raise self._partitions.refusal(topic, entry.partition)
            partition.ensure_current_epoch(entry.current_leader_epoch)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            return EpochPartitionResult(partition=entry.partition, error=error.code)
        found = partition.log.end_offset_for_epoch(entry.leader_epoch)
        if found is None:
            return EpochPartitionResult(partition=entry.partition)
        return EpochPartitionResult(partition=entry.partition, leader_epoch=found.epoch, end_offset=found.start_offset)
