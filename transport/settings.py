"""TlsSettings: the `ssl.*` properties of a listener or of a client, as one comparable value.

Which combinations are refused, and most sentences, follow Kafka's DefaultSslEngineFactory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from barnabas.config.security.secret import Secret
from barnabas.transport.errors import TlsConfigError

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"

CLIENT_AUTH: Final = ("none", "requested", "required")
"""Values of ssl.client.auth."""

DEFAULTS: Final[Mapping[str, str]] = {
    "ssl.keystore.type": JKS,
    "ssl.truststore.type": JKS,
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
    "ssl.client.auth": "none",
    "ssl.endpoint.identification.algorithm": "https",
}
"""Kafka's defaults, for configurations that are a plain mapping."""


class TlsProperties(Protocol):
    """Access to properties by Kafka's names. `ListenerProperties` is one implementation."""

    def get_str(self, name: str) -> str | None:
        """Return a text; None if it is neither set nor has a default."""
        ...

    def get_secret(self, name: str) -> Secret | None:
        """Return a password or a key."""
        ...

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return a list; empty if it is not set."""
        ...


class MappingProperties:
    """TlsProperties of a plain mapping, such as a client's properties file."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def get_str(self, name: str) -> str | None:
        """Return the value or Kafka's default."""
        return self._values.get(name, DEFAULTS.get(name))

    def get_secret(self, name: str) -> Secret | None:
        """Return the value as a secret."""
        text = self._values.get(name)
        return None if text is None else Secret(text)

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return the comma-separated value or Kafka's default."""
        return tuple(filter(None, (part.strip() for part in (self.get_str(name) or "").split(","))))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStore:
    """Where a private key and its certificate chain are: in a file, or inline as PEM."""

    type: str
    location: Path | None = None
    password: Secret | None = None
    key_password: Secret | None = None
    chain: Secret | None = None
    key: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStore:
    """Where trusted certificates are: in a file, or inline as PEM."""

    type: str
    location: Path | None = None
    password: Secret | None = None
    certificates: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The `ssl.*` properties of one end of a connection."""

    keystore: KeyStore | None = None
    truststore: TrustStore | None = None
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    client_auth: str = "none"
    """Of a server only."""
    verify_host_name: bool = True
    """Of a client only: ssl.endpoint.identification.algorithm is https."""

    @classmethod
    def of_server(cls, properties: TlsProperties) -> TlsSettings:
        """Read and check a server's properties, without opening files. Raises TlsConfigError."""
        client_auth = (properties.get_str("ssl.client.auth") or "none").lower()
        if client_auth not in CLIENT_AUTH:
            raise TlsConfigError(f"ssl.client.auth={client_auth} is not one of {', '.join(CLIENT_AUTH)}")
        return replace(cls._common(properties), client_auth=client_auth)

    @classmethod
    def of_client(cls, properties: TlsProperties) -> TlsSettings:
        """Read and check a client's properties, without opening files. Raises TlsConfigError."""
        algorithm = (properties.get_str("ssl.endpoint.identification.algorithm") or "").lower()
        if algorithm not in ("", "https"):
            raise TlsConfigError(f"ssl.endpoint.identification.algorithm={algorithm} is neither https nor empty")
        return replace(cls._common(properties), verify_host_name=algorithm == "https")

    @classmethod
    def _common(cls, properties: TlsProperties) -> TlsSettings:
        return cls(
            keystore=_key_store(properties),
            truststore=_trust_store(properties),
            protocols=properties.get_list("ssl.enabled.protocols") or ("TLSv1.2", "TLSv1.3"),
            cipher_suites=properties.get_list("ssl.cipher.suites"),
        )

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the settings name."""
        locations = (store.location for store in (self.keystore, self.truststore) if store is not None)
        return tuple(location for location in locations if location is not None)


def _key_store(properties: TlsProperties) -> KeyStore | None:
    kind = _type(properties, "ssl.keystore.type")
    location = properties.get_str("ssl.keystore.location")
    password = properties.get_secret("ssl.keystore.password")
    chain = properties.get_secret("ssl.keystore.certificate.chain")
    key = properties.get_secret("ssl.keystore.key")
    if key is not None:
        if kind != PEM:
            raise TlsConfigError(f"ssl.keystore.key requires ssl.keystore.type=PEM, and the type is {kind}")
        if chain is None:
            raise TlsConfigError("ssl.keystore.key is set, but ssl.keystore.certificate.chain is not")
        if location:
            raise TlsConfigError("ssl.keystore.location and ssl.keystore.key are both set; remove one of them")
    elif chain is not None:
        raise TlsConfigError("ssl.keystore.certificate.chain is set, but ssl.keystore.key is not")
    elif not location:
        if password is not None:
            raise TlsConfigError("ssl.keystore.password is set, but ssl.keystore.location is not")
        return None
    if kind == PEM and password is not None:
        raise TlsConfigError(
            "ssl.keystore.password cannot be set with ssl.keystore.type=PEM; the password of the key is "
            "ssl.key.password"
        )
    if kind == PKCS12 and password is None:
        raise TlsConfigError("ssl.keystore.location is set, but ssl.keystore.password is not")
    return KeyStore(
        type=kind,
        location=Path(location) if location else None,
        password=password,
        key_password=properties.get_secret("ssl.key.password"),
        chain=chain,
        key=key,
    )


def _trust_store(properties: TlsProperties) -> TrustStore | None:
    kind = _type(properties, "ssl.truststore.type")
    location = properties.get_str("ssl.truststore.location")
    password = properties.get_secret("ssl.truststore.password")
    certificates = properties.get_secret("ssl.truststore.certificates")
    if certificates is not None:
        if kind != PEM:
            raise TlsConfigError(
                f"ssl.truststore.certificates requires ssl.truststore.type=PEM, and the type is {kind}"
            )
        if location:
            raise TlsConfigError(
                "ssl.truststore.location and ssl.truststore.certificates are both set; remove one of them"
            )
    elif not location:
        if password is not None:
            raise TlsConfigError("ssl.truststore.password is set, but ssl.truststore.location is not")
        return None
    if kind == PEM and password is not None:
        raise TlsConfigError("ssl.truststore.password cannot be set with ssl.truststore.type=PEM")
    return TrustStore(
        type=kind, location=Path(location) if location else None, password=password, certificates=certificates
    )


def _type(properties: TlsProperties, name: str) -> str:
    text = (properties.get_str(name) or JKS).upper()
    if text not in (PEM, PKCS12, JKS):
        raise TlsConfigError(f"{name}={text} is not served; the types are PEM and PKCS12")
    return text
