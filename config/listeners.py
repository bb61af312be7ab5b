"""Addresses: parsing and rules of `listeners`, `advertised.listeners` and `metrics.listener`.

Forms: host:port and NAME://host:port, comma-separated. An empty host means every interface (host "" here), port 0 a
free port; an IPv6 address is written in brackets. Names are converted to upper case, as in Kafka; the default is
PLAINTEXT. A listener in controller.listener.names is never opened. Source: Kafka's SocketServerConfigs,
AbstractKafkaConfig.

Different from Kafka: Kafka refuses 0.0.0.0 in `listeners` while `advertised.listeners` is unset, and advertises the
machine's canonical host name for an empty host. Here both advertise host "", which means: tell each client the address
at which it reached the broker. That is correct without a name server, except with address translation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

PLAINTEXT = "PLAINTEXT"
SSL = "SSL"
METRICS = "METRICS"
"""Name of the metrics listener in `listener.name.metrics.*`."""
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class BadListenerError(ValueError):
    """A fault in a list of listeners; `str(error)` ends a sentence that names the property and its origin."""


class Listener(NamedTuple):
    """One address.

    To open: `host` "" is every interface, `port` 0 a free port. To advertise: `host` "" is the address at which the
    client reached the broker, `port` 0 the opened port.
    """

    name: str
    host: str
    port: int

    @property
    def is_every_interface(self) -> bool:
        """Whether it is open on all addresses of the machine."""
        # Every spelling of ::, such as 0:0::0.
        return self.host in ("", "0.0.0.0") or (":" in self.host and not self.host.strip("0:"))

    def __str__(self) -> str:
        """As it is written in the configuration."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listener(text: str) -> Listener:
    """Parse `host:port` or `NAME://host:port`. Raises BadListenerError."""
    name, scheme, address = text.rpartition("://")
    if scheme and not name:
        raise BadListenerError(f"{text} has no name before ://")
    host, colon, port_text = address.rpartition(":")
    if not colon:
        raise BadListenerError(f"{text} has no port (host:port or NAME://host:port)")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            raise BadListenerError(f"{text}: only an IPv6 address is written in brackets")
    elif ":" in host:
        raise BadListenerError(f"{text}: an IPv6 address is written in brackets, as in [::1]:9092")
    if not (port_text.isascii() and port_text.isdigit()) or int(port_text[:6]) > 65535:
        raise BadListenerError(f"{text}: the port is not a number from 0 to 65535")
    if not all(character.isalnum() or character in "-._%:" for character in host):
        raise BadListenerError(f"{text}: {host} is not a host name or an address")
    if name and not all(character.isalnum() or character in "-._" for character in name):
        raise BadListenerError(f"{text}: {name} is not a listener name")
    return Listener(name.upper() or PLAINTEXT, host, int(port_text))


def parse_listeners(entries: Sequence[str]) -> tuple[Listener, ...]:
    """Parse listeners, whose names must differ. Raises BadListenerError."""
    listeners = tuple(parse_listener(entry) for entry in entries)
    names: dict[str, Listener] = {}
    for listener in listeners:
        if listener.name in names:
            raise BadListenerError(
                f"{names[listener.name]} and {listener} have the same name; name them, as in INSIDE://host:port"
            )
        names[listener.name] = listener
    return listeners


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parse `NAME:PROTOCOL,...` into upper-case name -> protocol. Raises BadListenerError."""
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in entry.partition(":"))
        if not (name and colon and protocol):
            raise BadListenerError(f"{entry} is not NAME:PROTOCOL")
        if protocol.upper() not in PROTOCOLS:
            raise BadListenerError(f"{protocol} is not a security protocol (Kafka has {', '.join(PROTOCOLS)})")
        if name.upper() in protocols:
            raise BadListenerError(f"{name.upper()} is mapped twice")
        protocols[name.upper()] = protocol.upper()
    return protocols


def security_protocols(listeners: Sequence[Listener], protocols: Mapping[str, str]) -> dict[str, str]:
    """Return the security protocol of each listener by its name. Raises BadListenerError for one without."""
    for listener in listeners:
        if listener.name not in protocols:
            raise BadListenerError(
                f"{listener.name} has no security protocol; "
                f"add {listener.name}:PLAINTEXT to listener.security.protocol.map, or another protocol"
            )
    return {listener.name: protocols[listener.name] for listener in listeners}


def ensure_distinct_ports(listeners: Sequence[Listener]) -> None:
    """Refuse equal ports, except for one IPv4 and one IPv6 address, as in Kafka. Raises BadListenerError."""
    by_port: dict[int, Listener] = {}
    pairs: set[int] = set()
    for listener in listeners:
        other = by_port.setdefault(listener.port, listener)
        if other is listener or listener.port == 0:
            continue
        if listener.port in pairs or {_family(other.host), _family(listener.host)} != {4, 6}:
            raise BadListenerError(f"{other} and {listener} have the same port")
        pairs.add(listener.port)


def advertise(opened: Sequence[Listener], advertised: Sequence[Listener] | None) -> dict[str, Listener]:
    """Return the address to advertise by listener name. Raises BadListenerError.

    `advertised` is None if unset. A listener missing in it advertises itself. Names of unopened listeners are refused,
    as in Kafka; the caller has removed those of controllers.
    """
    result = {each.name: Listener(each.name, "", each.port) if each.is_every_interface else each for each in opened}
    for listener in advertised or ():
        if listener.name not in result:
            raise BadListenerError(f"{listener.name} is not a name in listeners ({', '.join(result)})")
        if listener.host and listener.is_every_interface:
            raise BadListenerError(
                f"{listener}: no client can connect to {listener.host}; write a host name or an address"
            )
        result[listener.name] = listener
    return result


def _family(host: str) -> int | None:
    """Return 4 or 6 for an address, None for a host name or all interfaces of both families."""
    if ":" in host:
        return 6
    parts = host.split(".")
    return 4 if len(parts) == 4 and all(part.isascii() and part.isdigit() for part in parts) else None
