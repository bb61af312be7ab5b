"""Checks of the security of a whole configuration: refusals, and warnings about settings without effect.

What Kafka would load by class name, or would only find out when the first client connects, is refused at start. Key
stores are checked where they are read. Source: Kafka's ChannelBuilders, JaasContext, SaslChannelBuilder and
StandardAuthorizer; comments give the reasons of our own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from barnabas.config import names
from barnabas.config.errors import ConfigError
from barnabas.config.listeners import METRICS, PLAINTEXT, Listener
from barnabas.config.security.jaas import (
    OAUTHBEARER_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    JaasEntry,
    JaasError,
    parse_jaas,
)
from barnabas.config.security.listener_view import CLIENT_AUTH, OF_MECHANISM_ONLY, ListenerView
from barnabas.config.tables.sasl_properties import OAUTH_CALLBACK_HANDLER
from barnabas.config.value import trim

if TYPE_CHECKING:
    from barnabas.config.broker_config import BrokerConfig

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    OAUTHBEARER: OAUTHBEARER_MODULE,
}
"""Mechanisms that are served, with their login modules."""

_JAAS: Final = "sasl.jaas.config"
_HANDLER: Final = "sasl.server.callback.handler.class"
_JWKS: Final = "sasl.oauthbearer.jwks.endpoint.url"
_REFUSED: Final = ("ssl.engine.factory.class", "client.quota.callback.class")
"""Classes of users that Kafka loads. Without them the broker would enforce something else than its owner wrote."""


def ensure_secure(config: BrokerConfig) -> None:
    """Refuse settings that cannot be obeyed. Raises ConfigError."""
    for name, value in config.unserved.items():
        if name.endswith(_REFUSED) and value.value:
            raise ConfigError(f"{name} in {value.origin}: Java classes are not loaded; remove it")
    for user in super_users(config.get_str("super.users")):
        kind, colon, name = user.partition(":")
        if not (kind and colon and name):
            raise ConfigError(f"{config.setting('super.users')}: {user} is not of the form User:name")
    if config.get_bool("ignore.security") and config.get_str("authorizer.class.name"):
        raise ConfigError(
            f"{config.setting('ignore.security')} and {config.setting('authorizer.class.name')} contradict each other"
        )
    for listener in config.listeners:
        view = config.listener_properties(listener.name)
        if view.security_protocol.startswith("SASL_"):
            for mechanism in _mechanisms(view, listener):
                _ensure_login(view, listener, mechanism)


def super_users(text: str) -> tuple[str, ...]:
    """Return the principals that a value of super.users names."""
    return tuple(filter(None, map(trim, text.split(";"))))


def warnings(config: BrokerConfig) -> Iterator[str]:
    """Yield sentences about settings that protect less than they seem to, or not at all."""
    protocols = {each.name: config.security_protocol(each.name) for each in config.listeners}
    for listener in config.listeners:
        protocol = protocols[listener.name]
        if protocol.endswith("SSL") or _is_loopback(listener):
            continue
        if protocol == PLAINTEXT:
            yield f"{listener} is open to the network without encryption and without authentication (PLAINTEXT)"
        else:
            yield (
                f"{listener} is open to the network without encryption (SASL_PLAINTEXT): records, and the passwords "
                "and tokens of PLAIN and OAUTHBEARER, can be read on the way"
            )
    if any(each.startswith("SASL_") for each in protocols.values()):
        yield from _about_sasl(config)
    if config.get_str("super.users") and not config.get_str("authorizer.class.name"):
        yield f"{config.setting('super.users')} has no effect: authorizer.class.name is not set"
    yield from _prefixes_without_effect(config)
    yield from _readable_secrets(config)


def holds_secret(name: str) -> bool:
    """Return whether a property, served or not, with or without a prefix, has a password or a key."""
    known = names.served_property(name)
    if known is not None:
        return known.is_sensitive
    return name.endswith((".password", ".passphrase", ".secret", ".key", _JAAS))


def _mechanisms(view: ListenerView, listener: Listener) -> tuple[str, ...]:
    setting = view.setting("sasl.enabled.mechanisms")
    mechanisms = view.get_list("sasl.enabled.mechanisms")
    served = ", ".join(MODULES)
    if not mechanisms:
        raise ConfigError(f"{setting}: {listener} requires SASL and has no mechanism; Barnabas serves {served}")
    for mechanism in mechanisms:
        if mechanism not in MODULES:
            what = "GSSAPI (Kerberos)" if mechanism == "GSSAPI" else mechanism
            raise ConfigError(
                f"{setting}: {listener} requires SASL with {what}, which Barnabas does not serve; set "
                f"{names.listener_prefix(listener.name)}sasl.enabled.mechanisms to some of {served}"
            )
    return mechanisms


def _ensure_login(view: ListenerView, listener: Listener, mechanism: str) -> None:
    name = f"{names.listener_prefix(listener.name)}{mechanism.lower()}.{_JAAS}"
    entry = _login_module(view, mechanism, name)
    if entry is None and mechanism == PLAIN:
        raise ConfigError(
            f'{listener} serves PLAIN and has no users; set {name}={PLAIN_MODULE} required user_<name>="<password>";'
        )
    handler = view.get_str(_HANDLER, mechanism=mechanism)
    if mechanism != OAUTHBEARER:
        if handler is not None:
            raise ConfigError(
                f"{view.setting(_HANDLER, mechanism=mechanism)}: it validates OAUTHBEARER tokens, not {mechanism}"
            )
        return
    prefix = names.listener_prefix(listener.name) + "oauthbearer."
    if handler is None:
        # Kafka's default accepts tokens that nobody signed.
        raise ConfigError(
            f"{listener} serves OAUTHBEARER, and {prefix}{_HANDLER} is not set; set it to {OAUTH_CALLBACK_HANDLER}, "
            "because Kafka's default accepts unsigned tokens"
        )
    url = view.get_str(_JWKS, mechanism=mechanism)
    if not url:
        raise ConfigError(f"{listener} serves OAUTHBEARER, and {prefix}{_JWKS} is not set: no token could be verified")
    parts = urlsplit(url)
    # The keys decide who is believed: without TLS anyone on the way can replace them.
    if parts.scheme not in ("https", "file") and (parts.scheme, _is_local_name(parts.hostname)) != ("http", True):
        raise ConfigError(f"{view.setting(_JWKS, mechanism=mechanism)}: it must be an https: or a file: URL")


def _login_module(view: ListenerView, mechanism: str, name: str) -> JaasEntry | None:
    secret = view.get_secret(_JAAS, mechanism=mechanism)
    if secret is None:
        return None
    try:
        entry = parse_jaas(secret.reveal())
    except JaasError as error:
        raise ConfigError(f"{view.setting(_JAAS, mechanism=mechanism)}: {error}") from None
    if entry.module != MODULES[mechanism]:
        raise ConfigError(f"{name}: the login module of {mechanism} is {MODULES[mechanism]}")
    return entry


def _about_sasl(config: BrokerConfig) -> Iterator[str]:
    for name in OF_MECHANISM_ONLY:
        if config.is_set(name):
            yield (
                f"{config.setting(name)} has no effect: a broker reads it with the prefix of a listener and a "
                f"mechanism, as {names.listener_prefix('<listener>')}<mechanism>.{name}"
            )
    authorizes = bool(config.get_str("authorizer.class.name"))
    for listener in config.listeners:
        view = config.listener_properties(listener.name)
        protocol = view.security_protocol
        if not protocol.startswith("SASL_"):
            if not authorizes and (protocol == PLAINTEXT or view.get_str(CLIENT_AUTH) != "required"):
                yield (
                    f"{listener} ({protocol}) accepts clients without authentication, and authorizer.class.name is not "
                    "set: they may do everything, whatever the other listeners require"
                )
            continue
        if protocol == "SASL_SSL" and config.is_set(CLIENT_AUTH) and config.get_str(CLIENT_AUTH) != "none":
            prefixed = names.listener_prefix(listener.name) + CLIENT_AUTH
            if not config.is_set(prefixed):
                yield f"{config.setting(CLIENT_AUTH)} does not apply to {listener} (SASL_SSL); set {prefixed} for it"
        for mechanism in view.get_list("sasl.enabled.mechanisms"):
            if mechanism == OAUTHBEARER:
                yield from _about_tokens(view, listener)


def _about_tokens(view: ListenerView, listener: Listener) -> Iterator[str]:
    if not view.get_str("sasl.oauthbearer.expected.issuer", mechanism=OAUTHBEARER):
        yield f"sasl.oauthbearer.expected.issuer is not set for {listener}: tokens of any issuer are accepted"
    if not view.get_list("sasl.oauthbearer.expected.audience", mechanism=OAUTHBEARER):
        yield (
            f"sasl.oauthbearer.expected.audience is not set for {listener}: tokens that were issued for other "
            "applications are accepted"
        )


def _prefixes_without_effect(config: BrokerConfig) -> Iterator[str]:
    """Yield settings whose prefix fits no listener, or no mechanism of it."""
    listeners = [each.name for each in config.listeners]
    if config.metrics_listener is not None:
        listeners.append(METRICS)
    controllers = tuple(names.listener_prefix(each) for each in config.get_list("controller.listener.names"))
    for name, known, value in config.prefixed():
        if name.startswith(controllers):
            continue
        middles = [
            name.removeprefix(names.listener_prefix(each)).removesuffix(known.name).removesuffix(".")
            for each in listeners
            if name.startswith(names.listener_prefix(each))
        ]
        if not middles:
            yield f"{name} in {value.origin} has no effect: no listener has this prefix ({', '.join(listeners)})"
        elif "" in middles:
            if known.name in OF_MECHANISM_ONLY:
                yield f"{name} in {value.origin} has no effect: the name lacks the mechanism before {known.name}"
        elif not (known.per_mechanism and any(each.upper() in MODULES for each in middles)):
            yield f"{name} in {value.origin} has no effect: {middles[0]} is not a mechanism that reads {known.name}"


def _readable_secrets(config: BrokerConfig) -> Iterator[str]:
    """Yield files with keys or passwords that every user of the machine can read."""
    files = {}
    for listener in (*(each.name for each in config.listeners), METRICS):
        if listener == METRICS and config.metrics_listener is None:
            continue
        view = config.listener_properties(listener)
        if view.security_protocol.endswith("SSL"):
            location = view.get_str("ssl.keystore.location")
            if location:
                files[location] = view.setting("ssl.keystore.location")
    for location, setting in files.items():
        if is_readable_by_others(location):
            yield f"{setting} can be read by every user of this machine; run chmod o-r {location}"
    for path in sorted(config.provider_files):
        if is_readable_by_others(path):
            yield f"{path}, of config.providers, can be read by every user of this machine; run chmod o-r {path}"


def is_readable_by_others(path: str | os.PathLike[str]) -> bool:
    """Return whether every user of the machine may read the file. False for a file that does not exist."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)
    except OSError:
        return False  # reported where the file is opened


def _is_loopback(listener: Listener) -> bool:
    return not listener.is_every_interface and _is_local_name(listener.host)


def _is_local_name(host: str | None) -> bool:
    return host is not None and (host == "localhost" or host.startswith("127.") or host == "::1")
