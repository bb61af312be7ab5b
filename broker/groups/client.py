"""The client of a member, as a group's records and descriptions show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.security.access import SessionAccess


class JoiningClient(NamedTuple):
    """Client id, and host with a leading slash, as Kafka shows it. `access` limits the topics of its expressions."""

    client_id: str
    host: str
    access: SessionAccess | None = None

    @classmethod
    def of(cls, session: Session) -> JoiningClient:
        """Return the client of a connection."""
        host = session.peer.rpartition(":")[0].removeprefix("::ffff:")
        return cls(session.client_id or "", f"/{host}", session.access)
