"""Rates of new connections: of the broker and a listener (max.connection.creation.rate), and of an address (a quota).

Above the rate of the broker or a listener, the listener accepts nothing for a while, and the connection waits with it.
A connection above the rate of its address is closed after a while, unread, and counts nowhere. No wait is longer than
a sample. Source: Kafka's ConnectionQuotas in SocketServer.scala.

Different from Kafka: the address is checked first, so that a flood from one address does not delay the others.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.session import java_host_address
from barnabas.broker.quotas.bucket import Buckets, RateBucket
from barnabas.broker.quotas.entities import IP, Sharing
from barnabas.broker.quotas.rate import SECOND_MS, Rate, WindowSizes
from barnabas.config.property import INT_MAX

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.security.image import QuotaEntity
    from barnabas.broker.quotas.probe import QuotaProbe

logger = logging.getLogger(__name__)

CONNECTION_RATE: Final = "connection_creation_rate"
"""Key of the quota, and its name in the metrics."""

_PROPERTY: Final = "max.connection.creation.rate"


class ConnectionRates:
    """Counts accepted connections. The event loop's thread only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: LiveConfig,
        clock_ms: Callable[[], int],
        probe: QuotaProbe,
        windows: WindowSizes,
    ) -> None:
        self._loop = loop
        self._config = config
        self._clock_ms = clock_ms
        self._probe = probe
        self._windows = windows
        self._broker = Rate(windows)
        self._listeners: dict[str, Rate] = {}
        self._addresses = Buckets(RateBucket, windows)
        self._bounds: dict[str, float] = {}
        self._default: float | None = None
        self._generation = 0

    def replace(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Use the quotas of addresses from now on. Those of host names follow once a thread has resolved them."""
        self._generation += 1
        bounds: dict[str | None, float] = {}
        for entity, values in quotas.items():
            if CONNECTION_RATE in values and len(entity) == 1 and entity[0][0] == IP:
                bounds[entity[0][1]] = values[CONNECTION_RATE]
        self._default = bounds.pop(None, None)
        self._bounds = {}
        names: dict[str, float] = {}
        for name, bound in bounds.items():
            if name is None:
                continue
            address = _as_address(name)
            if address is None:
                names[name] = bound
            else:
                self._bounds[address] = bound
        if names:
            self._resolve(names)

    def wait_of_address(self, host: str) -> float:
        """Count a connection from an address; return after how many seconds it is to be closed, 0 to accept it."""
        bound = self._bounds.get(host, self._default)
        if bound is None:
            return 0.0
        now_ms = self._clock_ms()
        bucket = self._addresses.get(Sharing(host, ""), bound, now_ms)
        throttle_ms = self._limited(bucket.record(1, now_ms))
        if throttle_ms > 0:
            bucket.rate.record(-1, now_ms)
        return throttle_ms / SECOND_MS

    def wait_of_listener(self, listener: str) -> float:
        """Count a connection of a listener; return how many seconds the listener accepts nothing."""
        of_broker = self._config.broker.get_int(_PROPERTY)
        of_listener = self._config.listener_properties(listener).get_int(_PROPERTY)
        now_ms = self._clock_ms()
        throttle_ms = 0
        if of_broker < INT_MAX:
            self._broker.record(1, now_ms)
            throttle_ms = self._broker.throttle_ms(of_broker, now_ms)
        if of_listener < INT_MAX:
            rate = self._listeners.setdefault(listener, Rate(self._windows))
            rate.record(1, now_ms)
            throttle_ms = max(throttle_ms, rate.throttle_ms(of_listener, now_ms))
        return self._limited(throttle_ms) / SECOND_MS

    def _limited(self, throttle_ms: int) -> int:
        if throttle_ms == 0:
            return 0
        throttle_ms = min(throttle_ms, self._windows.sample_ms)
        self._probe.throttled(CONNECTION_RATE, throttle_ms / SECOND_MS)
        return throttle_ms

    def _resolve(self, bounds: Mapping[str, float]) -> None:
        generation = self._generation

        def resolved(future: asyncio.Future[dict[str, float]]) -> None:
            if generation == self._generation and not future.cancelled():
                self._bounds = future.result() | self._bounds

        self._loop.run_in_executor(None, _addresses_of, bounds).add_done_callback(resolved)


def _as_address(name: str) -> str | None:
    """Return an address as sessions have it, None for the name of a host."""
    import ipaddress

    try:
        return java_host_address(str(ipaddress.ip_address(name)))
    except ValueError:
        return None


def _addresses_of(bounds: Mapping[str, float]) -> dict[str, float]:
    """Return the bounds by the addresses of hosts. Blocks."""
    return {java_host_address(address): bound for name, bound in bounds.items() for address in _resolved(name)}


def _resolved(name: str) -> Iterable[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        logger.warning("the quota %s of the host %r has no effect: %s", CONNECTION_RATE, name, error)
        return ()
    return [str(address[0]) for _, _, _, _, address in found]
