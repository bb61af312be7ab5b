"""The server.properties with which Apache Kafka starts on Barnabas's log directories, as a single node.

Topics, configs and feature levels are in the metadata log. The file has the rest: the node's id, its directories and
listeners, and a replication factor of 1 for internal topics, since there is one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from barnabas.broker.metadata.directories.report import DirectoryReport
from barnabas.commands.handover.secure_listeners import INTERNAL, SecureListeners
from barnabas.config import Listener
from barnabas.config.listeners import PLAINTEXT
from barnabas.config.properties_file import decode, parse_properties

CLIENT_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
_EVERYWHERE = ("", "0.0.0.0", "::")  # it is compared with, not bound
_OURS_ALONE = frozenset(
    {"adopt.topics", "ignore.security", "initial.features", "metrics.group.lag.enable", "metrics.listener", "read.only"}
)
_WRITTEN_ANEW = frozenset(
    {
        *("log.dir", "broker.id", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
        "security.inter.broker.protocol",  # Kafka takes it or inter.broker.listener.name, not both
    }
)
_ADVERTISED = "advertised.listeners"
_SEGMENT_BYTES = "log.segment.bytes"
LEAST_SEGMENT_BYTES = 1048576
"""Minimum of Apache Kafka 4.1 and later for topics; applied to brokers of 4.0 as well."""

_ONE_REPLICA = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
_ONE_REPLICA_SINCE_4 = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@dataclass(frozen=True, slots=True)
class Listening:
    """Listeners of Kafka's broker and its controller."""

    clients: Listener
    controller: Listener

    @property
    def bootstrap(self) -> str:
        """`host:port` for a client on the same machine."""
        host = "127.0.0.1" if self.clients.host in _EVERYWHERE else self.clients.host
        return f"{host}:{self.clients.port}"


def server_properties(
    report: DirectoryReport,
    kafka_version: str,
    listening: Listening,
    carried: Mapping[str, str],
    secure: SecureListeners | None = None,
) -> dict[str, str]:
    """Names and values in the order of the file. Required values override `carried`, the user's own.

    With `secure`, `listening.clients` is for Kafka itself.
    """
    node_id = report.node_id
    log_dirs = [each.path for each in report.directories if each.is_log_dir]
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "log.dirs": ",".join(map(str, log_dirs)),
        "listeners": f"{_address(CLIENT_LISTENER, listening.clients)},"
        f"{_address(CONTROLLER_LISTENER, listening.controller)}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": f"{CLIENT_LISTENER}:PLAINTEXT,{CONTROLLER_LISTENER}:PLAINTEXT",
        "inter.broker.listener.name": CLIENT_LISTENER,
    }
    if secure is not None:
        own = (listening.clients._replace(name=INTERNAL), listening.controller._replace(name=CONTROLLER_LISTENER))
        protocols = {**secure.protocols, INTERNAL: PLAINTEXT, CONTROLLER_LISTENER: PLAINTEXT}
        properties |= {
            "listeners": ",".join(map(str, (*secure.listeners, *own))),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
            "inter.broker.listener.name": INTERNAL,
            **secure.properties,
        }
        if _ADVERTISED in carried:
            properties[_ADVERTISED] = f"{carried[_ADVERTISED]},{own[0]}"
    if report.metadata_log_dir != log_dirs[0]:
        properties["metadata.log.dir"] = str(report.metadata_log_dir)
    controller = f"{listening.controller.host}:{listening.controller.port}"
    if report.replayed is not None and report.replayed.kraft_version:
        properties["controller.quorum.bootstrap.servers"] = controller
    else:
        properties["controller.quorum.voters"] = f"{node_id}@{controller}"
    properties |= _ONE_REPLICA
    if not kafka_version.startswith("3."):
        properties |= _ONE_REPLICA_SINCE_4
    return properties | {name: value for name, value in carried.items() if name not in properties}


def carried_properties(path: Path) -> dict[str, str]:
    """Read the properties of Barnabas's configuration file that Kafka has too. Raises OSError, BadLineError."""
    entries = parse_properties(decode(path.read_bytes()))
    skipped = _OURS_ALONE | _WRITTEN_ANEW
    return {entry.key: entry.value for entry in entries if entry.key not in skipped}


def fitted(
    carried: Mapping[str, str], kafka_version: str, *, keeps_listeners: bool = False
) -> tuple[dict[str, str], list[str]]:
    """Adapt `carried` to this Kafka and the file's listeners. Also returns a sentence for each change."""
    taken, said = dict(carried), []
    text = taken.get(_SEGMENT_BYTES, "")
    if not kafka_version.startswith("3.") and text.isdigit() and int(text) < LEAST_SEGMENT_BYTES:
        taken[_SEGMENT_BYTES] = str(LEAST_SEGMENT_BYTES)
        said.append(f"{_SEGMENT_BYTES} {text} -> {LEAST_SEGMENT_BYTES} (required by Apache Kafka {kafka_version})")
    advertised = taken.get(_ADVERTISED, "")
    names = {each.strip().partition("://")[0].upper() for each in advertised.split(",") if each.strip()}
    if names - {CLIENT_LISTENER} and not keeps_listeners:
        del taken[_ADVERTISED]
        said.append(
            f"{_ADVERTISED}={advertised} is left out: the file's listener for clients is {CLIENT_LISTENER}; add the "
            "addresses that other clients need"
        )
    return taken, said


def file_text(properties: Mapping[str, str], head: Iterable[str]) -> str:
    """Format the file: `head` as comments, then one property per line."""
    lines = [f"# {line}" for line in head]
    lines += [f"{name}={_escaped(value)}" for name, value in properties.items()]
    return "\n".join(lines) + "\n"


def _address(name: str, listener: Listener) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{name}://{host}:{listener.port}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
