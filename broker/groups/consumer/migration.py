"""Upgrade of a classic group to a consumer group, and the downgrade back.

    upgrade     when the first member of the consumer protocol joins a classic group of consumers. The classic members
                become members of the consumer group, stable with their assignments, and are told when to join again
    downgrade   when the last member of the consumer protocol leaves, or a classic one takes its place. The remaining
                members form a classic group with their current assignments. Its record names no leader, so it
                rebalances, after a kill too: no member knows that it leads, and only a leader looks at the topics.
                Kafka reads the record as a group led by its first member. Kafka itself writes the target assignments,
                forgets at a restart that the group has to rebalance, and does not rebalance if a classic member took
                the last one's place

An empty group changes with the first member of the other protocol. In all cases the tombstones of the old group and the
records of the new one are one batch. Source: Kafka's GroupMetadataManager (convertToConsumerGroup,
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
from barnabas.protocol.groups.consumer_group_values import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupValue,
    Partitions,
)
from barnabas.protocol.groups.consumer_protocol import (
    CONSUMER,
    Assignment,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from barnabas.protocol.groups.keys import ConsumerGroupKey
from barnabas.protocol.groups.values import GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.groups.classic.group import ClassicGroup
    from barnabas.broker.groups.classic.member import ClassicGroupMember
    from barnabas.broker.groups.consumer.settings import GroupContext
    from barnabas.broker.metadata.image import MetadataImage


def upgraded(classic: ClassicGroup, context: GroupContext) -> tuple[ConsumerGroup, list[GroupRecord]]:
    """Return the consumer group that `classic` becomes, and the records of the upgrade.

    Raises BrokerError GROUP_ID_NOT_FOUND if the upgrade is not allowed or not possible: members that are not consumers,
    an assignor with user data.
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
        raise _no_upgrade(classic, f"a member does not use the consumers' protocol: {error}") from error
    for member in members:
        group.members[member.member_id] = member
        group.target[member.member_id] = {topic_id: frozenset(each) for topic_id, each in member.assigned.items()}
    if classic.state == GroupState.STABLE:  # else the hash 0 makes the first heartbeat assign
        group.metadata_hash = group_hash(frozenset().union(*(member.topic_names for member in members)), image)
    records = [*classic.tombstones(), *group.records()]
    return replayed(ConsumerGroup(classic.group_id, context.clock), records), records


def replayed(group: ConsumerGroup, records: Iterable[GroupRecord]) -> ConsumerGroup:
    """Apply `records` to `group`, and return it."""
    for key, value in records:
        if isinstance(key, ConsumerGroupKey):
            assert value is None or isinstance(value, ConsumerGroupValue)
            group.replay(key, value)
    return group


def can_downgrade(
    group: ConsumerGroup, gone: Sequence[ConsumerGroupMember], context: GroupContext, *, coming: int = 0
) -> bool:
    """Return whether only classic members remain without `gone` and with `coming` more classic ones, at least one."""
    left = len(group.members) - len(gone) + coming
    classic_left = group.classic_members - sum(member.classic is not None for member in gone) + coming
    settings = context.settings
    return classic_left == left > 0 and settings.migration.may_downgrade and left <= settings.classic_max_size


def downgraded(
    group: ConsumerGroup, members: Sequence[ConsumerGroupMember], context: GroupContext
) -> GroupMetadataValue:
    """Return the record of the classic group of `members`, all of them classic, that has to rebalance."""
    protocol = _select_protocol(members)
    image = context.image()
    return GroupMetadataValue(
        protocol_type=CONSUMER,
        generation=group.epoch,
        protocol=protocol,
        leader=None,
        current_state_timestamp=context.clock.wall_ms(),
        members=tuple([_downgraded_member(member, protocol, image) for member in members]),
    )


def classic_assignment(topics: Partitions, subscription: bytes, image: MetadataImage) -> bytes:
    """Encode partitions in the version of the member's subscription, without deleted topics."""
    version = int.from_bytes(subscription[:2], "big", signed=True)
    names = {image.names[topic_id]: sorted(numbers) for topic_id, numbers in topics.items() if topic_id in image.names}
    return encode_assignment(Assignment(names, version=version))


def _upgraded_member(member: ClassicGroupMember, classic: ClassicGroup, image: MetadataImage) -> ConsumerGroupMember:
    protocol = classic.protocol
    if protocol is None or protocol not in member.protocols:
        protocol = next(iter(member.protocols))  # it joined, and no assignor is selected yet
    subscription = decode_subscription(member.protocols[protocol])
    assignment = decode_assignment(member.assignment)
    if assignment.user_data:
        raise _no_upgrade(classic, "its assignor stores user data in the assignment")
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
        classic=ClassicMemberMetadata(
            member.session_timeout_ms, tuple([ClassicProtocol(*each) for each in member.protocols.items()])
        ),
    )


def _downgraded_member(member: ConsumerGroupMember, protocol: str, image: MetadataImage) -> MemberMetadata:
    assert member.classic is not None
    has = {
        topic_id: frozenset(member.assigned.get(topic_id, {})) | frozenset(member.pending_revocation.get(topic_id, {}))
        for topic_id in {**member.assigned, **member.pending_revocation}
    }
    subscription = member.classic.metadata_of(protocol)
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.classic.session_timeout_ms,
        subscription=subscription,
        assignment=classic_assignment(has, subscription, image),
    )


def _select_protocol(members: Sequence[ConsumerGroupMember]) -> str:
    """Return the assignor with most votes, of those that all members support. There is one, as in GroupRoster."""
    lists = [member.classic.names for member in members if member.classic is not None]
    known = Counter(name for names in lists for name in dict.fromkeys(names))
    votes = Counter(next(name for name in names if known[name] == len(lists)) for names in lists)
    return votes.most_common(1)[0][0]


def _no_upgrade(classic: ClassicGroup, why: str) -> BrokerError:
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"classic group {classic.group_id!r} cannot become a consumer group: {why}"
    )
