"""The assignors give the results of Kafka's."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from barnabas.clients.config import ASSIGNOR_NAMES
from barnabas.clients.membership.assignors import ASSIGNORS, assign_range, assign_round_robin
from barnabas.clients.membership.subscriber import Assignment, Subscriber
from barnabas.protocol.topic_partition import TopicPartition


def members(**topics: str) -> list[Subscriber]:
    """By id, with one letter for each topic."""
    return [Subscriber(member_id, None, set(names)) for member_id, names in topics.items()]


def as_text(assignment: Assignment) -> dict[str, str]:
    return {member: " ".join(f"{each.topic}{each.partition}" for each in owned) for member, owned in assignment.items()}


def test_range_gives_each_topics_remainder_to_the_first_members() -> None:
    """The example of Kafka's RangeAssignor: two members, two topics of three partitions."""
    assert as_text(assign_range(members(c1="ab", c0="ab"), {"a": 3, "b": 3})) == {"c0": "a0 a1 b0 b1", "c1": "a2 b2"}
    assert as_text(assign_range(members(c0="a", c1="a", c2="a"), {"a": 2})) == {"c0": "a0", "c1": "a1", "c2": ""}
    assert as_text(assign_range(members(c0="a", c1="ab"), {"a": 2, "b": 2})) == {"c0": "a0", "c1": "a1 b0 b1"}


def test_round_robin_cycles_over_all_topics_and_skips_members_without_the_topic() -> None:
    """The examples of Kafka's RoundRobinAssignor."""
    assert as_text(assign_round_robin(members(c1="ab", c0="ab"), {"a": 3, "b": 3})) == {
        "c0": "a0 a2 b1",
        "c1": "a1 b0 b2",
    }
    different = members(c0="a", c1="ab", c2="abc")
    assert as_text(assign_round_robin(different, {"a": 1, "b": 2, "c": 3})) == {
        "c0": "a0",
        "c1": "b0",
        "c2": "b1 c0 c1 c2",
    }


@pytest.mark.parametrize("name", ASSIGNORS)
def test_static_members_come_first_by_their_instance_ids(name: str) -> None:
    found = [Subscriber("a", None, {"t"}), Subscriber("c", "1", {"t"}), Subscriber("b", "2", {"t"})]
    assert as_text(ASSIGNORS[name](found, {"t": 3})) == {"c": "t0", "b": "t1", "a": "t2"}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_topic_that_does_not_exist_is_not_assigned(name: str) -> None:
    assert as_text(ASSIGNORS[name](members(c0="ax"), {"a": 1, "x": 0})) == {"c0": "a0"}
    assert as_text(ASSIGNORS[name](members(c0="ax"), {"a": 1})) == {"c0": "a0"}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_every_partition_goes_to_one_subscriber_of_its_topic(name: str) -> None:
    generator = random.Random(f"assignors {name}")
    for turn in range(300):
        counts = {topic: generator.randint(0, 9) for topic in "abcd"}
        found = [
            Subscriber(f"m{number}", generator.choice([None, f"i{number}"]), set(generator.sample("abcd", k=2)))
            for number in range(generator.randint(1, 6))
        ]
        assignment = ASSIGNORS[name](found, counts)
        topics = {member.member_id: member.topics for member in found}
        assert assignment.keys() == topics.keys(), turn
        assert all(each.topic in topics[member] for member, owned in assignment.items() for each in owned), turn
        subscribed = set().union(*topics.values())
        expected = [TopicPartition(topic, n) for topic in sorted(subscribed) for n in range(counts[topic])]
        assert sorted(chain.from_iterable(assignment.values())) == expected, turn


def test_the_configuration_has_the_implemented_assignors() -> None:
    assert tuple(ASSIGNORS) == ASSIGNOR_NAMES
