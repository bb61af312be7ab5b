"""How the doctor's connections are opened: TCP and TLS, with the reason in words when that fails."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from barnabas.clients.addresses import Address
from barnabas.clients.security.settings import SecuritySettings
from barnabas.clients.security.tls_context import tls_fault
from barnabas.commands.doctor import certificate
from barnabas.commands.doctor.steps import NoAnswerError, Step


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """`context` is the TLS context of `security`; `timeout_s` limits each attempt and each answer."""

    security: SecuritySettings
    context: ssl.SSLContext | None
    timeout_s: float


def connect(address: Address, timeout_s: float) -> socket.socket:
    """Open a TCP connection. Raises NoAnswerError."""
    try:
        return socket.create_connection((address.host, address.port), timeout_s)
    except TimeoutError as error:
        raise NoAnswerError(
            f"but there is no answer within {timeout_s:g} s (a firewall, or the host does not exist)"
        ) from error
    except ConnectionRefusedError as error:
        raise NoAnswerError("but nothing listens there (connection refused)") from error
    except (OSError, UnicodeError) as error:
        raise NoAnswerError(f"but connecting fails ({getattr(error, 'strerror', None) or error})") from error


def secure(
    connection: socket.socket, address: Address, context: ssl.SSLContext, settings: ConnectionSettings
) -> tuple[ssl.SSLSocket, str]:
    """Return the connection with TLS, and what was negotiated in words. Raises NoAnswerError."""
    try:
        secured = context.wrap_socket(connection, server_hostname=address.host)
    except TimeoutError as error:
        raise NoAnswerError(
            f"but the TLS handshake does not end within {settings.timeout_s:g} s: check the port"
        ) from error
    except ssl.SSLCertVerificationError as error:
        seen = _presented(address, settings.timeout_s)
        fault = tls_fault(str(address), address.host, error, settings.security.tls)
        raise NoAnswerError(f"but {fault}{seen}") from error
    except ssl.SSLError as error:
        raise NoAnswerError(f"but {tls_fault(str(address), address.host, error, settings.security.tls)}") from error
    except OSError as error:
        raise NoAnswerError(
            f"but the server there ends the TLS handshake ({error.strerror or error}): check the port"
        ) from error
    cipher = secured.cipher()
    suite = "" if cipher is None else f", {cipher[0]}"
    checked = "the host name fits" if context.check_hostname else "the host name is not checked"
    presented = secured.getpeercert(binary_form=True)
    described = "no certificate" if presented is None else certificate.describe(presented)
    return secured, f"{secured.version()}{suite}; certificate {described}; {checked}"


def refused_after_handshake(address: Address, error: ssl.SSLError, settings: ConnectionSettings) -> NoAnswerError:
    """Return the error of a TLS alert after the handshake, which is how TLS 1.3 refuses a client's certificate."""
    return NoAnswerError(f"but {tls_fault(str(address), address.host, error, settings.security.tls)}", Step.TLS)


def speaks_tls(address: Address, timeout_s: float) -> bool:
    """Whether a TLS handshake succeeds; no certificate is checked, and nothing is sent afterwards."""
    return _unchecked_certificate(address, timeout_s) is not None


def _presented(address: Address, timeout_s: float) -> str:
    found = _unchecked_certificate(address, timeout_s)
    return "" if found is None else f". The certificate there is {certificate.describe(found)}"


def _unchecked_certificate(address: Address, timeout_s: float) -> bytes | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            connect(address, timeout_s) as connection,
            context.wrap_socket(connection, server_hostname=address.host) as secured,
        ):
            return secured.getpeercert(binary_form=True)
    except (NoAnswerError, OSError):
        return None
