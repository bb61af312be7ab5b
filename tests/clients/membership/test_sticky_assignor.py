"""The cooperative assignor: even, sticky, and never two owners, whatever members claim."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import pytest

from barnabas.clients.config import COOPERATIVE_STICKY
from barnabas.clients.membership.sticky_assignor import assign_cooperative_sticky
from barnabas.clients.membership.subscriber import Assignment, Subscriber, subscriber, subscriptions
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.consumer_protocol import Subscription, encode_subscription
from barnabas.protocol.messages.groups.join_group import NO_GENERATION, JoinedMember
from barnabas.protocol.topic_partition import TopicPartition


def parts(*numbers: int, topic: str = "t") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


def claiming(member_id: str, *numbers: int, generation: int = 1) -> Subscriber:
    return Subscriber(member_id, None, {"t"}, parts(*numbers), generation)


def numbers(assignment: Assignment) -> dict[str, list[int]]:
    return {member: [each.partition for each in owned] for member, owned in assignment.items()}


def settle(members: Sequence[Subscriber], counts: Mapping[str, int]) -> tuple[list[Assignment], list[Subscriber]]:
    """Simulate generations until no member has to give a partition up."""
    generations = []
    for generation in range(2, 9):
        assignment = assign_cooperative_sticky(members, counts)
        generations.append(assignment)
        given = Counter(chain.from_iterable(assignment.values()))
        assert not given or max(given.values()) == 1
        for member in members:
            others = set(chain.from_iterable(each.owned for each in members if each is not member))
            assert not others.intersection(assignment[member.member_id]).difference(member.owned)
        settled = all(not set(each.owned).difference(assignment[each.member_id]) for each in members)
        members = [
            each._replace(owned=frozenset(assignment[each.member_id]), generation=generation) for each in members
        ]
        if settled:
            return generations, members
    raise AssertionError("it never settles")


def test_first_members_share_evenly_and_a_new_one_waits_for_moving_partitions() -> None:
    assert numbers(assign_cooperative_sticky([claiming("a"), claiming("b")], {"t": 5})) == {"a": [0, 2, 4], "b": [1, 3]}
    one = claiming("a", 0, 1, 2, 3)
    first, second = settle([one, claiming("b", generation=NO_GENERATION)], {"t": 4})[0]
    kept = first["a"]
    assert len(kept) == 2
    assert first["b"] == []
    assert second["a"] == kept
    assert sorted(second["b"]) == sorted(parts(0, 1, 2, 3).difference(kept))


def test_a_departure_moves_no_partition_of_the_remaining_members() -> None:
    found = numbers(assign_cooperative_sticky([claiming("a", 0, 3), claiming("b", 1, 4)], {"t": 6}))
    assert found == {"a": [0, 2, 3], "b": [1, 4, 5]}


def test_the_claim_of_the_newer_generation_counts_and_claims_of_one_generation_cancel() -> None:
    stale, fresh = claiming("a", 0, 1, generation=4), claiming("b", 0, 1, generation=5)
    third = claiming("c", 2, 3, generation=5)
    assert numbers(assign_cooperative_sticky([stale, fresh, third], {"t": 4}))["b"] in ([0, 1], [0], [1])
    both = [claiming("a", 0), claiming("b", 0)]
    owners = [each for each, owned in assign_cooperative_sticky(both, {"t": 1}).items() if owned]
    assert len(owners) == 1


def test_claims_of_deleted_or_unsubscribed_topics_are_ignored() -> None:
    odd = Subscriber("a", None, {"t"}, parts(0, 7) | parts(0, topic="gone") | parts(1, topic="other"), 3)
    other = Subscriber("b", None, {"t", "other"}, (), 3)
    found = assign_cooperative_sticky([odd, other], {"t": 2, "other": 2, "gone": 0})
    assert set(found["a"]) <= parts(0, 1)
    assert TopicPartition("other", 1) not in chain.from_iterable(found.values())  # until it is given up
    assert TopicPartition("other", 0) in found["b"]


def test_any_group_settles_evenly_and_keeps_partitions_where_possible() -> None:
    generator = random.Random("sticky")
    for turn in range(200):
        counts = {topic: generator.randint(0, 8) for topic in "abc"}
        all_parts = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        members = [
            Subscriber(
                f"m{number}",
                generator.choice([None, f"i{number}"]),
                set(generator.sample("abc", k=generator.randint(1, 3))),
                frozenset(generator.sample(all_parts, k=generator.randint(0, len(all_parts) // 2))),
                generator.randint(-1, 3),
            )
            for number in range(generator.randint(1, 6))
        ]
        _, settled = settle(members, counts)
        subscribed = set(chain.from_iterable(each.topics for each in members))
        given = set(chain.from_iterable(each.owned for each in settled))
        assert given == {each for each in all_parts if each.topic in subscribed}, turn
        for member in settled:
            assert {each.topic for each in member.owned} <= set(member.topics), turn
            for other in settled:
                if len(member.owned) > len(other.owned) + 1:
                    assert not {each.topic for each in member.owned} & set(other.topics), turn
        again = assign_cooperative_sticky(settled, counts)
        assert {each.member_id: sorted(each.owned) for each in settled} == again, turn


def test_ten_thousand_partitions_are_shared_out_in_order_of_their_number() -> None:
    members = [claiming("m0", *range(10_000)), *(claiming(f"m{number}") for number in range(1, 100))]
    _, settled = settle(members, {"t": 10_000})
    assert {len(each.owned) for each in settled} == {100}


def test_a_subscription_is_kafkas_bytes() -> None:
    (offer,) = subscriptions([COOPERATIVE_STICKY], ["t"], parts(2, 0), 7)
    assert offer.metadata == bytes.fromhex(
        "0003 00000001 0001 74 00000004 00000007 00000001 0001 74 00000002 00000000 00000002 00000007 ffff"
    )
    assert subscriber(JoinedMember(member_id="m", group_instance_id="i", metadata=offer.metadata)) == Subscriber(
        "m", "i", {"t"}, parts(0, 2), 7
    )
    (eager,) = subscriptions(["range"], ["t"], (), NO_GENERATION)
    assert eager.metadata == bytes.fromhex("0003 00000001 0001 74 ffffffff 00000000 ffffffff ffff")


@pytest.mark.parametrize(
    ("version", "user_data", "generation"),
    [
        (0, None, NO_GENERATION),
        (1, b"\0\0\0\x05", 5),  # Kafka's before version 2
        (1, b"", NO_GENERATION),  # kafka-python's
        (1, b"\0\0\0\x05\0", NO_GENERATION),  # librdkafka's are partitions and a generation
        (1, b"\xff" * 300, NO_GENERATION),
        (3, b"\0\0\0\x05", 9),
        (4, b"whatever comes", 9),
    ],
)
def test_user_data_that_is_not_a_generation_is_ignored(version: int, user_data: bytes | None, generation: int) -> None:
    wire = encode_subscription(Subscription(["t"], user_data, {"t": [1]}, 9, None, version))
    found = subscriber(JoinedMember(member_id="m", metadata=wire))
    assert (found.generation, found.owned) == (generation, parts(1) if version else frozenset())


def test_an_undecodable_subscription_is_refused() -> None:
    wire = encode_subscription(Subscription(["t"], None, {"t": [1]}, 9))
    for size in range(len(wire)):
        with pytest.raises(DecodeError):
            subscriber(JoinedMember(member_id="m", metadata=wire[:size]))
