"""The work of `barnabas doctor client`: tries each step of a client's connection and reports problems in sentences.

A client connects to its bootstrap address only to learn the brokers' addresses, and then connects to those in the
Metadata response. So a broker can be reachable and still unusable: its advertised address may be a container's name,
this machine's loopback, or another broker.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from barnabas.clients.addresses import Address, parse_bootstrap
from barnabas.commands.doctor.conversation import KAFKA, NATIVE, Conversation, NoAnswerError
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.metadata import BrokerAddress

_SPOKEN = {KAFKA: "Kafka's protocol", NATIVE: "the native protocol alone: Kafka's clients cannot use it"}
_NEEDED = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA)


@dataclass(slots=True)
class Report:
    """`steps` succeeded; each of `problems` is a sentence, with the remedy if that is known."""

    bootstrap: str
    is_connected: bool = False
    dialect: str | None = None
    cluster_id: str | None = None
    brokers: list[dict[str, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "bootstrap": self.bootstrap,
            "protocol": self.dialect,
            "cluster_id": self.cluster_id,
            "brokers": self.brokers,
            "steps": self.steps,
            "problems": self.problems,
        }


def examine(bootstrap: str, timeout_s: float) -> Report:
    """Try the addresses of `bootstrap` in order, then every broker in the metadata of the first one that answers."""
    report = Report(bootstrap)
    for address in parse_bootstrap(bootstrap):
        _examine_bootstrap(report, address, timeout_s)
        if report.is_connected:
            break
    return report


def _examine_bootstrap(report: Report, address: Address, timeout_s: float) -> None:
    with _reporting(report, f"a client begins at {address}"):
        host_addresses = _look_up(address)
        conversation = Conversation.open(address, timeout_s)
        with conversation:
            report.is_connected = True
            report.steps.append(f"{address}: connected ({', '.join(host_addresses)})")
            peer = conversation.peer_host
            hello = conversation.greet()
            report.dialect = hello.dialect
            report.steps.append(f"{address}: speaks {_SPOKEN[hello.dialect]}, {len(hello.versions)} APIs")
            for api in _NEEDED:
                if api not in hello.versions:
                    report.problems.append(f"{address} does not offer {api.name}, which every client needs.")
            view = conversation.cluster()
        report.cluster_id = view.cluster_id
        report.steps.append(f"{address}: cluster {view.cluster_id}, {len(view.brokers)} broker(s)")
        if not view.brokers:
            report.problems.append(f"{address} names no broker in its metadata: a client has nowhere to go.")
        for broker in view.brokers:
            _examine_broker(report, broker, peer, timeout_s)


def _examine_broker(report: Report, broker: BrokerAddress, bootstrap_peer: str, timeout_s: float) -> None:
    """Try a client's second connection, to the advertised address."""
    address = Address(broker.host, broker.port)
    entry: dict[str, Any] = {"node_id": broker.node_id, "host": broker.host, "port": broker.port, "reachable": False}
    report.brokers.append(entry)
    subject = f"broker {broker.node_id} advertises {address} to clients"
    with _reporting(report, subject, _advice(broker, bootstrap_peer)):
        if _is_unspecified(broker.host):
            raise NoAnswerError("but that means all addresses of a machine, and clients cannot connect to it")
        entry["addresses"] = _look_up(address)
        with Conversation.open(address, timeout_s) as conversation:
            entry["reachable"] = True
            conversation.greet()
            view = conversation.cluster()
        entry["cluster_id"] = view.cluster_id
        if view.cluster_id != report.cluster_id:
            raise NoAnswerError(f"but the broker there belongs to cluster {view.cluster_id}, not {report.cluster_id}")
        if broker.node_id not in {each.node_id for each in view.brokers}:
            raise NoAnswerError(f"but the cluster of the broker there has no broker {broker.node_id}")
        if _is_loopback(entry["addresses"]) and not _is_loopback([bootstrap_peer]):
            raise NoAnswerError("which is each client's own machine: clients on other machines cannot reach the broker")
        report.steps.append(f"broker {broker.node_id}: {address} can be reached and belongs to the cluster")


@contextmanager
def _reporting(report: Report, subject: str, advice: str = "") -> Iterator[None]:
    """Report an exception inside as one problem."""
    try:
        yield
    except NoAnswerError as error:
        report.problems.append(f"{subject}, {error}.{advice}")
    except DecodeError as error:
        report.problems.append(f"{subject}, but its answer cannot be read: {error}.{advice}")


def _look_up(address: Address) -> list[str]:
    """Resolve a host's name to its IP addresses."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NoAnswerError(f"but the name {address.host} cannot be resolved here ({reason})") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _advice(broker: BrokerAddress, bootstrap_peer: str) -> str:
    """The usual remedy for an advertised address that does not work."""
    remedy = " Set advertised.listeners to an address that clients reach."
    if _is_ip(broker.host) or broker.host == "localhost":
        return remedy
    if "." not in broker.host:
        return (
            f" {broker.host} looks like the name of a container or machine that is known in its own network only."
            " Set advertised.listeners to an address that clients reach, or add a listener for clients outside"
            " (listeners=PLAINTEXT://:9092,INSIDE://:29092 with one advertised address for each)."
        )
    return f"{remedy} (The broker itself answered at {bootstrap_peer}.)"


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_unspecified(host: str) -> bool:
    return not host or (_is_ip(host) and ipaddress.ip_address(host).is_unspecified)


def _is_loopback(addresses: list[str]) -> bool:
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)
