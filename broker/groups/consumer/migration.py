"""A group goes from the classic protocol to the consumer protocol, and back.

    up      the first member that speaks the new protocol finds a classic group of consumers: its members go on as
            members of a consumer group, stable with what they have, and are told when to join again
    down    the last member that speaks the new protocol goes, or a classic one takes its place: what is left is a
            classic group with what each member has, whose record names no leader: it rebalances, after a kill too,
            because nobody knows yet that it leads, and only a leader looks at the topics. Kafka reads the record as a
            group that its first member leads; it writes the targets itself, forgets at a restart that it had to
            rebalance, and does not do so where a classic member took the last one's place

An empty group changes at the first member of the other protocol. Either way the records of the old group go
and those of the new one come in one batch. Source: Kafka's GroupMetadataManager (convertToConsumerGroup,
convertToClassicGroup), ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.groups.consumer.group import ConsumerGroup
from barnabas.broker.groups.consumer.member import ConsumerGroupMember
from barnabas.broker.groups.expressions.topics_hash import group_hash
from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_group_keys import ConsumerGroupKey
from barnabas.protocol.groups.consumer_group_values import ClassicMemberMetadata, Partitions
from barnabas.protocol.groups.consumer_protocol import (
    CONSUMER,
    Assignment,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from barnabas.protocol.groups.metadata import GroupMetadataValue, MemberMetadata
from barnabas.protocol.groups.offsets import OffsetCommitValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.groups.classic.group import ClassicGroup
    from barnabas.broker.groups.classic.member import ClassicGroupMember
    from barnabas.broker.groups.consumer.settings import GroupContext
    from barnabas.broker.metadata.image import MetadataImage


def upgraded(classic: ClassicGroup, context: GroupContext) -> tuple[ConsumerGroup, list[GroupRecord]]:
    """The consumer group that `classic` becomes, and the records of that.

    Raises BrokerError GROUP_ID_NOT_FOUND where it may not, or cannot: no consumers, an assignor with data of its own.
    """
    if not context.settings.migration.may_upgrade:
        raise _no_upgrade(classic, "group.consumer.migration.policy does not allow it")
    if classic.protocol_type != CONSUMER:
        raise _no_upgrade(classic, f"its members are not consumers but {classic.protocol_type!r}")
    if len(classic.roster) > context.settings.max_size:
        raise _no_upgrade(classic, f"it has more members than group.consumer.max.size ({context.settings.max_size})")
    group = ConsumerGroup(classic.group_id, context.clock)
    image = context.image()
    group.epoch = group.assignment_epoch = classic.generation
    try:
        members = [_upgraded_member(each, classic, image) for each in classic.roster]
    except DecodeError as error:
        raise _no_upgrade(classic, f"what a member says is not of the consumers' protocol: {error}") from error
    for member in members:
        group.members[member.member_id] = member
        group.target[member.member_id] = {topic_id: frozenset(each) for topic_id, each in member.assigned.items()}
    if classic.state == GroupState.STABLE:  # else nothing is agreed on, and whoever comes first has it assigned
        group.metadata_hash = group_hash(frozenset().union(*(member.topic_names for member in members)), image)
    records = [*classic.tombstones(), *group.records()]
    return replayed(ConsumerGroup(classic.group_id, context.clock), records), records


def replayed(group: ConsumerGroup, records: Iterable[GroupRecord]) -> ConsumerGroup:
    """`group` as it is once `records` are in the log."""
    for key, value in records:
        if isinstance(key, ConsumerGroupKey):
            assert not isinstance(value, OffsetCommitValue | GroupMetadataValue)
            group.replay(key, value)
    return group


def can_downgrade(
    group: ConsumerGroup, gone: Sequence[ConsumerGroupMember], context: GroupContext, *, coming: int = 0
) -> bool:
    """Whether all are classic but those that go, and somebody is left; `coming` classic ones take the place of some."""
    left = len(group.members) - len(gone) + coming
    classic_left = group.classic_members - sum(member.classic is not None for member in gone) + coming
    settings = context.settings
    return classic_left == left > 0 and settings.migration.may_downgrade and left <= settings.classic_max_size


def downgraded(
    group: ConsumerGroup, members: Sequence[ConsumerGroupMember], context: GroupContext
) -> GroupMetadataValue:
    """The classic group of `members`, all of them classic, that is yet to agree on anything."""
    protocol = _select_protocol(members)
    image = context.image()
    return GroupMetadataValue(
        protocol_type=CONSUMER,
        generation=group.epoch,
        protocol=protocol,
        leader=None,
        current_state_timestamp=context.clock.wall_ms(),
        members=[_downgraded_member(member, protocol, image) for member in members],
    )


def classic_assignment(topics: Partitions, subscription: bytes, image: MetadataImage) -> bytes:
    """Partitions in the consumers' bytes, of the version of their subscription; topics that are gone are left out."""
    version = int.from_bytes(subscription[:2], "big", signed=True)
    names = {image.names[topic_id]: sorted(numbers) for topic_id, numbers in topics.items() if topic_id in image.names}
    return encode_assignment(Assignment(names, version=version))


def _upgraded_member(member: ClassicGroupMember, classic: ClassicGroup, image: MetadataImage) -> ConsumerGroupMember:
    protocol = classic.protocol
    if protocol is None or protocol not in member.protocols:
        protocol = next(iter(member.protocols))  # it has joined, and nothing was agreed on yet
    subscription = decode_subscription(member.protocols[protocol])
    assignment = decode_assignment(member.assignment)
    if assignment.user_data:
        raise _no_upgrade(classic, "its assignor keeps data of its own in the assignment")
    return ConsumerGroupMember(
        member.member_id,
        member_epoch=classic.generation,
        previous_member_epoch=classic.generation,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        assigned={
            image.topics[name].topic_id: dict.fromkeys(numbers, classic.generation)
            for name, numbers in assignment.partitions.items()
            if name in image.topics
        },
        classic=ClassicMemberMetadata(member.session_timeout_ms, tuple(member.protocols.items())),
    )


def _downgraded_member(member: ConsumerGroupMember, protocol: str, image: MetadataImage) -> MemberMetadata:
    assert member.classic is not None
    has = {
        topic_id: frozenset(member.assigned.get(topic_id, {})) | frozenset(member.pending_revocation.get(topic_id, {}))
        for topic_id in {**member.assigned, **member.pending_revocation}
    }
    subscription = dict(member.classic.protocols)[protocol]
    return MemberMetadata(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        subscription,
        classic_assignment(has, subscription, image),
    )


def _select_protocol(members: Sequence[ConsumerGroupMember]) -> str:
    """The assignor that most prefer of those that all know; nobody is let in who would leave none."""
    lists = [[name for name, _ in member.classic.protocols] for member in members if member.classic is not None]
    known = Counter(name for names in lists for name in dict.fromkeys(names))
    votes = Counter(next(name for name in names if known[name] == len(lists)) for names in lists)
    return votes.most_common(1)[0][0]


def _no_upgrade(classic: ClassicGroup, why: str) -> BrokerError:
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"classic group {classic.group_id!r} cannot become a consumer group: {why}"
    )
