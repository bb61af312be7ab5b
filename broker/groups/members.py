"""What the offsets of groups ask about the groups' members, of either protocol (group_directory.py answers it).

A group exists if it has, or had, members, or if it has committed offsets: then it is a simple one, always empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.offsets import CommitCheck
    from barnabas.broker.groups.group_records import GroupRecord

EMPTY: Final = "Empty"
CLASSIC: Final = "Classic"
CONSUMER: Final = "Consumer"


class GroupSummary(NamedTuple):
    """A group as lists show it, in Kafka's words: `state` (Empty, Stable, ...) and `protocol_type` ("" for none)."""

    state: str
    protocol_type: str
    group_type: str = CLASSIC


class OffsetExpiry(NamedTuple):
    """From when on a group's offsets age: since `empty_since_ms`, or where that is None since each one's commit."""

    empty_since_ms: int | None


SINCE_COMMIT: Final = OffsetExpiry(None)


class GroupMembers(Protocol):
    """Groups with members. Every method is called in the event loop and does not wait."""

    def group_ids(self) -> Iterable[str]:
        """All groups that it knows."""
        ...

    def summary(self, group_id: str) -> GroupSummary | None:
        """None for a group that it does not know."""
        ...

    def validate_offset_commit(
        self,
        group_id: str,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        knows_member_epochs: bool,
    ) -> CommitCheck | None:
        """Before an offset of a group that it knows is committed; a classic member's commit counts as a heartbeat.

        What is left to check of each partition. Raises BrokerError: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
        STALE_MEMBER_EPOCH, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, UNSUPPORTED_VERSION.
        """
        ...

    def validate_offset_fetch(self, group_id: str, *, member_id: str | None, member_epoch: int) -> None:
        """Raises BrokerError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH for a member that asks in another epoch."""
        ...

    def validate_offset_delete(self, group_id: str) -> None:
        """Raises BrokerError NON_EMPTY_GROUP for a group with members that is not one of consumers."""
        ...

    def validate_delete(self, group_id: str) -> None:
        """Raises BrokerError NON_EMPTY_GROUP."""
        ...

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether a member reads the topic, or may: then its offsets neither expire nor can be deleted."""
        ...

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        """How the offsets of a group that it knows expire; None: not now."""
        ...

    def tombstones(self, group_id: str) -> list[GroupRecord]:
        """The records that take the group itself back."""
        ...

    def unload(self, group_id: str) -> None:
        """The tombstone of a classic group was written: forget it, and answer whoever waits."""
        ...
