"""The work of `barnabas doctor client`: tries each step of a client's connection and reports problems in sentences.

A client connects to its bootstrap address only to learn the brokers' addresses, and then connects to those in the
Metadata response. So a broker can be reachable and still unusable: its advertised address may be a container's name,
this machine's loopback, or another broker.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from barnabas.clients.addresses import Address, parse_bootstrap
from barnabas.clients.network.versions import VersionRanges
from barnabas.clients.security.settings import SecuritySettings
from barnabas.clients.security.tls_context import create_context
from barnabas.commands.doctor.access import Resources, report_access, report_group_access
from barnabas.commands.doctor.connecting import ConnectionSettings
from barnabas.commands.doctor.conversation import Conversation
from barnabas.commands.doctor.login import agree_on_mechanism, log_in
from barnabas.commands.doctor.report import Report
from barnabas.commands.doctor.steps import NoAnswerError, Step
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.nodes import BrokerAddress

_NAMES_MAX = 5
_NEEDED = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA)


def examine(bootstrap: str, timeout_s: float, security: SecuritySettings, resources: Resources) -> Report:
    """Try the addresses of `bootstrap` in order, then every broker in the metadata of the first one that answers.

    Raises ClientConfigError for a key or trust store that cannot be used.
    """
    context = None if security.tls is None else create_context(security.tls)
    settings = ConnectionSettings(security, context, timeout_s)
    report = Report(bootstrap, security.protocol)
    for address in parse_bootstrap(bootstrap):
        _examine_bootstrap(report, address, settings, resources)
        if report.is_connected:
            break
    return report


def _examine_bootstrap(report: Report, address: Address, settings: ConnectionSettings, resources: Resources) -> None:
    with _reporting(report, f"a client begins at {address}"):
        report.step = Step.LOOK_UP
        host_addresses = _look_up(address)
        report.step = Step.TCP
        with Conversation(address, settings) as conversation:
            report.is_connected = True
            report.steps.append(f"{address}: connected ({', '.join(host_addresses)})")
            peer = conversation.peer_host
            served = _begin(report, address, conversation, settings, report.steps)
            for api in _NEEDED:
                if api not in served:
                    report.add_problem(f"{address} does not offer {api.name}, which every client needs.")
            report.step = Step.METADATA
            view = conversation.cluster()
            report.cluster_id = view.cluster_id
            report.steps.append(f"{address}: cluster {view.cluster_id}, {len(view.brokers)} broker(s)")
            if not view.brokers:
                report.add_problem(f"{address} names no broker in its metadata: a client has nowhere to go.")
            _report_leaders(report, conversation.partitions_without_leader())
            report.step = Step.AUTHORIZATION
            report_access(report, conversation.access(resources.topics), settings.security)
            report_group_access(report, conversation.group_access(resources.groups), settings.security)
        for broker in view.brokers:
            _examine_broker(report, broker, peer, settings)


def _report_leaders(report: Report, missing: Sequence[str]) -> None:
    if missing:
        names = ", ".join(missing[:_NAMES_MAX]) + (", ..." if len(missing) > _NAMES_MAX else "")
        report.add_problem(
            f"{len(missing)} partition(s) have no leader, and cannot be used: {names}. With __consumer_offsets or"
            " __transaction_state, some groups or transactional ids wait. The broker's log says why: a full disk, or a"
            " log directory that has failed."
        )


def _begin(
    report: Report, address: Address, conversation: Conversation, settings: ConnectionSettings, steps: list[str]
) -> VersionRanges:
    """Take the steps between TCP and Metadata; append those that succeeded to `steps`. Return the served versions."""
    if settings.context is not None:
        report.step = Step.TLS
        steps.append(f"{address}: {conversation.secure()}")
    report.step = Step.API_VERSIONS
    served = conversation.greet()
    steps.append(f"{address}: speaks Kafka's protocol, {len(served)} APIs")
    if settings.security.mechanism is not None:
        report.step = Step.SASL_HANDSHAKE
        offered = agree_on_mechanism(conversation, settings.security, str(address))
        steps.append(f"{address}: offers the mechanism(s) {', '.join(offered)}")
        report.step = Step.LOGIN
        steps.append(f"{address}: {log_in(conversation, settings.security, str(address))}")
    return served


def _examine_broker(report: Report, broker: BrokerAddress, bootstrap_peer: str, settings: ConnectionSettings) -> None:
    """Try a client's second connection, to the advertised address."""
    address = Address(broker.host, broker.port)
    entry: dict[str, Any] = {"node_id": broker.node_id, "host": broker.host, "port": broker.port, "reachable": False}
    report.brokers.append(entry)
    subject = f"broker {broker.node_id} advertises {address} to clients"
    with _reporting(report, subject, _advice(broker, bootstrap_peer)):
        report.step = Step.ADVERTISED_ADDRESS
        if _is_unspecified(broker.host):
            raise NoAnswerError("but that means all addresses of a machine, and clients cannot connect to it")
        report.step = Step.LOOK_UP
        entry["addresses"] = _look_up(address)
        report.step = Step.TCP
        with Conversation(address, settings) as conversation:
            entry["reachable"] = True
            _begin(report, address, conversation, settings, [])
            report.step = Step.METADATA
            view = conversation.cluster()
        report.step = Step.ADVERTISED_ADDRESS
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
        report.add_problem(f"{subject}, {error}.{advice}", error.step)
    except DecodeError as error:
        report.add_problem(f"{subject}, but its answer cannot be read: {error}.{advice}")


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
