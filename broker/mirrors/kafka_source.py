"""The source cluster through Kafka's protocol: any broker of Kafka's, ours, or a compatible service."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from barnabas.broker.mirrors.partition_copier import EpochEnd, FetchedPartition
from barnabas.broker.mirrors.source import (
    FetchFrom,
    OffsetRange,
    SourceMetadata,
    SourcePartition,
    SourceTopic,
)
from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.fetch_session import FetchSession, WantedPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import (
    TOPIC_LAYER,
    TOPIC_RESOURCE,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.data.fetch import (
    COMPARING_REPLICA_ID,
    NO_REPLICA,
    READ_UNCOMMITTED,
    REPLICA_IDS_UNTIL,
    SESSIONS_FROM,
    TOPIC_IDS_FROM,
    FetchPartitionResult,
    FetchResponse,
)
from barnabas.protocol.messages.data.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    REMOTE_TIMEOUT_MS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    CONSUMER_REPLICA_ID,
    EpochPartition,
    EpochTopic,
    OffsetForLeaderEpochRequest,
)
from barnabas.protocol.messages.topics.metadata import PartitionMetadata
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import ZERO_UUID

_FETCH_PURPOSE: Final = "fetch"
_MIN_BYTES: Final = 1
_CONFIGS_AT_ONCE: Final = 200
"""Topics of one DescribeConfigs request: an answer has some forty properties of each."""

_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class KafkaSourceNode:
    """A connection to one broker of the source, with its fetch session."""

    def __init__(self, cluster: Cluster, node_id: int, connection: Connection, replica_id: int = NO_REPLICA) -> None:
        """`replica_id`: that of a follower, which fetches with the right of CLUSTER_ACTION."""
        self._cluster = cluster
        self._node_id = node_id
        self._connection = connection
        self._replica_id = replica_id
        self._session = FetchSession()
        self._is_refused = False
        """Whether the last request was refused because of its session."""

    async def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait_ms: int,
        max_bytes: int,
        compares: bool = False,
    ) -> Mapping[TopicPartition, FetchedPartition]:
        """Fetch from several partitions; wait up to `max_wait_ms` for a first byte.

        `compares`: the offsets do not say what a standby has. Partitions without news may be left out of the answer.
        Raises ClientError.
        """
        has_ids = all(each.topic_id for each in partitions.values())
        highest = None if has_ids else TOPIC_IDS_FROM - 1
        replica_id = self._replica_id
        if replica_id != NO_REPLICA:
            replica_id = COMPARING_REPLICA_ID if compares else replica_id
            highest = min(highest or REPLICA_IDS_UNTIL, REPLICA_IDS_UNTIL)
        connection = self._connection
        wanted = {
            key: WantedPartition(
                each.topic_id or ZERO_UUID, each.offset, each.max_bytes, each.leader_epoch, each.last_fetched_epoch
            )
            for key, each in partitions.items()
        }
        session = self._session
        if (connection.version_of(ApiKey.FETCH, highest) or 0) < SESSIONS_FROM:
            session.lost()
        query = session.next_query(
            wanted, max_wait_ms=max_wait_ms, min_bytes=_MIN_BYTES, max_bytes=max_bytes, replica_id=replica_id
        )
        try:
            answer: FetchResponse = await connection.request(query, highest=highest)
        except BaseException:
            session.lost()
            raise
        was_refused, self._is_refused = self._is_refused, not session.accepted(answer)
        if self._is_refused:
            if answer.error in _SESSION_ERRORS and not was_refused:
                return {}  # the next request is a full one
            raise RefusedError(answer.error, f"{connection.address}: fetch: {reason_of(answer.error)}")
        names = {each.topic_id: key.topic for key, each in wanted.items()}
        found = {}
        for topic in answer.topics:
            for each in topic.partitions:
                key = TopicPartition(topic.name or names.get(topic.topic_id, ""), each.partition)
                found[key] = _fetched(each)
                if each.current_leader is not None:
                    self._cluster.note_leader(key, each.current_leader, answer.endpoints)
        return found

    async def offset_ranges(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        """Return the first and the end offset of partitions. Raises ClientError."""
        first = await self._offsets(partitions, EARLIEST_TIMESTAMP)
        end = await self._offsets(partitions, LATEST_TIMESTAMP)
        found = {}
        for key in partitions:
            error = first[key].error or end[key].error
            found[key] = OffsetRange(ErrorCode(error), first[key].start, end[key].start)
        return found

    async def offsets_at(
        self, partitions: Sequence[TopicPartition], timestamp_ms: int
    ) -> Mapping[TopicPartition, OffsetRange]:
        """Return, as `start`, the first offset at or after a timestamp, -1 if there is none. Raises ClientError."""
        return await self._offsets(partitions, timestamp_ms)

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        """Return the end offset of a leader epoch of each partition. Raises ClientError."""
        topics = [
            EpochTopic(
                name=topic,
                partitions=[
                    EpochPartition(
                        partition=key.partition,
                        leader_epoch=epochs[key],
                        current_leader_epoch=leader_epochs.get(key, -1),
                    )
                    for key in keys
                ],
            )
            for topic, keys in _by_topic(epochs).items()
        ]
        connection = self._connection
        answer = await connection.request(OffsetForLeaderEpochRequest(replica_id=CONSUMER_REPLICA_ID, topics=topics))
        found: dict[TopicPartition, EpochEnd | ErrorCode] = dict.fromkeys(epochs, ErrorCode.UNKNOWN_SERVER_ERROR)
        for topic in answer.topics:
            for each in topic.partitions:
                is_found = each.error is ErrorCode.NONE
                end = EpochEnd(each.leader_epoch, each.end_offset) if is_found else each.error
                found[TopicPartition(topic.name, each.partition)] = end
        return found

    def close(self) -> None:
        """Close the connection; requests in flight fail."""
        self._connection.close()

    async def _offsets(self, partitions: Sequence[TopicPartition], timestamp: int) -> dict[TopicPartition, OffsetRange]:
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(partition=key.partition, timestamp=timestamp) for key in keys],
            )
            for topic, keys in _by_topic(partitions).items()
        ]
        connection = self._connection
        answer = await connection.request(
            ListOffsetsRequest(isolation=READ_UNCOMMITTED, topics=topics, timeout_ms=REMOTE_TIMEOUT_MS)
        )
        found = dict.fromkeys(partitions, OffsetRange(ErrorCode.UNKNOWN_SERVER_ERROR))
        for topic in answer.topics:
            for each in topic.partitions:
                found[TopicPartition(topic.name, each.partition)] = OffsetRange(each.error, each.offset)
        return found


class KafkaSource:
    """A cluster. `close` it."""

    def __init__(self, cluster: Cluster, replica_id: int = NO_REPLICA) -> None:
        self._cluster = cluster
        self._replica_id = replica_id

    async def metadata(self, topics: Collection[str] | None = None) -> SourceMetadata:
        """Return these topics where they exist, or all that this client may describe. Raises ClientError."""
        answer = await self._cluster.load(None if topics is None else sorted(topics))
        found = {
            topic.name: SourceTopic(
                topic.error,
                None if topic.topic_id == ZERO_UUID else topic.topic_id,
                topic.is_internal,
                {each.partition: self._leader(topic.name, each) for each in topic.partitions},
            )
            for topic in answer.topics
            if topic.name and topic.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        return SourceMetadata(answer.cluster_id, found)

    def _leader(self, topic: str, partition: PartitionMetadata) -> SourcePartition:
        """Return the newest known leader: a broker may answer with older metadata than an answer to Fetch had."""
        known = self._cluster.leader_of(TopicPartition(topic, partition.partition))
        if known is None:
            return SourcePartition(-1, partition.leader_epoch)
        return SourcePartition(known.node_id, known.epoch)

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the configs that are set on topics; a topic whose configs are refused is left out.

        Raises ClientError.
        """
        found: dict[str, Mapping[str, str]] = {}
        for start in range(0, len(topics), _CONFIGS_AT_ONCE):
            part = topics[start : start + _CONFIGS_AT_ONCE]
            resources = [DescribeConfigsResource(type=TOPIC_RESOURCE, name=each) for each in part]
            request: Any = DescribeConfigsRequest(resources=resources, include_documentation=False)
            described: DescribeConfigsResponse = await self._cluster.ask_any(request)
            for each in described.results:
                if each.error is ErrorCode.NONE:
                    found[each.name] = {
                        entry.name: entry.value
                        for entry in each.entries
                        if entry.source_code == TOPIC_LAYER and entry.value is not None
                    }
        return found

    async def node(self, node_id: int) -> KafkaSourceNode:
        """Open a connection to a broker. Raises ClientError."""
        return KafkaSourceNode(
            self._cluster, node_id, await self._cluster.connections.connect(node_id, _FETCH_PURPOSE), self._replica_id
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._cluster.close()


def _fetched(answer: FetchPartitionResult) -> FetchedPartition:
    found = answer.diverging
    diverging = None if found is None else EpochEnd(found.epoch, found.end_offset)
    return FetchedPartition(answer.error, answer.high_watermark, answer.log_start_offset, diverging, answer.data)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for key in partitions:
        topics.setdefault(key.topic, []).append(key)
    return topics
