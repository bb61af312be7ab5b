"""`read.only=true`: the parts of a broker that serves the stored data and writes nothing.

Changes are answered POLICY_VIOLATION (44) and refused at the lowest level: a read-only log refuses an append, the
metadata's committer refuses a record. The APIs here are refused before they reach that level, because they would let a
client wait first (a group that forms) or promise something (a producer id).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from barnabas.broker.metadata.read_only import RefusingCommitter, read_metadata
from barnabas.broker.storage.read_only.log_manager import ReadOnlyLogManager
from barnabas.broker.storage.read_only.refusal import refuse_change
from barnabas.protocol.messages.api_key import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.network.dispatch import Handler
    from barnabas.broker.network.session import Session

REFUSED_APIS = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
)


def refusing_handlers() -> dict[ApiKey, Handler]:
    """Return the handlers that replace those of REFUSED_APIS."""
    return dict.fromkeys(REFUSED_APIS, _refuse)


def _refuse(session: Session, request: object) -> NoReturn:
    refuse_change("groups have no members, producers get no ids and transactions do not change here")


__all__ = ["REFUSED_APIS", "ReadOnlyLogManager", "RefusingCommitter", "read_metadata", "refusing_handlers"]
