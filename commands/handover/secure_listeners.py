"""Security of a configuration in the server.properties for Kafka: its listeners, its authorizer, its login modules.

A configuration without TLS, SASL and authorizer has none of this: Kafka then gets one PLAINTEXT listener. Otherwise
Kafka serves the clients' listeners as they are, and its own connections take two listeners of their own:

    INTERNAL     PLAINTEXT at --listener, on loopback: requests of the broker to itself
    CONTROLLER   PLAINTEXT at --controller-listener, on loopback

Kafka's requests over them come from User:ANONYMOUS, which has to be a super user. That is refused where clients from
elsewhere could be ANONYMOUS, too. Kafka also wants a login module for SCRAM, which Barnabas does without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.config.errors import ConfigError
from barnabas.config.listeners import PLAINTEXT, SSL, Listener
from barnabas.config.loader import load
from barnabas.config.properties_file import decode, parse_properties
from barnabas.config.security.security_checks import super_users

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.config import BrokerConfig

INTERNAL: Final = "INTERNAL"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_ANONYMOUS: Final = "User:ANONYMOUS"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class SecureListeners(NamedTuple):
    """Properties that replace those for one PLAINTEXT listener, and sentences for the user."""

    listeners: tuple[Listener, ...]
    protocols: Mapping[str, str]
    properties: Mapping[str, str]
    notes: tuple[str, ...]


def secure_listeners(config_file: Path, internal: Listener, controller: Listener) -> SecureListeners | None:
    """Return the security of a configuration file, None without any. Raises CommandFailure, OSError, BadLineError."""
    texts = {entry.key: entry.value for entry in parse_properties(decode(config_file.read_bytes()))}
    protocol_texts = texts.get("listeners", "") + texts.get("listener.security.protocol.map", "")
    if "SSL" not in protocol_texts and "SASL" not in protocol_texts and not texts.get("authorizer.class.name"):
        return None  # the file need not be complete
    try:
        config = load(config_file=config_file)
    except ConfigError as error:
        raise CommandFailure(str(error), ExitCode.USAGE) from error
    protocols = {each.name: config.security_protocol(each.name) for each in config.listeners}
    authorizes = bool(config.get_str("authorizer.class.name"))
    if not authorizes and set(protocols.values()) == {PLAINTEXT}:
        return None
    for listener in config.listeners:
        if listener.port in (internal.port, controller.port):
            raise CommandFailure(
                f"{listener} has the port of Kafka's own listeners: name free ones with --listener and "
                "--controller-listener",
                ExitCode.USAGE,
            )
    properties = _login_modules(config, protocols)
    notes = [f"Kafka's requests to itself take {INTERNAL}://{internal.host}:{internal.port}, without authentication"]
    if authorizes:
        _ensure_local(internal, controller)
        _ensure_authenticated(config, protocols)
        users = super_users(config.get_str("super.users"))
        properties["super.users"] = ";".join(dict.fromkeys((*users, _ANONYMOUS)))
        notes.append(
            f"{_ANONYMOUS} is a super user, because Kafka's own requests come from it: every program on this machine "
            "that reaches those ports may do everything; give them TLS or SASL if others use the machine"
        )
    return SecureListeners(config.listeners, protocols, properties, tuple(notes))


def _login_modules(config: BrokerConfig, protocols: Mapping[str, str]) -> dict[str, str]:
    """Return the SCRAM login modules that Kafka needs and the configuration does not have."""
    found = {}
    for listener in config.listeners:
        if not protocols[listener.name].startswith("SASL_"):
            continue
        for mechanism in config.listener_properties(listener.name).get_list("sasl.enabled.mechanisms"):
            name = f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
            if mechanism.startswith("SCRAM") and not config.is_set(name):
                found[name] = _SCRAM_MODULE
    return found


def _ensure_local(*own: Listener) -> None:
    for listener in own:
        if listener.host not in _LOOPBACK:
            raise CommandFailure(
                f"{listener.host}:{listener.port} is not on loopback, and Kafka's own requests over it have no "
                "authentication: with an authorizer, every peer there would be a super user",
                ExitCode.USAGE,
            )


def _ensure_authenticated(config: BrokerConfig, protocols: Mapping[str, str]) -> None:
    for listener in config.listeners:
        protocol = protocols[listener.name]
        view = config.listener_properties(listener.name)
        if protocol == PLAINTEXT or (protocol == SSL and view.get_str("ssl.client.auth") != "required"):
            raise CommandFailure(
                f"{listener} ({protocol}) has clients without authentication, and Kafka's own requests need "
                f"{_ANONYMOUS} as a super user: these clients could do everything; remove the listener from the file, "
                "or write Kafka's server.properties yourself",
                ExitCode.USAGE,
            )
