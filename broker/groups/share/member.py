"""One member of a share group, as the group's records describe it: a value that every change replaces.

Source: Kafka's ShareGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from barnabas.protocol.groups.consumer_group_values import Partitions, partitions_of, rows_of
from barnabas.protocol.groups.share_group_values import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

STABLE: Final = 0
"""The only state: a member enters a new epoch immediately, because it shares its partitions."""


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """One member. `state` is kept as the record has it."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    state: int = STABLE
    assigned: Partitions = field(default_factory=dict)

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> ShareGroupMember:
        """Return the member with this metadata."""
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )

    def with_current(self, value: ShareGroupCurrentMemberAssignmentValue) -> ShareGroupMember:
        """Return the member with this current assignment."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=partitions_of(value.assigned_partitions),
        )

    def metadata_record(self) -> ShareGroupMemberMetadataValue:
        """Return its metadata as a record's value."""
        return ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=tuple(sorted(self.topic_names)),
        )

    def current_record(self) -> ShareGroupCurrentMemberAssignmentValue:
        """Return its current assignment as a record's value."""
        return ShareGroupCurrentMemberAssignmentValue(
            self.member_epoch, self.previous_member_epoch, self.state, rows_of(self.assigned)
        )
