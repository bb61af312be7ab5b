"""Subscriptions of group members: encoding them for a JoinGroup, and decoding them for the leader's assignor.

Every assignor that a member offers has its own subscription, in Kafka's format version 3: the topics, the partitions
that the member still has, and their generation. `cooperative-sticky` repeats the generation in its user data, because
before version 2 it was only there:

    int32 generation        big-endian; user data of any other size is another assignor's, and ignored

Source: Kafka's ConsumerProtocol, CooperativeStickyAssignor.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.clients.config import COOPERATIVE_STICKY
from barnabas.protocol.groups.consumer_protocol import Subscription, decode_subscription, encode_subscription
from barnabas.protocol.messages.groups.join_group import NO_GENERATION, GroupProtocol, JoinedMember
from barnabas.protocol.topic_partition import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""Member id -> its partitions; every member has an entry."""

_USER_DATA: Final = struct.Struct(">i")


class Subscriber(NamedTuple):
    """A member as an assignor sees it. `owned` are the partitions of `generation` that it has not given up."""

    member_id: str
    group_instance_id: str | None
    topics: Collection[str]
    owned: Collection[TopicPartition] = ()
    generation: int = NO_GENERATION


def assignment_order(member: Subscriber) -> tuple[bool, str]:
    """Sort key of members: static ones by instance id, then the others by member id."""
    if member.group_instance_id is not None:
        return False, member.group_instance_id
    return True, member.member_id


def subscriptions(
    assignors: Sequence[str], topics: Iterable[str], owned: Iterable[TopicPartition], generation: int
) -> list[GroupProtocol]:
    """Encode the subscription of a member that has `owned` from `generation`, once for each of its assignors."""
    names = sorted(topics)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(owned):
        by_topic.setdefault(topic, []).append(partition)
    return [
        GroupProtocol(
            name=assignor,
            metadata=encode_subscription(
                Subscription(
                    names,
                    _USER_DATA.pack(generation) if assignor == COOPERATIVE_STICKY else None,
                    by_topic,
                    generation,
                )
            ),
        )
        for assignor in assignors
    ]


def subscriber(member: JoinedMember) -> Subscriber:
    """Decode a member's subscription, of any client library. Raises DecodeError."""
    found = decode_subscription(member.metadata)
    generation = found.generation
    if generation == NO_GENERATION and found.user_data is not None and len(found.user_data) == _USER_DATA.size:
        (generation,) = _USER_DATA.unpack(found.user_data)
    owned = frozenset(TopicPartition(topic, number) for topic, numbers in found.owned.items() for number in numbers)
    return Subscriber(member.member_id, member.group_instance_id, frozenset(found.topics), owned, generation)
