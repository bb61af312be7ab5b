"""One connection per broker and purpose, opened when it is needed.

Connections are shared by concurrent callers. After a failed attempt the next one at that address waits: the pauses
double from reconnect_backoff_ms to reconnect_backoff_max_ms. A bootstrap address serves only the first contact:
afterwards brokers are reached at their advertised addresses, and the bootstrap list is used again when none of those
answers.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from barnabas import __version__
from barnabas.clients.addresses import Address, parse_bootstrap
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import AuthenticationError, BrokerConnectionError, ClosedError
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.connection import Connection, ConnectionSettings
from barnabas.clients.security.tls_context import TlsContextSource

T = TypeVar("T")


class Purpose(StrEnum):
    """Fetches and joins have connections of their own: they wait long, and so do later requests on their connection.

    A caller may name further ones.
    """

    CONTROL = "control"
    FETCH = "fetch"
    GROUP = "group"


@dataclass(slots=True)
class _Failures:
    """Consecutive failed attempts at one address, and the loop's time of the earliest next one."""

    count: int = 0
    not_before: float = 0.0


class NodeConnections:
    """Owned by one Cluster, which passes it the brokers' addresses."""

    def __init__(self, config: ClientConfig) -> None:
        self.brokers: dict[int, Address] = {}
        self._config = config
        self._seeds = parse_bootstrap(config.bootstrap)
        self._settings = settings_of(config)
        self._connections: dict[tuple[int, str], Connection] = {}
        self._way_in: Connection | None = None
        self._connecting: dict[tuple[int, str], asyncio.Task[Connection]] = {}
        self._finding_way_in: asyncio.Task[Connection] | None = None
        self._failures: defaultdict[Address, _Failures] = defaultdict(_Failures)
        self._closed = False

    def begin_closing(self) -> None:
        """Make later calls, and shared tasks that are cancelled from now on, raise ClosedError."""
        self._closed = True

    async def close(self) -> None:
        """End every attempt to connect and close every connection. Idempotent."""
        self._closed = True
        tasks = [*self._connecting.values()]
        if self._finding_way_in is not None:
            tasks.append(self._finding_way_in)
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

    def update_brokers(self, brokers: Mapping[int, Address]) -> None:
        """Replace the brokers' addresses by those of new metadata. Connections to other addresses end when idle."""
        if not brokers:  # of a broker that does not know its cluster yet
            return
        self.brokers = dict(brokers)
        for (node_id, purpose), connection in list(self._connections.items()):
            if self.brokers.get(node_id) != connection.address:
                del self._connections[node_id, purpose]
                connection.close_when_idle()
        self._adopt_way_in()

    def connected(self, node_id: int, purpose: str = Purpose.CONTROL) -> Connection | None:
        """The open connection to that node, or None."""
        connection = self._connections.get((node_id, purpose))
        return None if connection is None or connection.closed else connection

    async def connect(self, node_id: int, purpose: str = Purpose.CONTROL) -> Connection:
        """Return an open connection to that node, opening it after the back-off of the last failure.

        Raises BrokerConnectionError, naming the broker's advertised address, and AuthenticationError.
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
        return await self.result_of(task)

    async def any_connection(self) -> Connection:
        """Return an open connection to any broker, else one to the first known or bootstrap broker that answers.

        Raises BrokerConnectionError with the error of each of them, and AuthenticationError.
        """
        self.ensure_open()
        for (_, purpose), connection in self._connections.items():
            if purpose == Purpose.CONTROL and not connection.closed:
                return connection
        if self._way_in is not None and not self._way_in.closed:
            return self._way_in
        if self._finding_way_in is None or self._finding_way_in.done():
            self._finding_way_in = asyncio.create_task(self._find_way_in(), name="barnabas-bootstrap")
        return await self.result_of(self._finding_way_in)

    async def result_of(self, task: asyncio.Task[T]) -> T:
        """Return the result of a task that callers share. Cancelling the caller does not cancel the task."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._closed and task.cancelled():  # by close(), not by the caller's cancellation
                raise ClosedError("closed while waiting for this") from None
            raise

    async def _find_way_in(self) -> Connection:
        addresses = list(dict.fromkeys([*self.brokers.values(), *self._seeds]))
        # Addresses that may be tried now come first, so that a broker that is down does not delay the others.
        addresses.sort(key=lambda address: self._failures[address].not_before)
        failures: list[BrokerConnectionError] = []
        for address in addresses:
            if failures and self._pause_s(address) > 0:
                continue
            try:
                self._way_in = await self._open(address)
            except BrokerConnectionError as error:
                failures.append(error)
                continue
            return self._way_in
        if len(failures) == 1:
            raise failures[0]
        reasons = "; ".join(str(failure) for failure in failures)
        raise BrokerConnectionError(f"none of {len(failures)} brokers can be reached: {reasons}")

    async def _connect(self, node_id: int, purpose: str) -> Connection:
        address = self.brokers.get(node_id)
        if address is None:
            raise BrokerConnectionError(f"node {node_id} is not among the brokers of the cluster")
        try:
            connection = await self._open(address)
        except BrokerConnectionError as error:
            if address in self._seeds:
                raise
            raise BrokerConnectionError(
                f"{error} (broker {node_id} advertises this address; if it is wrong, set advertised.listeners there)"
            ) from error
        adopted = self.connected(node_id, purpose)
        if adopted is not None:  # the bootstrap connection was adopted meanwhile: keep one
            connection.close()
            return adopted
        self._keep(node_id, purpose, connection)
        return connection

    async def _open(self, address: Address) -> Connection:
        """Connect after the pause that follows a failure at the address."""
        pause_s = self._pause_s(address)
        if pause_s > 0:
            await asyncio.sleep(pause_s)
        try:
            connection = await Connection.open(address, self._settings)
        except (BrokerConnectionError, AuthenticationError):
            failures = self._failures[address]
            failures.count += 1
            config = self._config
            pause_s = backoff_s(failures.count, config.reconnect_backoff_ms, config.reconnect_backoff_max_ms)
            failures.not_before = asyncio.get_running_loop().time() + pause_s
            raise
        self._failures.pop(address, None)
        return connection

    def _pause_s(self, address: Address) -> float:
        return self._failures[address].not_before - asyncio.get_running_loop().time()

    def _keep(self, node_id: int, purpose: str, connection: Connection) -> None:
        def forget(closed: Connection) -> None:
            if self._connections.get((node_id, purpose)) is closed:
                del self._connections[node_id, purpose]

        self._connections[node_id, purpose] = connection
        connection.on_closed = forget

    def _adopt_way_in(self) -> None:
        """Keep the bootstrap connection as a broker's own one, if its address is the advertised one."""
        connection = self._way_in
        if connection is None or connection.closed:
            return
        for node_id, address in self.brokers.items():
            if address == connection.address and (node_id, Purpose.CONTROL) not in self._connections:
                self._keep(node_id, Purpose.CONTROL, connection)
                self._way_in = None
                return


def settings_of(config: ClientConfig) -> ConnectionSettings:
    """Return what a configuration says of connections."""
    return ConnectionSettings(
        client_id=config.client_id,
        client_version=__version__,
        connect_timeout_ms=config.connect_timeout_ms,
        request_timeout_ms=config.request_timeout_ms,
        max_frame_bytes=config.max_frame_bytes,
        security=config.security,
        tls=None if config.security.tls is None else TlsContextSource(config.security.tls),
    )
