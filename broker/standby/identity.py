"""Whether a standby may follow the broker that answers: the same cluster, and not replaced by a takeover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
from barnabas.broker.standby.active_broker import ActiveBroker
from barnabas.clients.errors import RefusedError
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.clients.config import ClientConfig
    from barnabas.protocol.messages.cluster.standby import StandbyIdentity


async def ensure_active_answers(client: ClientConfig, metadata_log_dir: Path, number: int) -> None:
    """Ask the broker for its identity once, and check it. Raises ClientError."""
    active = await ActiveBroker.connect(client)
    try:
        check_identity(await active.identify(), metadata_log_dir, number)
    finally:
        active.close()


def check_identity(identity: StandbyIdentity, metadata_log_dir: Path, number: int) -> None:
    """Raise RefusedError for an active broker of another cluster, or one that was replaced by its standby.

    `number` is the switch number of the standby's directory.
    """
    properties = read_meta_properties(metadata_log_dir)
    cluster_id = None if properties is None else properties.cluster_id
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"the active broker belongs to cluster {identity.cluster_id}, this directory to {cluster_id}",
        )
    if identity.number < number:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"the broker has switch number {identity.number}, this directory {number}: another broker has taken over "
            "from it, follow that one",
        )
