"""Groups of librdkafka processes with `group.protocol=consumer`, and their upgrade and downgrade.

Every record is processed at least once, and committed offsets never go back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.group_members import PARTITIONS, Group, Member, assert_no_commit_went_back
from tests.support.kafka.kafka_wire import KafkaWire

SETTINGS = ("group.consumer.heartbeat.interval.ms=200", "group.consumer.session.timeout.ms=3000")
NEW = "consumer"
CLASSIC = "range"

Come = Callable[..., Member]


@contextmanager
def a_group(directory: Path) -> Iterator[tuple[Daemon, Group, Come]]:
    """Run a broker and a group; yield them and a function that starts a member of a protocol.

    The protocol is NEW, or CLASSIC's assignor.
    """

    def come(protocol: str = NEW, library: str = "confluent", instance: str | None = None) -> Member:
        return group.come([sys.executable, "-m", "tests.support.groups.group_member", library], protocol, instance)

    with ExitStack() as stack:
        daemon = stack.enter_context(start_daemon(directory, *SETTINGS))
        daemon.create_topic("t", partitions=PARTITIONS)
        group = Group(daemon.bootstrap, "t", "g", stack, explain=daemon.log_tail)
        yield daemon, group, come
        group.wait_for_commits(directory / "data")
    assert_no_commit_went_back(directory / "data", "g")


def type_of(daemon: Daemon) -> str:
    with KafkaWire(daemon.host, daemon.port) as wire:
        (group,) = wire.call("list_groups", 5, states_filter=(), types_filter=()).groups
        kind: str = group.group_type
        return kind


def test_members_come_leave_and_crash_and_the_broker_too(tmp_path: Path) -> None:
    with a_group(tmp_path) as (daemon, group, come):
        first = come()
        group.produce_and_wait(by=[first])
        second = come()
        group.wait_for_all_to_read([first, second])
        daemon.restart(clean=False)
        group.wait_for_all_to_read([first, second])
        second.kill()
        group.wait_for_all_to_read([first])
        group.produce_and_wait(by=[first])
        third = come()
        group.wait_for_all_to_read([first, third])
        first.leave()
        group.produce_and_wait(by=[third])
        assert type_of(daemon) == "consumer"


def test_a_static_member_that_is_restarted_goes_on_and_nobody_else_notices(tmp_path: Path) -> None:
    with a_group(tmp_path) as (daemon, group, come):
        members = [come(instance="i"), come(instance="j")]
        group.wait_for_all_to_read(members)
        epoch = group_epoch(daemon)
        members[0].leave()
        members[0] = come(instance="i")
        group.produce_and_wait(by=members)
        assert group_epoch(daemon) == epoch


def group_epoch(daemon: Daemon) -> int:
    with KafkaWire(daemon.host, daemon.port) as wire:
        answer = wire.call("consumer_group_describe", 1, group_ids=("g",), include_authorized_operations=False)
        (group,) = answer.groups
        assert group.error_code == 0
        epoch: int = group.group_epoch
        return epoch


@pytest.mark.parametrize("library", ["confluent", "barnabas"])
def test_members_are_replaced_one_by_one_and_the_group_changes_its_protocol_and_back(
    tmp_path: Path, library: str
) -> None:
    with a_group(tmp_path) as (daemon, group, come):
        classic = [come(CLASSIC, library), come(CLASSIC, library)]
        group.wait_for_all_to_read(classic)
        assert type_of(daemon) == "classic"
        first = come()
        group.wait_for_all_to_read([*classic, first])
        assert type_of(daemon) == "consumer"
        classic[0].leave()
        group.wait_for_all_to_read([classic[1], first])
        daemon.restart(clean=False)
        group.wait_for_all_to_read([classic[1], first])
        second = come()
        classic[1].kill()
        group.wait_for_all_to_read([first, second])
        back = come(CLASSIC, library)
        group.wait_for_all_to_read([first, second, back])
        first.leave()
        second.leave()
        group.produce_and_wait(by=[back])
        assert type_of(daemon) == "classic"
