"""One member of a classic group.

A member that waits for the response to its join or sync cannot send heartbeats, so its session does not end meanwhile.
A new member's can: its client may be gone. Source: Kafka's ClassicGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.protocol.groups.values import MemberMetadata
from barnabas.protocol.messages.groups.describe_groups import DescribedMember
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.actions import Waiter


class ClassicGroupMember:
    """One member. Timeouts in ms. `protocols`: metadata by assignor, in the order of preference."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "joining",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Mapping[str, bytes],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.joining: Waiter | None = None
        """The waiter of the member's join."""
        self.syncing: Waiter | None = None
        """The waiter of the member's sync."""

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id, with which it may come back."""
        return self.group_instance_id is not None

    @property
    def satisfies_heartbeat(self) -> bool:
        """Whether the member waits for a response and cannot send heartbeats."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def matches(self, protocols: Mapping[str, bytes]) -> bool:
        """Return whether a join changes nothing: same assignors in the same order, with the same metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    def metadata(self, protocol: str) -> bytes:
        """Return its subscription for `protocol`."""
        return self.protocols[protocol]

    def record(self, protocol: str, assignment: bytes) -> MemberMetadata:
        """Return the member as the group's record has it."""
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    def describe(self, protocol: str | None) -> DescribedMember:
        """Return the member as DescribeGroups shows it; without a `protocol` the metadata is empty."""
        return DescribedMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            metadata=b"" if protocol is None else self.metadata(protocol),
            assignment=self.assignment,
        )


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    """Return the metadata by assignor; of a repeated name the first counts, as in Kafka."""
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    return protocols
