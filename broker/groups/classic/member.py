"""One member of a classic group.

A member that waits for the answer to its join or its sync cannot send heartbeats, so its session does not end
meanwhile; but for a new one, which nobody has heard of again since. Source: Kafka's ClassicGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.protocol.groups.metadata import MemberMetadata
from barnabas.protocol.messages.groups.describe_groups import DescribedMember
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.actions import Waiter


class ClassicGroupMember:
    """Timeouts in ms. `protocols`: metadata by assignor, in the order of preference."""

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
        """Who waits for the answer to this member's join."""
        self.syncing: Waiter | None = None
        """Who waits for the answer to its sync."""

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id, by which it may come back."""
        return self.group_instance_id is not None

    @property
    def satisfies_heartbeat(self) -> bool:
        """Whether the member cannot be expected to send heartbeats."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def matches(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether it would join with what it has: the same assignors in the same order, with the same metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    def metadata(self, protocol: str) -> bytes:
        """Its subscription for `protocol`."""
        return self.protocols[protocol]

    def record(self, protocol: str, assignment: bytes) -> MemberMetadata:
        """The member in the group's record."""
        return MemberMetadata(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            assignment,
        )

    def describe(self, protocol: str | None) -> DescribedMember:
        """For operators; the metadata only once there is a `protocol`."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol is None else self.metadata(protocol),
            self.assignment,
        )


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    """By name; of a name that comes twice the first one counts, as in Kafka."""
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    return protocols
