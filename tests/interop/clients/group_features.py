"""The features that every client is tested for in a group of its own processes. test_mixed_groups mixes clients.

Every record is read at least once, and the committed offsets in `__consumer_offsets` never go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.interop.clients.driver import Unsupported
from tests.interop.clients.features import Check, Feature, Trial
from tests.support.groups.group_members import PARTITIONS, Group, Member, assert_no_commit_went_back, generation_of


class ClientGroup:
    """A group of one client's members."""

    def __init__(self, trial: Trial, stack: ExitStack, assignor: str) -> None:
        assert trial.member is not None
        self._command = trial.member()
        self._assignor = assignor
        self.group = Group(trial.target.bootstrap, trial.topic, f"group-of-{trial.topic}", stack)

    def come(self, instance: str | None = None) -> Member:
        """Start another member."""
        return self.group.come(self._command, self._assignor, instance)


@contextmanager
def group_of(trial: Trial, assignor: str = "range") -> Iterator[ClientGroup]:
    """Run a group; at the end stop its members and check its commits."""
    trial.create(PARTITIONS)
    with ExitStack() as stack:
        found = ClientGroup(trial, stack, assignor)
        yield found
        found.group.wait_for_commits(trial.target.log_directory)
    assert_no_commit_went_back(trial.target.log_directory, found.group.group_id)


def members_come_leave_and_are_killed(trial: Trial) -> None:
    """A second member joins, the first leaves, a third joins, the second is killed."""
    with group_of(trial) as members:
        first = members.come()
        members.group.produce_and_wait(by=[first])
        second = members.come()
        members.group.wait_for_all_to_read([first, second])
        if trial.driver.limits.drops_a_record_when_stopped:
            members.group.produce_and_wait()
        first.leave()
        members.group.produce_and_wait(by=[second])
        third = members.come()
        members.group.wait_for_all_to_read([second, third])
        second.kill()
        members.group.produce_and_wait(by=[third])


def static_members_are_restarted(trial: Trial) -> None:
    """Each member is killed in turn and restarted within the session timeout; the generation does not change."""
    if not trial.driver.limits.has_static_members:
        raise Unsupported("it has no static members")
    with group_of(trial) as members:
        running = {instance: members.come(instance) for instance in ("i", "j")}
        members.group.wait_for_all_to_read(list(running.values()))
        generation = generation_of(trial.target.log_directory, members.group.group_id)
        for instance in running:
            running[instance].kill()
            running[instance] = members.come(instance)
            members.group.wait_for_all_to_read(list(running.values()))
        assert generation_of(trial.target.log_directory, members.group.group_id) == generation


def members_hand_partitions_over(trial: Trial) -> None:
    """With the cooperative protocol a second member gets partitions, and is killed; the first gets them back."""
    if "cooperative-sticky" not in trial.driver.limits.assignors:
        raise Unsupported("it has no cooperative assignor")
    with group_of(trial, "cooperative-sticky") as members:
        first = members.come()
        members.group.produce_and_wait(by=[first])
        second = members.come()
        members.group.wait_for_all_to_read([first, second])
        second.kill()
        members.group.produce_and_wait(by=[first])


def members_that_the_broker_assigns(trial: Trial) -> None:
    """With KIP-848 a second member joins, the broker is killed, the first member leaves."""
    if "consumer" not in trial.driver.limits.assignors:
        raise Unsupported("it does not have the newer protocol")
    with group_of(trial, "consumer") as members:
        first = members.come()
        members.group.produce_and_wait(by=[first])
        second = members.come()
        members.group.wait_for_all_to_read([first, second])
        trial.target.restart()
        members.group.wait_for_all_to_read([first, second])
        first.leave()
        members.group.produce_and_wait(by=[second])


def a_group_outlives_the_broker(trial: Trial) -> None:
    """The broker is killed and started again; both members continue."""
    with group_of(trial) as members:
        both = [members.come(), members.come()]
        members.group.wait_for_all_to_read(both)
        members.group.produce()
        trial.target.restart()
        members.group.wait_for_all_to_read(both)
        members.group.produce_and_wait()


_CHECKS: dict[str, Check] = {
    "group: members come, leave and are killed; every record is read": members_come_leave_and_are_killed,
    "group: static members are restarted without a rebalance": static_members_are_restarted,
    "group: cooperative members hand partitions over": members_hand_partitions_over,
    "group: broker killed in the middle, no commit goes back": a_group_outlives_the_broker,
    "group: the newer protocol (KIP-848), broker killed": members_that_the_broker_assigns,
}

GROUP_FEATURES = [Feature(check.__name__.replace("_", "-"), title, check) for title, check in _CHECKS.items()]
