"""Connections to the brokers of a cluster: one per broker and purpose, opened when it is needed.

After a failed attempt the next one at that address waits: retry times double from reconnect_backoff_ms to
reconnect_backoff_max_ms. Bootstrap addresses serve the first contact, and again when no known broker answers.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.clients.addresses import Address, parse_bootstrap
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import AuthenticationError, BrokerConnectionError, BrokerTimeoutError, ClosedError
from barnabas.clients.kafka.connection import KafkaConnection
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.security.tls_context import TlsContextSource

CONTROL: Final = "control"
"""The purpose of short requests. Long polls have another one, because later requests on a connection wait for them."""

_Key = tuple[Address, str]


@dataclass(slots=True)
class _Failures:
    """Consecutive failed attempts at one address, and the loop's time of the earliest next one."""

    count: int = 0
    not_before: float = 0.0


class KafkaNodes:
    """Owned by one KafkaCluster, which passes it the brokers' addresses."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._seeds = parse_bootstrap(config.bootstrap)
        self._tls = None if config.security.tls is None else TlsContextSource(config.security.tls)
        self._brokers: Mapping[int, Address] = {}
        self._connections: dict[_Key, KafkaConnection] = {}
        self._expiring: list[KafkaConnection] = []
        self._opening: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failures: defaultdict[Address, _Failures] = defaultdict(_Failures)
        self._is_closed = False

    @property
    def brokers(self) -> Mapping[int, Address]:
        """Addresses by node id."""
        return self._brokers

    def update_brokers(self, brokers: Mapping[int, Address]) -> None:
        """Replace the brokers' addresses; close connections to addresses that are not among them."""
        self._brokers = dict(brokers)
        wanted = {*brokers.values(), *self._seeds}
        for key in [key for key in self._connections if key[0] not in wanted]:
            self._expiring.append(self._connections.pop(key))
        self._close_expired()

    async def connection(self, node_id: int, purpose: str = CONTROL) -> KafkaConnection:
        """Return an open connection to a broker, opened after the pause that follows a failure.

        Raises BrokerConnectionError, also for an unknown node, BrokerTimeoutError, AuthenticationError, ClosedError.
        """
        address = self._brokers.get(node_id)
        if address is None:
            raise BrokerConnectionError(f"node {node_id} is not among the brokers of the cluster")
        return await self._at(address, purpose)

    async def any_connection(self) -> KafkaConnection:
        """Return an open connection to any broker: known ones are tried before the bootstrap list.

        Raises BrokerConnectionError with the error of each, BrokerTimeoutError, AuthenticationError, ClosedError.
        """
        self._ensure_open()
        addresses = list(dict.fromkeys([*self._brokers.values(), *self._seeds]))
        for address in addresses:
            connection = self._connections.get((address, CONTROL))
            if connection is not None and not connection.is_closed and not connection.is_expiring:
                return connection
        # Addresses that may be tried now come first, so that a broker that is down does not delay the others.
        addresses.sort(key=lambda address: self._failures[address].not_before)
        failures: list[BrokerConnectionError | BrokerTimeoutError] = []
        for address in addresses:
            if failures and self._pause_s(address) > 0:
                continue
            try:
                return await self._at(address, CONTROL)
            except (BrokerConnectionError, BrokerTimeoutError) as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        raise BrokerConnectionError(
            f"none of {len(failures)} brokers can be reached: {'; '.join(str(failure) for failure in failures)}"
        )

    def close(self) -> None:
        """Close every connection. Idempotent."""
        self._is_closed = True
        for connection in (*self._connections.values(), *self._expiring):
            connection.close()
        self._connections.clear()
        self._expiring.clear()

    async def _at(self, address: Address, purpose: str) -> KafkaConnection:
        key = (address, purpose)
        async with self._opening[key]:
            self._ensure_open()
            connection = self._connections.get(key)
            if connection is not None and not connection.is_closed:
                if not connection.is_expiring:
                    return connection
                self._expiring.append(connection)
            self._close_expired()
            connection = await self._open(address)
            if self._is_closed:
                connection.close()
                self._ensure_open()
            self._connections[key] = connection
            return connection

    async def _open(self, address: Address) -> KafkaConnection:
        failures = self._failures[address]
        if (pause_s := self._pause_s(address)) > 0:
            await asyncio.sleep(pause_s)
            self._ensure_open()
        try:
            connection = await KafkaConnection.open(
                address, self._config, tls=self._tls, max_answer_bytes=self._config.max_frame_bytes
            )
        except (BrokerConnectionError, BrokerTimeoutError, AuthenticationError):
            failures.count += 1
            config = self._config
            pause_s = backoff_s(failures.count, config.reconnect_backoff_ms, config.reconnect_backoff_max_ms)
            failures.not_before = asyncio.get_running_loop().time() + pause_s
            raise
        self._failures.pop(address, None)
        return connection

    def _pause_s(self, address: Address) -> float:
        return self._failures[address].not_before - asyncio.get_running_loop().time()

    def _close_expired(self) -> None:
        """Close replaced connections whose last request is answered."""
        for connection in [each for each in self._expiring if each.is_idle]:
            connection.close()
            self._expiring.remove(connection)

    def _ensure_open(self) -> None:
        if self._is_closed:
            raise ClosedError("used after close()")
