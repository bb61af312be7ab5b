"""The topics of a share consumer's subscription: their ids, and the leaders of their partitions.

Loaded when they are subscribed to, and again when an answer or an assignment shows that the metadata is stale.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.clients.config import ShareConsumerConfig
from barnabas.clients.errors import (
    ClientError,
    ClosedError,
    ProtocolViolationError,
    RefusedError,
    UnknownTopicError,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import UNKNOWN_TOPIC_WAIT_S, Cluster
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.metadata import MetadataResponse
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

TopicIdPartition = tuple[bytes, int]
_UNKNOWN: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class SubscribedTopics:
    """Owned by one share consumer. `changed` is called after a refresh."""

    def __init__(self, cluster: Cluster, config: ShareConsumerConfig, changed: Callable[[], None]) -> None:
        self.names: tuple[str, ...] = ()
        self.by_id: dict[bytes, str] = {}
        """Names by topic id, of all topics that were ever subscribed to: acknowledgements may still name them."""
        self._cluster = cluster
        self._config = config
        self._changed = changed
        self._refreshing: asyncio.Task[None] | None = None

    async def subscribe(self, names: Sequence[str]) -> None:
        """Replace the topics. Raises UnknownTopicError, RefusedError, with nothing changed; other ClientErrors."""
        loop = asyncio.get_running_loop()
        known_until = loop.time() + UNKNOWN_TOPIC_WAIT_S
        attempts = 0
        while True:
            metadata = await self._load(names)
            unknown = next((each.name for each in metadata.topics if each.error is _UNKNOWN), None)
            if unknown is None:
                break
            if loop.time() > known_until:
                raise UnknownTopicError(unknown, None, f"there is no topic {unknown!r}; create it first")
            attempts += 1
            await asyncio.sleep(backoff_s(attempts, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms))
        for topic in metadata.topics:
            if topic.error is not ErrorCode.NONE:
                raise RefusedError.of_topic(topic.topic_name, topic.error, None)
        self.names = tuple(names)
        self._note(metadata)

    def by_leader(
        self, assignment: Mapping[bytes, Sequence[int]]
    ) -> tuple[Mapping[int, frozenset[TopicIdPartition]], bool]:
        """Return assigned partitions by leader, and whether some are left out because their leader is not known."""
        found: defaultdict[int, set[TopicIdPartition]] = defaultdict(set)
        is_complete = True
        for topic_id, numbers in assignment.items():
            name = self.by_id.get(topic_id)
            for number in numbers:
                leader = None if name is None else self._cluster.leader_of(TopicPartition(name, number))
                if leader is None:
                    is_complete = False
                else:
                    found[leader.node_id].add((topic_id, number))
        return {node_id: frozenset(partitions) for node_id, partitions in found.items()}, not is_complete

    def refresh_soon(self) -> None:
        """Load the topics again, and call `changed` then. One task at a time."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(), name="barnabas-share-metadata")

    async def end(self) -> None:
        """End the refresh task."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)

    async def _load(self, names: Sequence[str]) -> MetadataResponse:
        return await with_retries(self._config, "metadata", lambda: self._cluster.load(names))

    async def _refresh(self) -> None:
        await asyncio.sleep(self._config.retry_backoff_ms / 1000)  # not more often than this
        try:
            self._note(await self._cluster.load(self.names))
        except ClosedError:
            return
        except ProtocolViolationError:
            logger.exception("metadata of a share consumer not refreshed")
            return
        except ClientError as error:
            logger.debug("metadata of a share consumer not refreshed: %s", error)
        self._refreshing = None
        self._changed()

    def _note(self, metadata: MetadataResponse) -> None:
        for topic in metadata.topics:
            if topic.error is ErrorCode.NONE:
                self.by_id[topic.topic_id] = topic.topic_name
