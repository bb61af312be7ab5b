"""A cluster of Kafka brokers: its metadata, the leaders of partitions, the coordinators of groups and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError, RefusedError, reason_of
from barnabas.clients.kafka.connection import KafkaConnection
from barnabas.clients.kafka.nodes import CONTROL, KafkaNodes
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.find_coordinator import FIND_COORDINATOR
from barnabas.protocol.kafka.client.metadata import METADATA
from barnabas.protocol.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.nodes import BrokerAddress, LeaderAndEpoch
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.topic_partition import TopicPartition


class KafkaCluster:
    """Use it in one event loop, and `close` it. Its methods may run concurrently.

    Each request is tried once: callers repeat it. A broker that cannot be reached is tried again after a growing pause.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._nodes = KafkaNodes(config)
        self._leaders: dict[TopicPartition, LeaderAndEpoch] = {}
        self._topic_ids: dict[str, bytes] = {}

    @property
    def node_ids(self) -> Sequence[int]:
        """The brokers of the latest metadata."""
        return tuple(self._nodes.brokers)

    def close(self) -> None:
        """Close every connection; requests in flight fail with ClosedError. Idempotent."""
        self._nodes.close()

    async def connection(self, node_id: int, purpose: str = CONTROL) -> KafkaConnection:
        """Return the open connection to a broker for a purpose. Raises as KafkaNodes.connection does."""
        return await self._nodes.connection(node_id, purpose)

    async def any_connection(self) -> KafkaConnection:
        """Return an open connection to any broker. Raises ClientError."""
        return await self._nodes.any_connection()

    async def ask(self, node_id: int, api: ClientApi, request: Any) -> Any:
        """Send a short request to one broker and return the answer. Raises ClientError."""
        return await (await self._nodes.connection(node_id)).request(api, request)

    async def ask_any(self, api: ClientApi, request: Any) -> Any:
        """Send a short request to any broker and return the answer. Raises ClientError."""
        return await (await self.any_connection()).request(api, request)

    async def metadata(self, topics: Sequence[str] | None) -> MetadataResponse:
        """Request metadata of topics (None: of all, empty: of none), and keep the addresses and leaders of it.

        Raises ClientError; RefusedError for an error of the whole request. Errors of topics are in the answer.
        """
        answer: MetadataResponse = await self.ask_any(METADATA, MetadataRequest.of_names(topics))
        if answer.error is not ErrorCode.NONE:
            raise RefusedError(answer.error, f"metadata: {reason_of(answer.error)}")
        if not answer.brokers:
            raise BrokerConnectionError("metadata: the broker knows no brokers of its cluster")
        self._nodes.update_brokers({each.node_id: Address(each.host, each.port) for each in answer.brokers})
        for topic in answer.topics:
            known_id = self._topic_ids.get(topic.topic_name)
            if topic.error is not ErrorCode.NONE:
                continue
            if known_id is not None and known_id != topic.topic_id:
                self._forget(topic.topic_name)
            self._topic_ids[topic.topic_name] = topic.topic_id
            for each in topic.partitions:
                leader = LeaderAndEpoch(node_id=each.leader, epoch=each.leader_epoch)
                self._note(TopicPartition(topic.topic_name, each.partition), leader)
        return answer

    def leader(self, partition: TopicPartition) -> LeaderAndEpoch | None:
        """Return the leader of a partition, None if the latest metadata has none."""
        found = self._leaders.get(partition)
        return None if found is None or found.node_id < 0 else found

    def note_leader(
        self, partition: TopicPartition, leader: LeaderAndEpoch, endpoints: Iterable[BrokerAddress]
    ) -> bool:
        """Take a new leader from an answer to Fetch, with its address; return whether it is now known.

        An older epoch than the known one changes nothing.
        """
        if leader.node_id < 0:
            return False
        brokers = dict(self._nodes.brokers)
        brokers.update({each.node_id: Address(each.host, each.port) for each in endpoints})
        if leader.node_id not in brokers:
            return False
        known = self._leaders.get(partition)
        if known is not None and leader.epoch <= known.epoch:
            return False
        self._nodes.update_brokers(brokers)
        self._leaders[partition] = leader
        return True

    async def coordinator(self, key: str, key_type: int) -> int:
        """Find the node id of the coordinator of a group or transactional id. Raises ClientError, RefusedError."""
        request = FindCoordinatorRequest.of_key(key, key_type)
        answer: FindCoordinatorResponse = await self.ask_any(FIND_COORDINATOR, request)
        if len(answer.found) != 1:
            raise BrokerConnectionError(f"{key}: the broker names {len(answer.found)} coordinators")
        (found,) = answer.found
        if found.error is not ErrorCode.NONE:
            raise RefusedError(found.error, f"the coordinator of {key}: {found.message or reason_of(found.error)}")
        self._nodes.update_brokers({**self._nodes.brokers, found.node_id: Address(found.host, found.port)})
        return found.node_id

    def _note(self, partition: TopicPartition, leader: LeaderAndEpoch) -> None:
        """Keep a leader, unless the broker's metadata is older than what is known, as in Kafka's clients."""
        known = self._leaders.get(partition)
        if known is None or leader.epoch < 0 or leader.epoch >= known.epoch:
            self._leaders[partition] = leader

    def _forget(self, topic: str) -> None:
        """Drop the leaders of a topic that was deleted and created again: its epochs begin again."""
        for partition in [each for each in self._leaders if each.topic == topic]:
            del self._leaders[partition]
