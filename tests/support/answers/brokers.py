"""The broker that plays the scripts of one room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.daemon import Daemon, start_daemon, with_fault

USERS = ("admin", "nobody", "owner")
_JAAS = " ".join(f'user_{user}="secret"' for user in USERS)
_FIX = "from tests.support.answers.fixed import fix\nfix()\n"
_OPEN = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS;User:admin",
    "delegation.token.secret.key=token-secret",
)
_UNSTABLE = "unstable.api.versions.enable=true"
_CONFIGS = {
    "bare": ("group.coordinator.rebalance.protocols=classic", "initial.features=transaction.version=2"),
    "small": (
        *_OPEN,
        *(f"group.{kind}max.size=1" for kind in ("", "consumer.", "share.", "streams.")),
        "group.share.max.share.sessions=1",
    ),
}


@contextmanager
def start_broker(directory: Path, room: str) -> Iterator[Daemon]:
    """Start a broker with a plain and a SASL listener.

    Clients of the plain listener may do everything; `nobody` of the SASL listener nothing. The room `bare` has neither
    an authorizer nor delegation tokens, and only classic groups; in `small` a group has one member at most. Only in
    `bare` and `cluster` unstable versions are not served.
    """
    with start_daemon(
        directory,
        "listeners=PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
        "advertised.listeners=PLAINTEXT://broker.test:9092,SECURE://broker.test:9093",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
        "listener.name.secure.plain.sasl.jaas.config="
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {_JAAS};",
        "log.dirs=/proc/self/cwd/data",
        "group.initial.rebalance.delay.ms=0",
        "offsets.topic.num.partitions=1",
        "transaction.state.log.num.partitions=1",
        "share.coordinator.state.topic.num.partitions=1",
        *_CONFIGS.get(room, _OPEN),
        *([_UNSTABLE] if room not in ("bare", "cluster") else []),
        environ=with_fault(directory, _FIX),
    ) as daemon:
        yield daemon


def ports_of(daemon: Daemon) -> dict[str, int]:
    """Return the ports of the latest start by the listeners' names."""
    found = re.findall(r"listener=(\w+)://127\.0\.0\.1:0 port=(\d+)", daemon.log)
    return {name: int(port) for name, port in found}
