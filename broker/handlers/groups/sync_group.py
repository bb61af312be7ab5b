"""SyncGroup (key 14): the leader hands in the assignment, and everybody waits for it to be written down.

From version 5 on a request without protocol type or name is INCONSISTENT_GROUP_PROTOCOL, whoever asks.
UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID and ILLEGAL_GENERATION for who is not of the generation,
INCONSISTENT_GROUP_PROTOCOL for another protocol than the agreed one, REBALANCE_IN_PROGRESS when the next rebalance has
begun. A member that the leader gives nothing gets an empty assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.groups.directory import GroupDirectory
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse


class SyncGroupHandler:
    """Serves SyncGroup."""

    def __init__(self, groups: GroupDirectory) -> None:
        self._groups = groups

    def __call__(self, session: Session, request: SyncGroupRequest) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
        """The answer to one request; the contract is at the top of the file."""
        return self._groups.sync(request)
