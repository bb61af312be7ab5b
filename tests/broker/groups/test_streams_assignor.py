"""The sticky task assignor: every task runs once, evenly spread, and stays where it was."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.groups.streams.assignor import MemberSpec, SubtopologySpec, assign
from barnabas.broker.groups.streams.tasks import NO_TASKS, TaskSet, pairs

SUBTOPOLOGIES = {"0": SubtopologySpec(5, False), "1": SubtopologySpec(4, True), "2": SubtopologySpec(3, True)}
STATEFUL = [(each, number) for each in ("1", "2") for number in range(SUBTOPOLOGIES[each].tasks)]
ALL = [("0", number) for number in range(5)] + STATEFUL
MEMBERS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["p", "q", "r"]), min_size=1)


def assigned(processes: dict[str, str], before: dict[str, TaskSet], replicas: int) -> dict[str, TaskSet]:
    members = {name: MemberSpec(process, before.get(name, NO_TASKS)) for name, process in processes.items()}
    return assign(members, SUBTOPOLOGIES, replicas)


@given(first=MEMBERS, second=MEMBERS, replicas=st.integers(0, 2))
@settings(max_examples=80)
def test_every_task_runs_once_and_its_copies_are_on_other_processes(
    first: dict[str, str], second: dict[str, str], replicas: int
) -> None:
    targets = assigned(second, assigned(first, {}, replicas), replicas)
    assert sorted(task for target in targets.values() for task in pairs(target.active)) == ALL
    copies = min(replicas, len(set(second.values())) - 1)
    for task in STATEFUL:
        holders = [
            second[name]
            for name, target in targets.items()
            for kind in (target.active, target.standby)
            if task in pairs(kind)
        ]
        assert len(holders) == len(set(holders)) == 1 + copies
    assert all("0" not in target.standby for target in targets.values())


@given(processes=MEMBERS, replicas=st.integers(0, 2))
@settings(max_examples=50)
def test_the_same_members_keep_their_active_tasks(processes: dict[str, str], replicas: int) -> None:
    before = assigned(processes, {}, 0)
    assert {name: target.active for name, target in assigned(processes, before, replicas).items()} == {
        name: target.active for name, target in before.items()
    }


def test_a_new_member_gets_its_share_and_no_other_task_moves() -> None:
    before = assigned({"a": "p", "b": "q"}, {}, 0)
    after = assigned({"a": "p", "b": "q", "c": "r"}, before, 0)
    assert [len(list(pairs(after[name].active))) for name in "abc"] == [4, 4, 4]
    for name in "ab":
        assert set(pairs(after[name].active)) <= set(pairs(before[name].active))


def test_the_tasks_of_a_member_that_went_go_to_their_standbys() -> None:
    before = assigned({"a": "p", "b": "q"}, {}, 1)
    after = assigned({"b": "q"}, {"b": before["b"]}, 1)
    assert sorted(pairs(after["b"].active)) == ALL
    assert after["b"].standby == {}
