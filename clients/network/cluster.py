"""A client's view of the cluster: brokers, topics with their leaders, and one connection per broker and purpose.

Metadata is loaded per topic at first use, again when a broker reports that it is stale (`refresh_soon`), and every
metadata_max_age_ms. Connections are opened when they are needed, shared by concurrent callers, and reopened with
back-off after a failure. A bootstrap address serves only the first contact: afterwards brokers are reached at their
advertised addresses, and the bootstrap list is used again when none of those answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from barnabas import __version__
from barnabas.clients.addresses import Address, parse_bootstrap
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    ProtocolViolationError,
    RefusedError,
    UnknownTopicError,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.connection import Connection, ConnectionSettings
from barnabas.protocol.errors import RETRIABLE_CODES, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")

UNKNOWN_TOPIC_WAIT_S = 2.0
"""How long brokers may report a topic as unknown before that is an error: it may have just been created."""

NO_LEADER = -1


class Purpose(Enum):
    """Fetches and joins have connections of their own: they wait long, and so do later requests on their connection."""

    CONTROL = "control"
    FETCH = "fetch"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic in the last metadata: `leaders[p]` is the node that leads partition p, -1 without one."""

    name: str
    topic_id: bytes
    leaders: tuple[int, ...]


@dataclass(slots=True)
class _Failures:
    """Consecutive failed connection attempts to one node, and the loop's time of the earliest next attempt."""

    count: int
    not_before: float


