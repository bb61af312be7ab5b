"""Groups with members of several client libraries that share an assignor; members join, leave and are killed.

kafkajs is left out, since it has none of Kafka's assignors. Barnabas' own client is included.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.interop.clients.programs import CLIENTS
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.group_members import PARTITIONS, Group, assert_no_commit_went_back, generation_of

OURS = [sys.executable, "-m", "tests.support.groups.group_member", "barnabas"]
FIRST = ("confluent-kafka", "franz-go", "kafka-python")
COOPERATIVE = "cooperative-sticky"
SECOND = ("Java 4.3.0", "sarama", "aiokafka")


def command_of(name: str) -> list[str]:
    """Return the command of a client's member program; skip the test if it is unavailable."""
    return next(client.member() for client in CLIENTS if client.name == name)


@contextmanager
def group_at(directory: Path) -> Iterator[tuple[Daemon, Group]]:
    with start_daemon(directory) as daemon, ExitStack() as stack:
        daemon.create_topic("t", partitions=PARTITIONS)
        group = Group(daemon.bootstrap, "t", "mixed", stack, explain=daemon.log_tail)
        yield daemon, group
        group.wait_for_commits(daemon.data_directory)
    assert_no_commit_went_back(directory / "data", "mixed")


@pytest.mark.parametrize("names", [FIRST, SECOND], ids=" + ".join)
def test_members_of_different_libraries_share_a_topic_through_crashes_of_each_and_of_the_broker(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    commands = [command_of(name) for name in names]
    with group_at(tmp_path) as (daemon, group):
        members = [group.come(OURS)]
        for command in commands:
            members.append(group.come(command))
            group.wait_for_all_to_read(members)
        killed = members.pop(1)
        killed.kill()
        group.wait_for_all_to_read(members)
        daemon.restart(clean=False)
        group.wait_for_all_to_read(members)
        members.pop(0).leave()  # Barnabas' client, which was the group's leader
        group.wait_for_all_to_read(members)
        group.produce_and_wait()


def test_cooperative_members_of_different_libraries_share_a_topic_whoever_leads(tmp_path: Path) -> None:
    """Partitions move in two steps, based on the owned partitions in each library's join; the leader changes once."""
    commands = [command_of(name) for name in ("Java 4.3.0", "confluent-kafka", "kafka-python")]
    with group_at(tmp_path) as (daemon, group):
        members = [group.come(OURS, COOPERATIVE)]
        for command in commands:
            members.append(group.come(command, COOPERATIVE))
        group.wait_for_all_to_read(members)
        members.pop(2).kill()
        group.wait_for_all_to_read(members)
        daemon.restart(clean=False)
        group.wait_for_all_to_read(members)
        members.pop(0).leave()
        members.append(group.come(OURS, COOPERATIVE))
        group.wait_for_all_to_read(members)
        group.produce_and_wait()


def test_a_rolling_restart_of_static_members_of_different_libraries_rebalances_nobody(tmp_path: Path) -> None:
    names = ("confluent-kafka", "franz-go", "aiokafka")
    commands = {name: command_of(name) for name in names}
    with group_at(tmp_path) as (daemon, group):
        members = {name: group.come(command, instance=name) for name, command in commands.items()}
        group.wait_for_all_to_read(list(members.values()))
        generation = generation_of(daemon.data_directory, "mixed")
        for name, command in commands.items():
            members[name].kill()
            members[name] = group.come(command, instance=name)
            group.wait_for_all_to_read(list(members.values()))
        assert generation_of(daemon.data_directory, "mixed") == generation
        group.produce_and_wait()
