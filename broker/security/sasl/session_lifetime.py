"""How long an authenticated session may last (KIP-368). Source: Kafka's SaslServerAuthenticator."""

from __future__ import annotations


def session_lifetime_ms(max_reauth_ms: int, expires_at_ms: int | None, now_ms: int) -> int | None:
    """Return the session's lifetime; None: no limit.

    It is the lesser of connections.max.reauth.ms (0: not set) and the time until the credential expires. A credential
    that has just expired gives 0.
    """
    limits = []
    if max_reauth_ms > 0:
        limits.append(max_reauth_ms)
    if expires_at_ms is not None:
        limits.append(max(0, expires_at_ms - now_ms))
    return min(limits, default=None)
