"""Whether a member of a consumer group may commit and fetch offsets, by its epoch.

A commit holds in the member's epoch, and in an older one for partitions that the member has had ever since: the epoch
in which it got each one is kept. A member of the classic protocol is told ILLEGAL_GENERATION where another one is told
STALE_MEMBER_EPOCH. Source: Kafka's ConsumerGroup (validateOffsetCommit, createAssignmentEpochValidator).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.groups.consumer.group import ConsumerGroup
    from barnabas.broker.groups.consumer.member import ConsumerGroupMember

CommitCheck = Callable[[bytes, int], None]
"""Of a topic id and a partition. Raises BrokerError."""


def validate_commit(
    group: ConsumerGroup, member_id: str, epoch: int, *, knows_member_epochs: bool
) -> CommitCheck | None:
    """What is left to check of each partition; None: nothing. Raises BrokerError.

    `knows_member_epochs`: the request is of version 9 or later, as members of the consumer protocol send it.
    """
    if epoch < 0 and not group.members:
        return None
    member = group.member(member_id)
    if member.classic is None and not knows_member_epochs:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_VERSION, "members of the consumer protocol commit with version 9 or later"
        )
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _stale(member, f"epoch {epoch} is newer than {member.member_epoch}, that of member {member_id!r}")

    def check(topic_id: bytes, partition: int) -> None:
        assigned_in = member.assignment_epoch(topic_id, partition)
        if assigned_in is None:
            raise _stale(member, f"member {member_id!r} does not have partition {partition} of {topic_id.hex()}")
        if epoch < assigned_in:
            raise _stale(
                member, f"member {member_id!r} has partition {partition} since epoch {assigned_in}, not {epoch}"
            )

    return check


def validate_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Who names no member may always ask. Raises BrokerError."""
    if member_id is None and epoch < 0:
        return
    member = group.member(member_id or "")
    if epoch != member.member_epoch:
        raise _stale(member, f"epoch {epoch} is not {member.member_epoch}, that of member {member_id!r}")


def _stale(member: ConsumerGroupMember, message: str) -> BrokerError:
    return BrokerError(
        ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION, message
    )
