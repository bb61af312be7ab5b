"""Keys and certificates as PEM, for other client libraries: they read fewer kinds of files."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.clients.errors import ClientConfigError
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import TlsSettings
from barnabas.transport.stores import load_key, load_trust


class PemMaterial(NamedTuple):
    """None: not configured. The key is not encrypted; never log it."""

    authorities: str | None
    key: str | None
    chain: str | None

    def __repr__(self) -> str:
        return "PemMaterial([hidden])"


def load_pem(settings: TlsSettings) -> PemMaterial:
    """Read the stores. Raises ClientConfigError, which names the property and the file."""
    try:
        trust = None if settings.truststore is None else load_trust(settings.truststore)
        key = None if settings.keystore is None else load_key(settings.keystore)
    except TlsConfigError as error:
        raise ClientConfigError(str(error)) from error
    return PemMaterial(
        None if trust is None else trust.pem.decode(),
        None if key is None else key.key_pem.decode(),
        None if key is None else key.chain_pem.decode(),
    )
