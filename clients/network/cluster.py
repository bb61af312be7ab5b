"""A client's view of the cluster: its topics with their leaders, and the connections to its brokers.

Metadata is loaded per topic at first use, again when a broker reports that it is stale (`refresh_soon`), and every
metadata_max_age_ms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    ProtocolViolationError,
    RefusedError,
    UnknownTopicError,
    reason_of,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.node_connections import NodeConnections, Purpose
from barnabas.protocol.errors import RETRIABLE_CODES, ErrorCode
from barnabas.protocol.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.nodes import BrokerAddress, LeaderAndEpoch
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.structures import Answer, Request

logger = logging.getLogger(__name__)

UNKNOWN_TOPIC_WAIT_S = 2.0
"""How long brokers may report a topic as unknown before that is an error: it may have just been created."""

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic in the last metadata: `leaders[p]` is the node that leads partition p, -1 without one.

    `epochs[p]`: since this leader epoch; -1 if unknown.
    """

    name: str
    topic_id: bytes
    leaders: tuple[int, ...]
    epochs: tuple[int, ...]


class Cluster:
    """Owned by one producer, consumer or admin; `start` it first, `close` it last."""

    def __init__(self, config: ClientConfig, *, may_create_topics: bool = False) -> None:
        self.cluster_id = ""
        self.connections = NodeConnections(config)
        self._config = config
        self._may_create_topics = may_create_topics
        self._topics: dict[str, TopicView] = {}
        self._topic_errors: dict[str, ErrorCode] = {}
        self._loading: dict[str, asyncio.Task[TopicView]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_failures = 0
        self._last_refresh = float("-inf")
        self._age_timer: asyncio.TimerHandle | None = None
        self._coordinators: dict[tuple[int, str], int] = {}

    async def start(self) -> None:
        """Connect to one broker of the bootstrap list and load the others.

        Raises BrokerConnectionError immediately when none answers: a wrong address should not look like waiting.
        """
        self.connections.ensure_open()
        await self.load([])
        self._age_timer = asyncio.get_running_loop().call_later(
            self._config.metadata_max_age_ms / 1000, self._refresh_by_age
        )

    async def close(self) -> None:
        """Close every connection and end every task. Idempotent."""
        self.connections.begin_closing()
        if self._age_timer is not None:
            self._age_timer.cancel()
        tasks: list[asyncio.Task[object]] = [*self._loading.values()]
        if self._refreshing is not None:
            tasks.append(self._refreshing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.connections.close()

    # brokers

    async def broker(self, node_id: int | None) -> Connection:
        """Return a connection to a broker; to any, if `node_id` is None or not one of the cluster's.

        Raises RefusedError, BrokerConnectionError, BrokerTimeoutError.
        """
        if node_id is not None and node_id not in self.connections.brokers:
            await self.load([])
        if node_id is None or node_id not in self.connections.brokers:
            return await self.connections.any_connection()
        return await self.connections.connect(node_id)

    @property
    def node_ids(self) -> Sequence[int]:
        """The brokers of the latest metadata."""
        return tuple(self.connections.brokers)

    async def ask(self, node_id: int, request: Request[Answer]) -> Answer:
        """Send a request to one broker, once. Raises ClientError."""
        return await (await self.connections.connect(node_id)).request(request)

    async def ask_any(self, request: Request[Answer]) -> Answer:
        """Send a request to any broker, once. Raises ClientError."""
        return await (await self.connections.any_connection()).request(request)

    # coordinators

    async def coordinator(
        self, key_type: int, key: str, purpose: Purpose = Purpose.CONTROL, *, is_sought_again: bool = False
    ) -> Connection:
        """Return a connection to the coordinator of a group or a transactional id.

        It is looked for once, until `forget_coordinators`. `is_sought_again`: look for it now, for a caller that does
        not repeat a request which a former coordinator refuses. Raises RefusedError, BrokerConnectionError,
        BrokerTimeoutError.
        """
        node_id = None if is_sought_again else self._coordinators.get((key_type, key))
        if node_id is None:
            connection = await self.connections.any_connection()
            answer: FindCoordinatorResponse = await connection.request(FindCoordinatorRequest.of_key(key, key_type))
            (found,) = answer.found
            if found.error is not ErrorCode.NONE:
                raise RefusedError(
                    found.error, f"the coordinator of {key!r}: {found.message or reason_of(found.error)}"
                )
            node_id = found.node_id
            address = Address(found.host, found.port)
            if self.connections.brokers.get(node_id) != address:
                self.connections.update_brokers({**self.connections.brokers, node_id: address})
            self._coordinators[key_type, key] = node_id
        try:
            return await self.connections.connect(node_id, purpose)
        except BrokerConnectionError:
            self._coordinators.pop((key_type, key), None)  # another broker may coordinate it by the next attempt
            raise

    def forget_coordinators(self) -> None:
        """Look for coordinators again: one has refused a request as another's, or could not be reached."""
        self._coordinators.clear()

    # topics

    def topic(self, name: str) -> TopicView | None:
        """The topic in the last metadata; None if it is not loaded."""
        return self._topics.get(name)

    def leader(self, topic_partition: TopicPartition) -> int:
        """The leader's node id in the last metadata; -1 without a leader or for an unknown partition."""
        view = self._topics.get(topic_partition.topic)
        if view is None or topic_partition.partition >= len(view.leaders):
            return NO_LEADER
        return view.leaders[topic_partition.partition]

    def topic_error(self, name: str) -> ErrorCode | None:
        """The topic's error code in the last metadata, None without one."""
        return self._topic_errors.get(name)

    def forget_topic(self, name: str) -> None:
        """Leave the topic out of later refreshes."""
        self._topics.pop(name, None)
        self._topic_errors.pop(name, None)

    def leader_of(self, topic_partition: TopicPartition) -> LeaderAndEpoch | None:
        """The partition's leader in the last metadata, with its epoch; None without one."""
        view = self._topics.get(topic_partition.topic)
        number = topic_partition.partition
        if view is None or number >= len(view.leaders) or view.leaders[number] < 0:
            return None
        return LeaderAndEpoch(node_id=view.leaders[number], epoch=view.epochs[number])

    def note_leader(
        self, topic_partition: TopicPartition, leader: LeaderAndEpoch, endpoints: Iterable[BrokerAddress]
    ) -> bool:
        """Take a new leader from an answer to Fetch, with its address; return whether it is now known.

        An older epoch than the known one changes nothing.
        """
        view = self._topics.get(topic_partition.topic)
        number = topic_partition.partition
        if leader.node_id < 0 or view is None or number >= len(view.leaders) or leader.epoch <= view.epochs[number]:
            return False
        brokers = dict(self.connections.brokers)
        brokers.update({each.node_id: Address(each.host, each.port) for each in endpoints})
        if leader.node_id not in brokers:
            return False
        self.connections.update_brokers(brokers)
        leaders, epochs = list(view.leaders), list(view.epochs)
        leaders[number], epochs[number] = leader.node_id, leader.epoch
        self._topics[view.name] = TopicView(view.name, view.topic_id, tuple(leaders), tuple(epochs))
        return True

    async def require_topic(self, name: str, timeout_ms: int) -> TopicView:
        """Return the topic, loading it at first use; concurrent callers share the request.

        Raises RefusedError when it does not exist (after UNKNOWN_TOPIC_WAIT_S) or its name is refused,
        BrokerConnectionError or BrokerTimeoutError when no broker answers within `timeout_ms`.
        """
        view = self._topics.get(name)
        if view is not None:
            return view
        self.connections.ensure_open()
        task = self._loading.get(name)
        if task is None:
            task = asyncio.create_task(self._load_topic(name, timeout_ms), name=f"barnabas-load-{name}")
            self._loading[name] = task
            task.add_done_callback(lambda done: self._loading.pop(name, None))
        return await self.connections.result_of(task)

    async def load(self, names: Iterable[str] | None) -> MetadataResponse:
        """Request brokers and these topics (None: all of them) in one attempt, and keep the response."""
        connection = await self.connections.any_connection()
        request = MetadataRequest.of_names(names, allow_auto_creation=self._may_create_topics)
        response: MetadataResponse = await connection.request(request)
        if response.error is not ErrorCode.NONE:
            raise RefusedError(response.error, f"metadata: {reason_of(response.error)}")
        self._apply(response)
        return response

    def refresh_soon(self) -> asyncio.Task[None]:
        """Reload the topics in use, at most once per back-off, in a task that callers share and that never fails."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(), name="barnabas-refresh-metadata")
        return self._refreshing

    def _apply(self, response: MetadataResponse) -> None:
        self.cluster_id = response.cluster_id or ""
        for topic in response.topics:
            if topic.error is ErrorCode.NONE:
                self._topics[topic.topic_name] = _view(topic, self._topics.get(topic.topic_name))
                self._topic_errors.pop(topic.topic_name, None)
            else:
                self._topics.pop(topic.topic_name, None)
                self._topic_errors[topic.topic_name] = topic.error
        self.connections.update_brokers(
            {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        )

    async def _load_topic(self, name: str, timeout_ms: int) -> TopicView:
        loop = asyncio.get_running_loop()
        started = loop.time()
        attempt = 0
        while True:
            failure: ClientError
            try:
                await self.load([name])
            except ProtocolViolationError:
                raise
            except (BrokerConnectionError, BrokerTimeoutError) as error:
                failure = error
            else:
                view = self._topics.get(name)
                if view is not None:
                    return view
                code = self._topic_errors.pop(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and loop.time() - started > UNKNOWN_TOPIC_WAIT_S:
                    raise UnknownTopicError(name, None, f"there is no topic {name!r}; create it first")
                failure = RefusedError.of_topic(name, code, None)
                if code not in RETRIABLE_CODES:
                    raise failure
            attempt += 1
            pause = backoff_s(attempt, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
            if loop.time() + pause > started + timeout_ms / 1000:
                raise _timed_out(f"no metadata of topic {name!r} within {timeout_ms} ms", failure) from failure
            await asyncio.sleep(pause)

    async def _refresh(self) -> None:
        loop = asyncio.get_running_loop()
        pause = backoff_s(
            max(1, self._refresh_failures), self._config.retry_backoff_ms, self._config.retry_backoff_max_ms
        )
        if self._last_refresh + pause > loop.time():
            await asyncio.sleep(self._last_refresh + pause - loop.time())
        try:
            await self.load(sorted({*self._topics, *self._topic_errors}))
            if self._refresh_failures:
                logger.info("metadata refreshed again, failures=%d", self._refresh_failures)
            self._refresh_failures = 0
        except ClosedError:
            return
        except ClientError as error:
            self._refresh_failures += 1
            # One warning while a broker is down, not one for each attempt.
            level = logging.WARNING if self._refresh_failures == 1 else logging.DEBUG
            logger.log(level, "metadata not refreshed, trying again later: %s", error)
        finally:
            self._last_refresh = loop.time()

    def _refresh_by_age(self) -> None:
        if self._topics:
            self.refresh_soon()
        self._age_timer = asyncio.get_running_loop().call_later(
            self._config.metadata_max_age_ms / 1000, self._refresh_by_age
        )


def _view(topic: TopicMetadata, known: TopicView | None) -> TopicView:
    """Return the view of a topic. A leader with an older epoch than the known one is a stale broker's."""
    partitions = {entry.partition: entry for entry in topic.partitions}
    count = max(partitions, default=-1) + 1
    leaders, epochs = [NO_LEADER] * count, [-1] * count
    for number, entry in partitions.items():
        leaders[number], epochs[number] = entry.leader, entry.leader_epoch
    if known is not None and known.topic_id == topic.topic_id:
        for number in range(min(count, len(known.epochs))):
            if 0 <= epochs[number] < known.epochs[number]:
                leaders[number], epochs[number] = known.leaders[number], known.epochs[number]
    return TopicView(topic.topic_name, topic.topic_id, tuple(leaders), tuple(epochs))


def _timed_out(what: str, failure: ClientError) -> ClientError:
    """An error of the same kind as that of the last attempt."""
    sentence = f"{what}: {failure}"
    if isinstance(failure, BrokerConnectionError):
        return BrokerConnectionError(sentence)
    return BrokerTimeoutError(sentence)
