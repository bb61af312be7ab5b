"""`read.only=true`: the parts of a broker that serves what lies on disk and writes nothing.

What would change something is answered POLICY_VIOLATION (44), and refused as deep as it goes: a log that is only read
refuses an append, the metadata's writer refuses a record. The APIs here are refused at once, because they would first
let a client wait (a group that forms) or promise something (a producer id).
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
    ApiKey.INIT_PRODUCER_ID,
)


def refusing_handlers() -> dict[ApiKey, Handler]:
    """By API: what stands in the place of its handler."""
    return dict.fromkeys(REFUSED_APIS, _refuse)


def _refuse(session: Session, request: object) -> NoReturn:
    refuse_change("groups have no members and producers get no ids here")


__all__ = ["REFUSED_APIS", "ReadOnlyLogManager", "RefusingCommitter", "read_metadata", "refusing_handlers"]