class Cluster:
    """Owned by one producer, consumer or admin; `start` it first, `close` it last."""

    def __init__(self, config: ClientConfig, *, may_create_topics: bool = False) -> None:
        self.cluster_id = ""
        self.brokers: dict[int, Address] = {}
        self._config = config
        self._may_create_topics = may_create_topics
        self._seeds = parse_bootstrap(config.bootstrap)
        self._settings = ConnectionSettings(
            client_id=config.client_id,
            client_version=__version__,
            connect_timeout_ms=config.connect_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
            max_frame_bytes=config.max_frame_bytes,
        )
        self._topics: dict[str, TopicView] = {}
        self._topic_errors: dict[str, ErrorCode] = {}
        self._connections: dict[tuple[int, Purpose], Connection] = {}
        self._way_in: Connection | None = None
        self._connecting: dict[tuple[int, Purpose], asyncio.Task[Connection]] = {}
        self._finding_way_in: asyncio.Task[Connection] | None = None
        self._failures: dict[int, _Failures] = {}
        self._loading: dict[str, asyncio.Task[TopicView]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_failures = 0
        self._last_refresh = float("-inf")
        self._age_timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def start(self) -> None:
        """Connect to one broker of the bootstrap list and load the others.

        Raises BrokerConnectionError immediately when none answers: a wrong address should not look like waiting.
        """
        self.ensure_open()
        await self.load([])
        self._age_timer = asyncio.get_running_loop().call_later(
            self._config.metadata_max_age_ms / 1000, self._refresh_by_age
        )

    async def close(self) -> None:
        """Close every connection and end every task. Idempotent."""
        self._closed = True
        if self._age_timer is not None:
            self._age_timer.cancel()
        tasks: list[asyncio.Task[object]] = [*self._connecting.values(), *self._loading.values()]
        tasks += [task for task in (self._refreshing, self._finding_way_in) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        connections = [*self._connections.values(), *([self._way_in] if self._way_in else [])]
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))
        self._connections.clear()

    def ensure_open(self) -> None:
        """Raises ClosedError after close()."""
        if self._closed:
            raise ClosedError("used after close()")

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

    async def require_topic(self, name: str, timeout_ms: int) -> TopicView:
        """Return the topic, loading it at first use; concurrent callers share the request.

        Raises RefusedError when it does not exist (after UNKNOWN_TOPIC_WAIT_S) or its name is refused,
        BrokerConnectionError or BrokerTimeoutError when no broker answers within `timeout_ms`.
        """
        view = self._topics.get(name)
        if view is not None:
            return view
        self.ensure_open()
        task = self._loading.get(name)
        if task is None:
            task = asyncio.create_task(self._load_topic(name, timeout_ms), name=f"barnabas-load-{name}")
            self._loading[name] = task
            task.add_done_callback(lambda done: self._loading.pop(name, None))
        return await self._shared(task)

    async def load(self, names: Iterable[str] | None) -> MetadataResponse:
        """Request brokers and these topics (None: all of them) in one attempt, and keep the response."""
        connection = await self.any_connection()
        request = MetadataRequest(None if names is None else list(names), self._may_create_topics)
        response: MetadataResponse = await connection.request(ApiKey.METADATA, request)
        self._apply(response)
        return response

    def refresh_soon(self) -> asyncio.Task[None]:
        """Reload the topics in use, at most once per back-off, in a task that callers share and that never fails."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(), name="barnabas-refresh-metadata")
        return self._refreshing

    # connections

    def connected(self, node_id: int, purpose: Purpose = Purpose.CONTROL) -> Connection | None:
        """The open connection to that node, or None."""
        connection = self._connections.get((node_id, purpose))
        return None if connection is None or connection.closed else connection

    async def connect(self, node_id: int, purpose: Purpose = Purpose.CONTROL) -> Connection:
        """Return an open connection to that node, opening it after the back-off of the last failure.

        Raises BrokerConnectionError, naming the broker's advertised address.
        """
        connection = self.connected(node_id, purpose)
        if connection is not None:
            return connection
        self.ensure_open()
        task = self._connecting.get((node_id, purpose))
        if task is None:
            task = asyncio.create_task(self._connect(node_id, purpose), name=f"barnabas-connect-{node_id}")
            self._connecting[node_id, purpose] = task
            task.add_done_callback(lambda done: self._connecting.pop((node_id, purpose), None))
        return await self._shared(task)

    async def any_connection(self) -> Connection:
        """Return an open connection to any broker, else one to the first known or bootstrap broker that answers.

        Raises BrokerConnectionError with the error of each of them.
        """
        self.ensure_open()
        for (_, purpose), connection in self._connections.items():
            if purpose is Purpose.CONTROL and not connection.closed:
                return connection
        if self._way_in is not None and not self._way_in.closed:
            return self._way_in
        if self._finding_way_in is None or self._finding_way_in.done():
            self._finding_way_in = asyncio.create_task(self._find_way_in(), name="barnabas-bootstrap")
        return await self._shared(self._finding_way_in)

    async def _shared(self, task: asyncio.Task[T]) -> T:
        """Return the result of a shared task. Cancelling the caller does not cancel the task."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._closed and task.cancelled():  # by close(), not by the caller's cancellation
                raise ClosedError("closed while waiting for this") from None
            raise

    async def _find_way_in(self) -> Connection:
        failures = []
        for address in dict.fromkeys([*self.brokers.values(), *self._seeds]):
            try:
                self._way_in = await Connection.open(address, self._settings)
            except BrokerConnectionError as error:
                failures.append(error)
                continue
            return self._way_in
        if len(failures) == 1:
            raise failures[0]
        reasons = "; ".join(str(failure) for failure in failures)
        raise BrokerConnectionError(f"none of {len(failures)} brokers can be reached: {reasons}")

    async def _connect(self, node_id: int, purpose: Purpose) -> Connection:
        loop = asyncio.get_running_loop()
        failures = self._failures.get(node_id)
        if failures is not None and failures.not_before > loop.time():
            await asyncio.sleep(failures.not_before - loop.time())
        address = self.brokers.get(node_id)
        if address is None:
            raise BrokerConnectionError(f"node {node_id} leads the partition, but is not among the brokers")
        try:
            connection = await self._open_node(node_id, address)
        except BrokerConnectionError as error:
            count = 1 if failures is None else failures.count + 1
            pause = backoff_s(count, self._config.reconnect_backoff_ms, self._config.reconnect_backoff_max_ms)
            self._failures[node_id] = _Failures(count, loop.time() + pause)
            if address in self._seeds:
                raise
            raise BrokerConnectionError(
                f"{error} (broker {node_id} advertises this address; if it is wrong, set advertised.listeners there)"
            ) from error
        self._failures.pop(node_id, None)
        adopted = self.connected(node_id, purpose)
        if adopted is not None:  # the bootstrap connection was adopted meanwhile: keep one
            connection.close()
            return adopted
        self._keep(node_id, purpose, connection)
        return connection

    async def _open_node(self, node_id: int, address: Address) -> Connection:
        connection = await Connection.open(address, self._settings)
        if connection.node_id != node_id:
            connection.close()
            raise BrokerConnectionError(f"{address} is node {connection.node_id} where node {node_id} was expected")
        return connection

    def _keep(self, node_id: int, purpose: Purpose, connection: Connection) -> None:
        def forget(closed: Connection) -> None:
            if self._connections.get((node_id, purpose)) is closed:
                del self._connections[node_id, purpose]

        self._connections[node_id, purpose] = connection
        connection.on_closed = forget

    def _apply(self, response: MetadataResponse) -> None:
        self.cluster_id = response.cluster_id
        self.brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        for topic in response.topics:
            if topic.error is ErrorCode.NONE:
                self._topics[topic.name] = _view(topic)
                self._topic_errors.pop(topic.name, None)
            else:
                self._topics.pop(topic.name, None)
                self._topic_errors[topic.name] = topic.error
        self._adopt_way_in()

    def _adopt_way_in(self) -> None:
        """Keep the bootstrap connection as the broker's own one, if its address is the advertised one."""
        connection = self._way_in
        if connection is None or connection.closed:
            return
        key = (connection.node_id, Purpose.CONTROL)
        if self.brokers.get(connection.node_id) == connection.address and key not in self._connections:
            self._keep(connection.node_id, Purpose.CONTROL, connection)
            self._way_in = None

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
            self._refresh_failures = 0
        except ClosedError:
            return
        except ClientError as error:
            self._refresh_failures += 1
            logger.warning("metadata not refreshed, trying again later: %s", error)
        finally:
            self._last_refresh = loop.time()

    def _refresh_by_age(self) -> None:
        if self._topics:
            self.refresh_soon()
        self._age_timer = asyncio.get_running_loop().call_later(
            self._config.metadata_max_age_ms / 1000, self._refresh_by_age
        )


def _view(topic: TopicMetadata) -> TopicView:
    partitions = {entry.partition: entry for entry in topic.partitions}
    count = max(partitions, default=-1) + 1
    known = [partitions.get(partition) for partition in range(count)]
    return TopicView(
        topic.name,
        topic.topic_id,
        tuple(NO_LEADER if entry is None else entry.leader for entry in known),
    )


def _timed_out(what: str, failure: ClientError) -> ClientError:
    """An error of the same kind as that of the last attempt."""
    sentence = f"{what}: {failure}"
    if isinstance(failure, BrokerConnectionError):
        return BrokerConnectionError(sentence)
    return BrokerTimeoutError(sentence)
