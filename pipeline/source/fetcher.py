"""Fetches one partition for a task, one request ahead of decoding.

A request is sent as soon as its first offset is known, and awaited only when its bytes are needed: the broker fills the
socket while the task decodes. Failed requests are retried for up to api_timeout_ms.

Fetches share the connection that loaded the metadata: nothing else uses it in a task, and opening a second one costs a
small task as much as its fetch.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import RefusedError, UnknownTopicError
from barnabas.clients.network.cluster import NO_LEADER, Cluster, TopicView
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import with_retries
from barnabas.clients.offsets import log_range
from barnabas.pipeline.errors import CorruptLogError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import (
    TOPIC_IDS_FROM,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.messages.topics.metadata import MetadataResponse
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text

FRAME_HEADROOM_BYTES: Final = 64 * 1024
"""Room for the header in the largest answer that is accepted."""


class TopicGoneError(Exception):
    """The topic that the read was planned for is gone; another of the same name may exist."""


@dataclass(slots=True)
class FetchAnswer:
    """The fetched partition's part of an answer."""

    result: FetchPartitionResult
    data: memoryview


class PartFetcher:
    """Fetches of one partition, one ahead of what is decoded."""

    def __init__(
        self,
        client: ConsumerConfig,
        topic_partition: TopicPartition,
        loop: asyncio.AbstractEventLoop,
        isolation: int,
        topic_id: str | None = None,
    ) -> None:
        """`topic_id`: the text of the id that the topic must have; None accepts any topic of the name."""
        self.bootstrap = client.bootstrap
        self._client = client
        self._topic_partition = topic_partition
        self._loop = loop
        self._isolation = isolation
        self._topic_id = topic_id
        self._bytes = min(client.max_partition_bytes, client.max_bytes)
        self._offset = 0
        self._cluster: Cluster | None = None
        self._sent: asyncio.Future[FetchResponse] | None = None
        self._answers = 0

    def ask(self, offset: int) -> None:
        """Send the fetch from `offset` if a connection is open; otherwise `answer` sends it."""
        self._offset = offset
        self._sent = None
        if self._cluster is not None:
            leader = self._cluster.leader(self._topic_partition)
            connection = self._cluster.connections.connected(leader)
            if connection is not None:
                self._sent = self._loop.run_until_complete(self._send_on(connection))

    def ask_for_more(self, offset: int, needed_bytes: int) -> None:
        """Fetch again with room for a whole batch. Raises CorruptLogError for a batch that fits no answer."""
        most = self._client.max_frame_bytes - FRAME_HEADROOM_BYTES
        if needed_bytes > most:
            raise CorruptLogError(
                f"{self._topic_partition} at the broker {self.bootstrap}: the batch at offset {offset} has "
                f"{needed_bytes} bytes, but an answer has at most {most}"
            )
        self._bytes = min(most, max(needed_bytes, 2 * self._bytes))
        self.ask(offset)

    def answer(self) -> FetchAnswer:
        """Return the answer to the last fetch, retried for up to api_timeout_ms. Raises TopicGoneError."""
        what = f"reading {self._topic_partition} from offset {self._offset}"
        try:
            response = self._loop.run_until_complete(with_retries(self._client, what, self._attempt))
        except UnknownTopicError as error:
            raise TopicGoneError("the topic was deleted after the read was planned") from error
        self._answers += 1
        result = response.topics[0].partitions[0]
        if result.error is ErrorCode.OFFSET_OUT_OF_RANGE and self._cluster is not None:  # of which fetches say no more
            result.log_start_offset, result.high_watermark = self._loop.run_until_complete(
                log_range(self._cluster, self._client, self._topic_partition)
            )
        return FetchAnswer(result, result.data)

    def ensure_same_topic(self) -> None:
        """Check that all answers came from the planned topic. Raises TopicGoneError.

        Fetches carry the topic's name, not its id, so any answer after the first may be from another topic. A topic
        deleted without a successor is fine: its records existed when they were fetched.
        """
        if self._answers > 1 and self._cluster is not None:
            what = f"metadata behind {self._topic_partition}"
            self._loop.run_until_complete(with_retries(self._client, what, self._load))
            view = self._cluster.topic(self._topic_partition.topic)
            if view is not None:
                self._ensure_planned(view)

    async def _load(self) -> MetadataResponse:
        assert self._cluster is not None
        return await self._cluster.load([self._topic_partition.topic])

    def _ensure_planned(self, view: TopicView) -> None:
        if self._topic_id is not None and uuid_text(view.topic_id) != self._topic_id:
            raise TopicGoneError(
                "the topic was deleted and created again after the read was planned; its topic id was "
                f"{self._topic_id}, now it is {uuid_text(view.topic_id)}"
            )

    def close(self) -> None:
        """Close the connections."""
        if self._cluster is not None:
            self._loop.run_until_complete(self._cluster.close())

    async def _attempt(self) -> FetchResponse:
        sent, self._sent = self._sent, None
        if sent is None:
            if self._cluster is None:
                cluster = Cluster(self._client)
                self._cluster = cluster
                await cluster.start()
            view = await self._cluster.require_topic(self._topic_partition.topic, self._client.api_timeout_ms)
            self._ensure_planned(view)
            leader = self._cluster.leader(self._topic_partition)
            if leader == NO_LEADER:
                await self._cluster.load([self._topic_partition.topic])
                leader = self._cluster.leader(self._topic_partition)
            if leader == NO_LEADER:
                raise RefusedError.of_partition(self._topic_partition, ErrorCode.LEADER_NOT_AVAILABLE, None)
            sent = await self._send_on(await self._cluster.connections.connect(leader))
        response = await sent
        code = response.topics[0].partitions[0].error
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._cluster is not None:
            await self._cluster.load([self._topic_partition.topic])  # the next attempt sees whether it was deleted
            raise RefusedError.of_partition(self._topic_partition, code, None)
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR):
            if self._cluster is not None:
                self._cluster.refresh_soon()
            raise RefusedError.of_partition(self._topic_partition, code, None)
        return response

    async def _send_on(self, connection: Connection) -> asyncio.Future[FetchResponse]:
        topic, partition = self._topic_partition
        entry = FetchPartition(partition=partition, offset=self._offset, max_bytes=self._bytes)
        request = FetchRequest(
            max_wait_ms=self._client.max_wait_ms,
            min_bytes=1,
            max_bytes=max(self._bytes, self._client.max_bytes),
            isolation=self._isolation,
            topics=[FetchTopic(name=topic, partitions=[entry])],
        )
        timeout_ms = self._client.request_timeout_ms + request.max_wait_ms
        return connection.request(request, highest=TOPIC_IDS_FROM - 1, timeout_ms=timeout_ms)
