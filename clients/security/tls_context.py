"""TLS of a client: its context, and handshakes that failed."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from barnabas.clients.errors import AuthenticationError, ClientConfigError
from barnabas.transport.contexts import client_context
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.settings import TlsSettings

_MISMATCHES: Final = (62, 64)
_EXPIRED: Final = 10
_NOT_YET_VALID: Final = 9
"""OpenSSL's X509_V_ERR_*."""


class TlsContextSource:
    """The context of one client, created at its first connection: that reads files."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._context: ssl.SSLContext | None = None

    async def context(self) -> ssl.SSLContext:
        """Return the context. Raises ClientConfigError, which names the property and the file."""
        if self._context is None:
            self._context = await asyncio.to_thread(create_context, self._settings)
        return self._context


def create_context(settings: TlsSettings) -> ssl.SSLContext:
    """Create a client's context. Reads files. Raises ClientConfigError, which names the property and the file."""
    try:
        return client_context(settings).context
    except TlsConfigError as error:
        raise ClientConfigError(str(error)) from error


def tls_fault(peer: str, host: str, error: ssl.SSLError, settings: TlsSettings | None) -> AuthenticationError:
    """Return the error of a failed handshake, with what to check."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _MISMATCHES:
            return AuthenticationError(
                f"the certificate of {peer} is not for {host}: connect by a name that it contains, or, where others "
                "cannot answer at that address, set ssl.endpoint.identification.algorithm to nothing"
            )
        if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
            return AuthenticationError(f"the certificate of {peer}, or one of its issuers: {error.verify_message}")
        untrusted = f"the certificate of {peer} is not trusted ({error.verify_message})"
        if settings is not None and settings.truststore is not None:
            return AuthenticationError(f"{untrusted}: the trust store does not contain the authority that issued it")
        return AuthenticationError(
            f"{untrusted}: set ssl.truststore.location, and ssl.truststore.type, to the authority that issued it"
        )
    reason = error.reason or str(error)
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return AuthenticationError(
            f"{peer} does not speak TLS: check the port, or set security.protocol to PLAINTEXT or SASL_PLAINTEXT"
        )
    if "ALERT" in reason:
        alert = reason.lower().replace("_", " ")
        return AuthenticationError(
            f"{peer} refuses the TLS handshake ({alert}): the listener may require a client certificate "
            "(ssl.keystore.location) of an authority that it trusts"
        )
    return AuthenticationError(f"the TLS handshake with {peer} failed: {reason}")
