"""By which mechanism people sign in at a cluster whose listener asks for a login, if the console was given none."""

from __future__ import annotations

from typing import Final

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import AuthenticationError
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.sasl import SaslHandshakeRequest, SaslHandshakeResponse

PASSWORD_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
"""Those by which people can sign in, the preferred one first."""


async def offered_mechanism(config: ClientConfig) -> str | None:
    """Ask the listener of `config`, which has no login, for its mechanisms; None if it asks nobody to log in.

    Raises ClientError; AuthenticationError if nobody can log in there by a password, or only by PLAIN without TLS
    beyond this machine: a password would travel as it is, to whoever answers there.
    """
    kafka = Cluster(config)
    try:
        connection = await kafka.connections.any_connection()
        if connection.version_of(ApiKey.SASL_HANDSHAKE) is None:
            return None
        asked = SaslHandshakeRequest(mechanism=PASSWORD_MECHANISMS[0])
        answer: SaslHandshakeResponse = await connection.request(asked)
    finally:
        await kafka.close()
    if answer.error not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_SASL_MECHANISM):
        return None  # ILLEGAL_SASL_STATE: the listener has no logins
    for mechanism in PASSWORD_MECHANISMS:
        if mechanism in answer.mechanisms:
            if mechanism == "PLAIN" and config.security.tls is None and not _is_of_this_machine(config.bootstrap):
                raise AuthenticationError(
                    f"{config.bootstrap} takes passwords by PLAIN only, which sends them as they are, and the "
                    "connection has no TLS: connect with TLS, or say --sign-in PLAIN"
                )
            return mechanism
    raise AuthenticationError(
        f"{config.bootstrap} needs a login by {', '.join(sorted(answer.mechanisms))}: start the console with "
        "--command-config and a file of client properties that has one"
    )


def _is_of_this_machine(bootstrap: str) -> bool:
    hosts = [address.strip().rpartition(":")[0].strip("[]") for address in bootstrap.split(",")]
    return all(host in ("localhost", "::1") or host.startswith("127.") for host in hosts)
