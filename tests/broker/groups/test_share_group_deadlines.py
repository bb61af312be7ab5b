"""Late members of share groups, and the initialization of their states, with a driven clock and a log in memory."""

from __future__ import annotations

import asyncio
from typing import NoReturn, cast

import pytest

from barnabas.broker.groups.log.group_log import GroupLog
from barnabas.broker.groups.share.context import ShareContext
from barnabas.broker.groups.share.group import Postponed, ShareGroup
from barnabas.broker.groups.share.groups import RETRY_MS, ShareGroups
from barnabas.broker.groups.share.settings import ShareGroupSettings
from barnabas.broker.groups.timers import GroupClock
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.probes import ApiProbe
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.support.groups.consumer_groups import CLIENT, GROUP, ConsumerGroupHost, now

SESSION_MS = 45_000


def _no_coordinator() -> NoReturn:
    raise AssertionError("nothing is to be initialized")


class Host(ConsumerGroupHost):
    """Adds a share group whose topics do not exist, so that the share coordinator has nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        clock = GroupClock(lambda: self.clock.now, lambda: int(self.clock.now * 1000))
        self.shares = ShareGroups(
            group_log=cast(GroupLog, self.log),
            registry=self.registry,
            offsets=self.offsets,
            context=ShareContext(ShareGroupSettings(SESSION_MS), clock, lambda: self.image),
            coordinator=_no_coordinator,
            loop=cast(asyncio.AbstractEventLoop, self.clock),
        )

    @property
    def share_group(self) -> ShareGroup:
        group = self.shares.get(GROUP)
        assert group is not None
        return group

    def joins(self, name: str) -> Deferred[ShareGroupHeartbeatResponse]:
        return self.shares.heartbeat(
            ShareGroupHeartbeatRequest(group_id=GROUP, member_id=name, member_epoch=0, topic_names=["in"]),
            CLIENT,
            ApiProbe(),
        )

    def joined(self, *names: str) -> None:
        for name in names:
            assert now(self.joins(name)).error is ErrorCode.NONE

    def beats(self, name: str) -> ShareGroupHeartbeatResponse:
        epoch = self.share_group.members[name].member_epoch
        answer: ShareGroupHeartbeatResponse = now(
            self.shares.heartbeat(
                ShareGroupHeartbeatRequest(group_id=GROUP, member_id=name, member_epoch=epoch), CLIENT, ApiProbe()
            )
        )
        assert answer.error is ErrorCode.NONE
        return answer

    def removals(self) -> list[str]:
        return [each.member_id for each in self.registry.histories.of(GROUP) if each.kind == "session_ended"]


@pytest.fixture
def host() -> Host:
    return Host()


def test_all_members_whose_sessions_end_together_are_removed(host: Host) -> None:
    host.joined("a", "b", "c")
    host.clock.pass_time(SESSION_MS)
    assert host.removals() == ["a", "b", "c"]
    assert not host.share_group.members


def test_a_member_whose_removal_could_not_be_written_is_removed_later(host: Host) -> None:
    host.joined("a", "b")
    host.log.fails = True
    host.clock.pass_time(SESSION_MS)
    assert set(host.share_group.members) == {"a", "b"}
    host.log.fails = False
    host.clock.pass_time(RETRY_MS)
    assert host.removals() == ["a", "b"]


def test_a_failed_removal_looks_at_no_other_member(host: Host) -> None:
    """Otherwise one try would look at all members for each of them."""
    host.joined("a", "b")
    host.share_group.timers.cancel(("session", "b"))
    host.log.fails = True
    host.clock.pass_time(SESSION_MS)
    assert ("session", "a") in host.share_group.timers
    assert ("session", "b") not in host.share_group.timers


def test_a_member_that_joined_again_while_its_removal_was_flushed_keeps_its_session(host: Host) -> None:
    host.joined("a")
    host.log.flushes_late = True
    host.clock.pass_time(SESSION_MS)
    answer = host.joins("a")
    host.log.flush(BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no space"))
    assert answer.done
    host.log.flushes_late = False
    host.clock.pass_time(SESSION_MS - 1)
    assert set(host.share_group.members) == {"a"}
    host.clock.pass_time(1)
    assert not host.share_group.members


def test_a_failed_initialization_of_states_is_repeated_after_growing_pauses(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(host.shares._states, "begin", lambda group_id, partitions, epoch: begun.append(group_id))
    host.joined("a")
    group = host.share_group
    pauses = []
    for _ in range(9):
        group.postpone_initialization(30_000)
        pauses.append(group.postponed_ms)
    assert pauses == [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]
    host.topic("in", 1)
    host.shares.topics_changed(["in"])
    group.postponed = Postponed(host.clock.now + 0.7, 700)
    assert host.beats("a").heartbeat_interval_ms == 700
    assert begun == []
    host.clock.pass_time(690)
    assert host.beats("a").heartbeat_interval_ms == 200
    assert begun == []
    host.clock.pass_time(10 + 1)
    assert host.beats("a").heartbeat_interval_ms == 200
    assert begun == [GROUP]
