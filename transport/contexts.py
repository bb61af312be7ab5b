"""SSLContext from settings. Keys reach OpenSSL through an anonymous file in memory, never through the disk."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.transport.decryption import IN_PROCESS
from barnabas.transport.errors import TlsConfigError
from barnabas.transport.stores import KeyMaterial, TrustMaterial, load_key, load_trust
from barnabas.transport.suites import choose

if TYPE_CHECKING:
    from barnabas.transport.decryption import Decryption
    from barnabas.transport.settings import TlsSettings
    from barnabas.transport.suites import Suites

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True, repr=False)
class TlsContext:
    """A context, and the material it was created from."""

    context: ssl.SSLContext
    key: KeyMaterial | None
    trust: TrustMaterial | None
    unrestricted_suites: tuple[str, ...]
    """TLS 1.3 suites that are offered although ssl.cipher.suites leaves them out: worth a warning."""


def server_context(settings: TlsSettings, decryption: Decryption = IN_PROCESS) -> TlsContext:
    """Create a server's context. Reads files and blocks. Raises TlsConfigError.

    Different from Kafka: client certificates require a trust store. Java's default is the JVM's list of public
    authorities, so that everybody with a certificate of any of them would be a client.
    """
    if settings.keystore is None:
        raise TlsConfigError(
            "a TLS listener needs a key: set ssl.keystore.location, or ssl.keystore.type=PEM with ssl.keystore.key and "
            "ssl.keystore.certificate.chain"
        )
    if settings.client_auth != "none" and settings.truststore is None:
        raise TlsConfigError(
            f"ssl.client.auth={settings.client_auth} needs trusted certificates: set ssl.truststore.location or "
            "ssl.truststore.certificates"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    built = _build(context, settings, decryption)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return built


def client_context(settings: TlsSettings) -> TlsContext:
    """Create a client's context. Reads files and blocks. Raises TlsConfigError.

    Without a trust store the system's authorities are trusted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.verify_host_name
    built = _build(context, settings, IN_PROCESS)
    if built.trust is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return built


def _build(context: ssl.SSLContext, settings: TlsSettings, decryption: Decryption) -> TlsContext:
    suites = choose(settings.protocols, settings.cipher_suites)
    _restrict(context, suites)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # Java accepts every certificate of a trust store as an anchor, not only self-signed ones.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    key = None if settings.keystore is None else load_key(settings.keystore, decryption)
    if key is not None:
        _use_key(context, key)
    trust = None if settings.truststore is None else load_trust(settings.truststore, decryption)
    if trust is not None:
        try:
            context.load_verify_locations(cadata=trust.der)
        except ssl.SSLError as error:
            raise TlsConfigError(f"ssl.truststore: OpenSSL refuses the certificates: {error.reason}") from error
    return TlsContext(context, key, trust, suites.unrestricted)


def _restrict(context: ssl.SSLContext, suites: Suites) -> None:
    versions = [_VERSIONS[name] for name in suites.protocols]
    context.minimum_version = min(versions)
    context.maximum_version = max(versions)
    if suites.ciphers is None:
        return
    try:
        context.set_ciphers(suites.ciphers)
    except ssl.SSLError as error:
        raise TlsConfigError(f"ssl.cipher.suites: OpenSSL serves none of {suites.ciphers}") from error


def _use_key(context: ssl.SSLContext, key: KeyMaterial) -> None:
    fd = os.memfd_create("barnabas-key", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(key.key_pem)
            file.write(key.chain_pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    except ssl.SSLError as error:
        raise TlsConfigError(f"ssl.keystore: OpenSSL refuses the key or its certificates: {error.reason}") from error
    finally:
        os.close(fd)
