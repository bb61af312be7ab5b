"""Server-side assignors: one reader per partition, evenly spread, no partition moved without need."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.groups.assignors.assignor import Assignor, GroupSpec, MemberSpec
from barnabas.broker.groups.assignors.range_assignor import RangeAssignor
from barnabas.broker.groups.assignors.uniform_assignor import UniformAssignor
from barnabas.protocol.groups.consumer_group_values import Partitions

T, U = b"t" * 16, b"u" * 16

SIZES = {T: 5, U: 3, b"v" * 16: 8}
READS = st.frozensets(st.sampled_from(sorted(SIZES)))
GROUPS = st.dictionaries(st.sampled_from("abcdef"), READS, min_size=1)


def spec(reads: dict[str, frozenset[bytes]], before: dict[str, Partitions] | None = None) -> GroupSpec:
    members = {name: MemberSpec(topics, (before or {}).get(name, {})) for name, topics in reads.items()}
    read = frozenset().union(*reads.values())
    return GroupSpec(members, {topic_id: SIZES[topic_id] for topic_id in sorted(read)})


def load(target: Partitions) -> int:
    return sum(map(len, target.values()))


@pytest.mark.parametrize("assignor", [UniformAssignor(), RangeAssignor()])
@given(first=GROUPS, second=GROUPS)
@settings(max_examples=80)
def test_every_partition_has_one_reader(
    assignor: Assignor, first: dict[str, frozenset[bytes]], second: dict[str, frozenset[bytes]]
) -> None:
    before = assignor.assign(spec(first))
    targets = assignor.assign(spec(second, before))
    assigned = [(topic_id, number) for target in targets.values() for topic_id in target for number in target[topic_id]]
    read = frozenset().union(*second.values())
    assert sorted(assigned) == sorted((topic_id, number) for topic_id in read for number in range(SIZES[topic_id]))
    assert all(target.keys() <= second[name] for name, target in targets.items())


@given(first=st.sets(st.sampled_from("abcdef"), min_size=1), second=st.sets(st.sampled_from("abcdef"), min_size=1))
def test_uniform_is_even_and_moves_no_more_than_it_must(first: set[str], second: set[str]) -> None:
    topics = frozenset(SIZES)
    before = UniformAssignor().assign(spec(dict.fromkeys(sorted(first), topics)))
    after = UniformAssignor().assign(spec(dict.fromkeys(sorted(second), topics), before))
    loads = [load(after[name]) for name in second]
    assert max(loads) - min(loads) <= 1
    for name in first & second:
        kept = sum(len(before[name].get(topic_id, frozenset()) & numbers) for topic_id, numbers in after[name].items())
        assert kept == min(load(before[name]), load(after[name]))


def test_uniform_levels_members_that_read_different_topics() -> None:
    targets = UniformAssignor().assign(spec({"a": frozenset({T, U}), "b": frozenset({U})}))
    assert (load(targets["a"]), load(targets["b"])) == (5, 3)
    assert targets["b"] == {U: frozenset({0, 1, 2})}


def test_range_gives_runs_and_the_same_numbers_of_every_topic() -> None:
    members = {
        "z": MemberSpec(frozenset({T, U}), {}, instance_id="1"),
        "a": MemberSpec(frozenset({T, U}), {}),
        "b": MemberSpec(frozenset({T, U}), {}),
    }
    targets = RangeAssignor().assign(GroupSpec(members, {T: 5, U: 5}))
    assert targets["z"] == {T: frozenset({0, 1}), U: frozenset({0, 1})}, "static members first"
    assert targets["a"] == {T: frozenset({2, 3}), U: frozenset({2, 3})}
    assert targets["b"] == {T: frozenset({4}), U: frozenset({4})}


def test_no_members_and_no_topics_get_empty_assignments() -> None:
    for assignor in (UniformAssignor(), RangeAssignor()):
        assert assignor.assign(GroupSpec({}, {})) == {}
        assert assignor.assign(spec({"a": frozenset()})) == {"a": {}}
