"""SecuritySettings: how a client connects. Names of properties and their defaults are those of Kafka's clients.

    security.protocol    PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    sasl.mechanism       PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
    sasl.jaas.config     the login module with the user and password, or the OAuth client
    ssl.*                trusted authorities and the client's certificate

A delegation token logs in by SCRAM, with the option tokenauth="true". Short names exist for programs that have no
properties file: sasl.username and sasl.password, as in librdkafka, instead of sasl.jaas.config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from barnabas.clients.errors import ClientConfigError
from barnabas.clients.security.names import ensure_known
from barnabas.config.listeners import PLAINTEXT, PROTOCOLS
from barnabas.config.properties_file import BadLineError, decode, parse_properties
from barnabas.config.security.jaas import (
    OAUTHBEARER_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    JaasEntry,
    JaasError,
    parse_jaas,
)
from barnabas.config.security.secret import Secret
from barnabas.config.tables.tls_properties import STORE_PROPERTIES
from barnabas.protocol.sasl.oauthbearer import OAUTHBEARER
from barnabas.protocol.sasl.plain import PLAIN
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import MappingProperties, TlsSettings

MECHANISMS: Final[Mapping[str, str]] = {
    PLAIN: PLAIN_MODULE,
    **dict.fromkeys(SCRAM_MECHANISMS, SCRAM_MODULE),
    OAUTHBEARER: OAUTHBEARER_MODULE,
}
"""Login modules by mechanism."""

TOKEN_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"

NAMES: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.username",
        "sasl.password",
        TOKEN_ENDPOINT,
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.scope",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        *STORE_PROPERTIES,
    }
)
"""The properties that `from_properties` reads."""


@dataclass(frozen=True, slots=True)
class Password:
    """A user and its password, or a delegation token's id and HMAC."""

    user: str
    password: Secret
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Where access tokens come from: `url` is an https: endpoint or a file: with a token."""

    url: str
    client_id: str = ""
    client_secret: Secret | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """TLS if `tls` is set, SASL if `mechanism` is."""

    tls: TlsSettings | None = None
    mechanism: str | None = None
    login: Password | OAuthClient | None = None

    @property
    def protocol(self) -> str:
        """The security protocol."""
        base = PLAINTEXT if self.tls is None else "SSL"
        return base if self.mechanism is None else f"SASL_{base}"

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read the properties of a Kafka client; others are ignored. Opens no files.

        Raises ClientConfigError, which names the property and shows no password, also for a name of `security.*`,
        `sasl.*` or `ssl.*` that Kafka does not have.
        """
        ensure_known(properties, NAMES)
        protocol = properties.get("security.protocol", PLAINTEXT).upper()
        if protocol not in PROTOCOLS:
            raise ClientConfigError(f"security.protocol={protocol} is not one of {', '.join(PROTOCOLS)}")
        tls = None
        if protocol.endswith("SSL"):
            try:
                tls = TlsSettings.of_client(MappingProperties(properties))
            except TlsConfigError as error:
                raise ClientConfigError(str(error)) from None
        if not protocol.startswith("SASL_"):
            return cls(tls=tls)
        mechanism = properties.get("sasl.mechanism", "GSSAPI").upper()
        if mechanism not in MECHANISMS:
            reason = " (Kafka's default)" if "sasl.mechanism" not in properties else ""
            raise ClientConfigError(
                f"sasl.mechanism={mechanism}{reason} is not supported; the mechanisms are {', '.join(MECHANISMS)}"
            )
        return cls(tls=tls, mechanism=mechanism, login=_login(properties, mechanism))

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read the file of properties that Kafka's tools take as `--command-config`, with its config providers.

        Raises OSError, and ClientConfigError as `from_properties`, also for a line that is not a property and for a
        reference without a value.
        """
        try:
            entries = parse_properties(decode(Path(path).read_bytes()))
        except BadLineError as error:
            raise ClientConfigError(f"{path}, line {error.line}: {error}") from None
        properties = {entry.key: entry.value for entry in entries}
        if "config.providers" in properties:
            from barnabas.clients.security.references import resolved

            properties = resolved(properties, NAMES, str(path))
        return cls.from_properties(properties)


PLAINTEXT_SETTINGS: Final = SecuritySettings()
"""Without TLS and SASL."""


def _login(properties: Mapping[str, str], mechanism: str) -> Password | OAuthClient:
    entry = _jaas(properties, mechanism)
    if mechanism == OAUTHBEARER:
        return _oauth(properties, {} if entry is None else entry.options)
    if entry is None:
        user, password = properties.get("sasl.username"), properties.get("sasl.password")
        if user is None or password is None:
            raise ClientConfigError(
                f"sasl.mechanism={mechanism} needs a user: set sasl.jaas.config to "
                f'{MECHANISMS[mechanism]} required username="<user>" password="<password>";'
            )
        return Password(user, Secret(password))
    user, password = entry.options.get("username"), entry.options.get("password")
    if user is None or password is None:
        raise ClientConfigError("sasl.jaas.config has no username, or no password")
    is_token = entry.options.get("tokenauth", "false").lower() == "true"
    if is_token and mechanism not in SCRAM_MECHANISMS:
        raise ClientConfigError(
            f'sasl.jaas.config has tokenauth="true", which needs a SCRAM mechanism, not {mechanism}'
        )
    return Password(user, Secret(password), is_token)


def _jaas(properties: Mapping[str, str], mechanism: str) -> JaasEntry | None:
    text = properties.get("sasl.jaas.config")
    if text is None:
        return None
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ClientConfigError(f"sasl.jaas.config: {error}") from None
    if entry.module != MECHANISMS[mechanism]:
        raise ClientConfigError(
            f"sasl.jaas.config has {entry.module}, and sasl.mechanism={mechanism} needs {MECHANISMS[mechanism]}"
        )
    return entry


def _oauth(properties: Mapping[str, str], options: Mapping[str, str]) -> OAuthClient:
    """Kafka's newer properties win over the options of the login module."""
    url = properties.get(TOKEN_ENDPOINT)
    if url is None:
        raise ClientConfigError(f"sasl.mechanism=OAUTHBEARER needs {TOKEN_ENDPOINT}: an https: or a file: URL")
    if url.startswith("file:"):
        return OAuthClient(url)
    if not url.startswith("https://"):
        raise ClientConfigError(f"{TOKEN_ENDPOINT}={url} is neither an https: nor a file: URL")
    client_id = properties.get("sasl.oauthbearer.client.credentials.client.id", options.get("clientId"))
    secret = properties.get("sasl.oauthbearer.client.credentials.client.secret", options.get("clientSecret"))
    if not client_id or not secret:
        raise ClientConfigError(
            "sasl.mechanism=OAUTHBEARER needs sasl.oauthbearer.client.credentials.client.id and .client.secret, or "
            "clientId and clientSecret in sasl.jaas.config"
        )
    return OAuthClient(url, client_id, Secret(secret), properties.get("sasl.oauthbearer.scope", options.get("scope")))
