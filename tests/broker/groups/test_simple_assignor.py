"""The assignor of share groups: how many members each partition gets, and what stays where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.groups.assignors.simple_assignor import ShareMemberSpec, assign
from barnabas.protocol.groups.consumer_group_values import Partitions

A, B, C = (bytes([each]) * 16 for each in b"ABC")


def spec(target: Partitions | None = None, *topics: bytes) -> ShareMemberSpec:
    return ShareMemberSpec(frozenset(topics or (A,)), target or {})


def partitions(count: int, *topics: bytes) -> dict[bytes, frozenset[int]]:
    return {topic: frozenset(range(count)) for topic in topics or (A,)}


def sizes(targets: Mapping[str, Partitions]) -> list[int]:
    return sorted(sum(map(len, target.values())) for target in targets.values())


@pytest.mark.parametrize(
    ("members", "count", "expected"),
    [(1, 3, [3]), (2, 3, [1, 2]), (3, 3, [1, 1, 1]), (3, 1, [1, 1, 1]), (5, 2, [1, 1, 1, 1, 2]), (2, 0, [0, 0])],
)
def test_partitions_are_shared_as_evenly_as_kafka_shares_them(members: int, count: int, expected: list[int]) -> None:
    group = {f"m{each}": spec() for each in range(members)}
    assert sizes(assign(group, partitions(count), same_topics=True)) == expected


def test_a_new_member_takes_no_more_than_its_part() -> None:
    before = assign({"a": spec()}, partitions(4), same_topics=True)
    after = assign({"a": spec(before["a"]), "b": spec()}, partitions(4), same_topics=True)
    assert sizes(after) == [2, 2]
    assert after["a"][A] < before["a"][A]
    assert assign({each: spec(after[each]) for each in after}, partitions(4), same_topics=True) == after


def test_a_partition_without_state_is_given_to_nobody() -> None:
    assert assign({"a": spec()}, {A: frozenset({1})}, same_topics=True) == {"a": {A: frozenset({1})}}


def test_a_member_keeps_no_topic_that_nobody_reads() -> None:
    group = {"a": spec({B: frozenset({0})}, A)}
    assert assign(group, partitions(1, A, B), same_topics=True) == {"a": {A: frozenset({0})}}


def test_without_an_existing_topic_nobody_has_a_target() -> None:
    assert assign({"a": ShareMemberSpec(frozenset(), {A: frozenset({0})})}, {}, same_topics=True) == {}


def test_members_with_different_topics_get_only_what_they_read() -> None:
    group = {"a": spec(None, A), "b": spec(None, A, B), "c": spec({A: frozenset({0})}, B)}
    targets = assign(group, partitions(2, A, B), same_topics=False)
    assert {
        member: set(target) - {each for each in target if not target[each]} for member, target in targets.items()
    } == {
        "a": {A},
        "b": {A, B},
        "c": {B},
    }
    assert sizes(targets) == [1, 1, 2]


@given(
    counts=st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 5), min_size=1),
    members=st.integers(1, 9),
    rounds=st.lists(st.integers(1, 9), max_size=3),
)
def test_every_partition_has_members_and_every_member_about_the_same(
    counts: dict[bytes, int], members: int, rounds: list[int]
) -> None:
    assignable = {topic: frozenset(range(count)) for topic, count in counts.items()}
    total = sum(counts.values())
    targets: dict[str, Partitions] = {}
    for size in (members, *rounds):
        group = {f"m{each}": spec(targets.get(f"m{each}"), *counts) for each in range(size)}
        targets = assign(group, assignable, same_topics=True)
        shared = Counter(
            (topic, number) for target in targets.values() for topic, numbers in target.items() for number in numbers
        )
        if total:
            assert len(shared) == total
            assert max(shared.values()) <= ceil(size / total)
            assert max(sizes(targets)) <= ceil(ceil(size / total) * total / size)
