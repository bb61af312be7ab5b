"""What groups of all protocols have in common: their states, and what committed offsets depend on.

    Empty                no members; committed offsets may exist
    PreparingRebalance   classic: waits for the members to join
    CompletingRebalance  classic: a generation is formed and waits for its leader's assignment
    NotReady             streams: topics that the application needs are missing
    Assigning            consumer, streams: the group's epoch has no target assignment yet
    Reconciling          consumer, streams: members give up and take over partitions or tasks
    Stable               every member has its assignment
    Dead                 deleted

A group exists if it has or had members, or if it has committed offsets. A group with offsets that never had a member is
not in the registry: it is Empty, and has no protocol type. Source: Kafka's Group, GroupState.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from barnabas.broker.groups.log.records import GroupRecord


class GroupState(Enum):
    """By Kafka's names, which clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupType(Enum):
    """The protocol of a group, by Kafka's names, which clients see."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"


class GroupSummary(NamedTuple):
    """A group in a list. `protocol_type` is empty if the group has none."""

    state: GroupState
    protocol_type: str
    group_type: GroupType = GroupType.CLASSIC


SIMPLE_GROUP: Final = GroupSummary(GroupState.EMPTY, "")
"""A group that has committed offsets and never had a member."""


class OffsetExpiry(NamedTuple):
    """When a group's offsets began to age: at `empty_since_ms`, or each at its own commit if that is None."""

    empty_since_ms: int | None


SINCE_COMMIT: Final = OffsetExpiry(None)

CommitCheck = Callable[[bytes, int], None]
"""Validates the commit of one partition, by topic id and number. Raises BrokerError."""


class Group(Protocol):
    """A group of any protocol. Methods are called in the event loop and do not wait."""

    @property
    def group_id(self) -> str:
        """Its name."""

    @property
    def group_type(self) -> GroupType:
        """Its protocol."""

    @property
    def protocol_type(self) -> str:
        """`consumer`, `connect`, `streams`; empty as long as no member joined."""

    @property
    def state(self) -> GroupState:
        """Its present state."""

    @property
    def wake_at(self) -> float:
        """No deadline of the group is before this time, in seconds of the loop's clock."""

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, knows_member_epochs: bool
    ) -> CommitCheck | None:
        """Return what remains to be checked for each partition, if anything. A classic member's commit is a heartbeat.

        `knows_member_epochs`: the request has version 9 or later, as members of the consumer protocol send it.
        Raises BrokerError: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH, FENCED_INSTANCE_ID,
        REBALANCE_IN_PROGRESS, UNSUPPORTED_VERSION.
        """

    def validate_transactional_commit(
        self, member_id: str, group_instance_id: str | None, generation: int
    ) -> CommitCheck | None:
        """Return what remains to be checked for each partition of a TxnOffsetCommit, if anything.

        The transaction fences producers, so that a client may leave out the member, and a group that rebalances takes
        offsets. It is no heartbeat. Raises BrokerError: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH,
        FENCED_INSTANCE_ID.
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise BrokerError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION for a member's wrong epoch."""

    def validate_offset_delete(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for a group with members whose subscriptions are unknown."""

    def validate_delete(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for a group with members."""

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads the topic, or may: then its offsets neither expire nor can be deleted."""

    def offset_expiry(self) -> OffsetExpiry | None:
        """Return how the group's offsets age; None if they do not at present."""

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group, without its offsets."""
