"""State of one client connection beyond its current request: addresses, principal, client id, fetch positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.printable import printable
from barnabas.broker.security.principal import ANONYMOUS, Principal
from barnabas.config.listeners import PLAINTEXT
from barnabas.protocol.messages.api_key import OWN_SOFTWARE
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from barnabas.broker.quotas.session_quota import SessionQuota
    from barnabas.broker.security.access import SessionAccess
    from barnabas.config.listeners import Listener


def java_host_address(address: str) -> str:
    """Return a peer's address as Java's getHostAddress does: IPv6 unshortened, IPv4-mapped as IPv4."""
    if ":" not in address:
        return address
    import ipaddress  # late: most brokers listen on IPv4 addresses only

    parsed = ipaddress.IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.partition("%")[0].split(":"))
    return groups if parsed.scope_id is None else f"{groups}%{parsed.scope_id}"


class Session:
    """One connection. `listener` decides which address Metadata answers."""

    __slots__ = (
        "access",
        "client_id",
        "fetched_to",
        "host",
        "is_replaced_standby",
        "listener",
        "local_host",
        "local_port",
        "on_closed",
        "peer",
        "principal",
        "quota",
        "security_protocol",
        "software",
        "token_authenticated",
    )

    def __init__(self, listener: Listener, security_protocol: str = PLAINTEXT) -> None:
        self.listener = listener
        self.security_protocol = security_protocol
        self.principal: Principal = ANONYMOUS
        self.token_authenticated = False
        """Whether the client logged in with a delegation token: it may not create another one."""
        self.access: SessionAccess | None = None
        """None: the broker has no authorizer, and everything is allowed."""
        self.quota: SessionQuota | None = None
        """None: the broker has no quotas of users or client ids."""
        self.peer = "?"
        self.host = ""
        """The peer's address as Java prints it, without the port: the host of ACLs."""
        self.local_host = ""
        self.local_port = 0
        self.client_id: str | None = None
        self.software: tuple[str, str] | None = None
        """Name and version of the client's software, from ApiVersions version 3 or later."""
        self.is_replaced_standby = False
        """Whether the standby has a newer connection than this one."""
        self.on_closed: dict[object, Callable[[], None]] = {}
        """Called when the connection is closed, by what asked for it."""
        self.fetched_to: dict[TopicPartition, tuple[int, int]] = {}
        """By partition: offset of the last fetch that returned records, and the log end offset at that time."""

    @property
    def is_own(self) -> bool:
        """Whether the client's software is Barnabas' own."""
        return self.software is not None and self.software[0] == OWN_SOFTWARE

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Keep both addresses: the peer's for log lines, ours as the address by which the client reaches the broker."""
        address = transport.get_extra_info("peername")
        if address:
            self.peer = f"{address[0]}:{address[1]}"
            # The acceptor has set it, and counts connections by it.
            self.host = self.host or java_host_address(address[0])
        address = transport.get_extra_info("sockname")
        if address:
            # A dual-stack socket reports an IPv4 address as ::ffff:127.0.0.1, which not every client can parse.
            self.local_host, self.local_port = address[0].removeprefix("::ffff:"), address[1]

    def closed(self) -> None:
        """Note that the connection is closed. May be called repeatedly."""
        callbacks, self.on_closed = self.on_closed, {}
        for callback in callbacks.values():
            callback()

    def __str__(self) -> str:
        return self.peer if self.client_id is None else f"{self.peer} (client_id={printable(self.client_id)})"
