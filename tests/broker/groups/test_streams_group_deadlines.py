"""Late members of streams groups, with a driven clock, and a log in memory that refuses appends."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.log.group_log import GroupLog
from barnabas.broker.groups.streams.group import StreamsGroup
from barnabas.broker.groups.streams.groups import RETRY_MS, StreamsGroups, StreamsHeartbeatResult
from barnabas.broker.groups.streams.settings import StreamsContext, StreamsGroupSettings
from barnabas.broker.groups.timers import GroupClock
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.probes import ApiProbe
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.protocol.messages.groups.streams_topology import Subtopology, Topology
from tests.support.groups.consumer_groups import GROUP, ConsumerGroupHost, now

SESSION_MS = 45_000
REBALANCE_MS = 10_000
REMOVAL = 4
"""Records that remove a member."""
TOPOLOGY = Topology(epoch=0, subtopologies=(Subtopology(subtopology_id="0", source_topics=("in",)),))


class Host(ConsumerGroupHost):
    """Adds a streams group with four tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.topic("in", 4)
        clock = GroupClock(lambda: self.clock.now, lambda: int(self.clock.now * 1000))
        settings = StreamsGroupSettings(SESSION_MS, initial_delay_ms=0, assignment_interval_ms=0)
        self.streams = StreamsGroups(
            group_log=cast(GroupLog, self.log),
            registry=self.registry,
            classic=self.classic,
            context=StreamsContext(settings, clock, lambda: self.image),
            loop=cast(asyncio.AbstractEventLoop, self.clock),
        )

    @property
    def streams_group(self) -> StreamsGroup:
        group = self.streams.get(GROUP)
        assert group is not None
        return group

    def send(self, request: StreamsGroupHeartbeatRequest) -> Deferred[StreamsHeartbeatResult]:
        return self.streams.heartbeat(request, JoiningClient("client", "/127.0.0.1"), ApiProbe())

    def joins(self, name: str) -> Deferred[StreamsHeartbeatResult]:
        request = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=name,
            member_epoch=0,
            rebalance_timeout_ms=REBALANCE_MS,
            topology=TOPOLOGY,
            active_task_ids=(),
            standby_task_ids=(),
            warmup_task_ids=(),
            process_id=name,
        )
        return self.send(request)

    def joined(self, *names: str) -> None:
        for name in names:
            self._see(name, self.joins(name))

    def beats(self, name: str) -> None:
        """Send a heartbeat of a member that gives up no task."""
        self._see(
            name,
            self.send(StreamsGroupHeartbeatRequest(group_id=GROUP, member_id=name, member_epoch=self.epochs[name])),
        )

    def _see(self, name: str, answer: Deferred[StreamsHeartbeatResult]) -> None:
        response = now(answer).response
        assert response.error == ErrorCode.NONE, response
        self.epochs[name] = response.member_epoch

    def removals(self) -> list[tuple[str, str]]:
        kinds = ("session_ended", "revocation_timed_out")
        return [(each.kind, each.member_id) for each in self.registry.histories.of(GROUP) if each.kind in kinds]


@pytest.fixture
def host() -> Host:
    return Host()


def test_late_members_are_removed_though_the_records_of_all_do_not_fit_a_batch(host: Host) -> None:
    host.joined("a", "b", "c", "d")
    host.log.max_records = REMOVAL
    host.clock.pass_time(SESSION_MS)
    assert host.removals() == [("session_ended", name) for name in "abcd"]
    assert not host.streams_group.members


def test_a_member_whose_removal_could_not_be_written_is_removed_later(host: Host) -> None:
    host.joined("a", "b")
    host.log.fails = True
    host.clock.pass_time(SESSION_MS)
    assert set(host.streams_group.members) == {"a", "b"}
    host.log.fails = False
    host.clock.pass_time(RETRY_MS)
    assert not host.streams_group.members


def test_a_member_that_keeps_tasks_too_long_is_removed_after_a_failed_append_too(host: Host) -> None:
    host.joined("a", "b")
    host.beats("a")  # told to give up two tasks
    host.log.fails = True
    host.clock.pass_time(REBALANCE_MS)
    assert host.removals() == []
    host.log.fails = False
    host.beats("a")
    host.clock.pass_time(RETRY_MS)
    assert host.removals() == [("revocation_timed_out", "a")]
    assert set(host.streams_group.members) == {"b"}


def test_a_member_that_joined_again_while_its_removal_was_flushed_keeps_its_session(host: Host) -> None:
    host.joined("a")
    host.log.flushes_late = True
    host.clock.pass_time(SESSION_MS)
    answer = host.joins("a")
    host.log.flush(BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no space"))
    assert answer.done
    host.log.flushes_late = False
    host.clock.pass_time(SESSION_MS - 1)
    assert set(host.streams_group.members) == {"a"}
    host.clock.pass_time(1)
    assert not host.streams_group.members
