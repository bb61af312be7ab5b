"""JoinGroup (key 11): a member joins, and waits until its group's next generation is formed.

Checked in this order: an empty or far too long group id INVALID_GROUP_ID; a group whose records are being loaded
COORDINATOR_LOAD_IN_PROGRESS; a session timeout outside of group.min.session.timeout.ms and group.max.session.timeout.ms
INVALID_SESSION_TIMEOUT; then what `groups/joining` says. Differs from Kafka: a second join of a member that still waits
for the first one's answer gets that one answered REBALANCE_IN_PROGRESS, where Kafka leaves it without any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.joining import JoiningClient

if TYPE_CHECKING:
    from barnabas.broker.groups.directory import GroupDirectory
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse


class JoinGroupHandler:
    """Serves JoinGroup."""

    def __init__(self, groups: GroupDirectory) -> None:
        self._groups = groups

    def __call__(self, session: Session, request: JoinGroupRequest) -> Deferred[JoinGroupResponse]:
        """The answer to one request; the contract is at the top of the file."""
        host = session.peer.rpartition(":")[0].removeprefix("::ffff:")
        return self._groups.join(request, JoiningClient(session.client_id or "", f"/{host}"))
