"""Groups of client processes: members join, leave and are killed, and the broker is killed.

Every record is processed at least once, and committed offsets never go back.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.group_members import PARTITIONS, Group, Member, assert_no_commit_went_back
from tests.support.metrics import metric, wait_for_metric


class LibraryGroup:
    """A group whose members use one client library, with its own daemon."""

    def __init__(self, daemon: Daemon, library: str, stack: ExitStack, assignor: str) -> None:
        self.daemon = daemon
        self._command = [sys.executable, "-m", "tests.support.groups.group_member", library]
        self._assignor = assignor
        daemon.create_topic("t", partitions=PARTITIONS)
        self._group = Group(daemon.bootstrap, "t", "g", stack, explain=daemon.log_tail)
        self.produce_and_wait = self._group.produce_and_wait
        self.wait_for_all_to_read = self._group.wait_for_all_to_read
        self.wait_for_commits = self._group.wait_for_commits

    def come(self, instance: str | None = None) -> Member:
        """Start another member."""
        return self._group.come(self._command, self._assignor, instance)


@contextmanager
def group_of(directory: Path, library: str, assignor: str = "range") -> Iterator[LibraryGroup]:
    with ExitStack() as stack:
        daemon = stack.enter_context(start_daemon(directory))
        group = LibraryGroup(daemon, library, stack, assignor)
        yield group
        group.wait_for_commits(daemon.data_directory)
    assert_no_commit_went_back(directory / "data", "g")


@pytest.mark.parametrize("library", ["confluent", "barnabas"])
def test_members_come_leave_and_crash_and_no_record_is_missed(tmp_path: Path, library: str) -> None:
    with group_of(tmp_path, library) as group:
        first = group.come()
        group.produce_and_wait(by=[first])
        second = group.come()
        wait_for_metric(group.daemon, "barnabas_group_rebalances_total", 2)
        group.produce_and_wait()
        second.kill()
        group.produce_and_wait(by=[first])
        third = group.come()
        group.produce_and_wait()
        first.leave()
        group.produce_and_wait(by=[third])


@pytest.mark.parametrize("clean", [True, False], ids=["restart", "kill -9"])
def test_a_group_outlives_its_broker(tmp_path: Path, clean: bool) -> None:
    with group_of(tmp_path, "confluent") as group:
        members = [group.come(), group.come()]
        group.produce_and_wait()
        group.daemon.restart(clean=clean)
        group.produce_and_wait()
        members[0].leave()
        group.produce_and_wait(by=[members[1]])


def test_static_members_restart_one_after_the_other_without_a_rebalance(tmp_path: Path) -> None:
    with group_of(tmp_path, "confluent") as group:
        members = {instance: group.come(instance) for instance in ("i", "j")}
        group.wait_for_all_to_read(list(members.values()))
        rebalances = metric(group.daemon, "barnabas_group_rebalances_total")
        for instance in members:
            members[instance].kill()
            members[instance] = group.come(instance)
            group.produce_and_wait(by=list(members.values()))
        assert metric(group.daemon, "barnabas_group_rebalances_total") == rebalances


def test_cooperative_members_hand_partitions_over(tmp_path: Path) -> None:
    with group_of(tmp_path, "confluent", "cooperative-sticky") as group:
        first = group.come()
        group.produce_and_wait(by=[first])
        second = group.come()
        third = group.come()
        group.produce_and_wait()
        second.kill()
        group.produce_and_wait()
        third.leave()
        group.produce_and_wait(by=[first])
