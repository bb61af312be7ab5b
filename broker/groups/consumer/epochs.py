"""Checks of a member's epoch in requests about offsets. Source: Kafka's ConsumerGroup.validateOffsetCommit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember
    from barnabas.broker.groups.group import CommitCheck


def commit_check(member: ConsumerGroupMember, epoch: int) -> CommitCheck | None:
    """Return the check of each partition for a commit in an older epoch; None for the member's epoch.

    A commit is valid in the member's epoch, and in an older one for partitions that the member has had ever since: each
    assigned partition carries the epoch of its assignment. Raises BrokerError for a newer epoch.
    """
    member_id = member.member_id
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise stale_epoch(member, f"epoch {epoch} is newer than {member.member_epoch}, that of member {member_id!r}")

    def check(topic_id: bytes, partition: int) -> None:
        assigned_in = member.assignment_epoch(topic_id, partition)
        if assigned_in is None:
            raise stale_epoch(member, f"member {member_id!r} does not have partition {partition} of {topic_id.hex()}")
        if epoch < assigned_in:
            raise stale_epoch(
                member, f"member {member_id!r} has partition {partition} since epoch {assigned_in}, not {epoch}"
            )

    return check


def stale_epoch(member: ConsumerGroupMember, message: str) -> BrokerError:
    """Return the error for a wrong epoch, in the terms of the member's protocol."""
    return BrokerError(
        ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION, message
    )
