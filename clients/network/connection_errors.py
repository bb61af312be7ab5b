"""Errors of a connection: sentences that name the address and what to check."""

from __future__ import annotations

from barnabas.clients.addresses import Address
from barnabas.clients.errors import (
    AuthenticationError,
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    ProtocolViolationError,
)


def cannot_connect(address: Address, timeout_ms: int, error: OSError, *, with_tls: bool) -> BrokerConnectionError:
    """The error of a failed connection, before the greeting; `timeout_ms` is connect_timeout_ms."""
    if with_tls and isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return BrokerConnectionError(
            f"{address} closed the connection during the TLS handshake; check that it is a listener with TLS, else set "
            "security.protocol to PLAINTEXT or SASL_PLAINTEXT"
        )
    if isinstance(error, TimeoutError):
        return BrokerConnectionError(
            f"no connection to {address} within connect_timeout_ms={timeout_ms}: "
            "check the address and that no firewall drops the packets"
        )
    return BrokerConnectionError(
        f"cannot connect to {address}: {reason_of(error)}; check that a Barnabas broker listens there"
    )


def no_greeting(address: Address, timeout_ms: int) -> BrokerConnectionError:
    """The error of a peer that accepts the connection and does not answer."""
    return BrokerConnectionError(
        f"{address} takes connections, but did not answer the greeting within "
        f"connect_timeout_ms={timeout_ms}: check that a Barnabas broker listens there and is not stuck"
    )


def copy_of(error: ClientError) -> ClientError:
    """Copy the exception for each future: a shared one would collect all their tracebacks."""
    if type(error) in (
        AuthenticationError,
        BrokerConnectionError,
        BrokerTimeoutError,
        ClosedError,
        ProtocolViolationError,
    ):
        return type(error)(*error.args)
    return error


def reason_of(error: BaseException) -> str:
    """The operating system's error text, or the exception's."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)
