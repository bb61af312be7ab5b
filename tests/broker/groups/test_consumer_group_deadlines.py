"""Late members of consumer groups, with a driven clock, and a log in memory that refuses appends."""

from __future__ import annotations

import pytest

from barnabas.broker.groups.consumer.groups import RETRY_MS
from barnabas.broker.probes import ApiProbe
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.groups.consumer_groups import CLIENT, GROUP, REBALANCE_MS, SESSION_MS, ConsumerGroupHost

REMOVAL = 4
"""Records that remove a member."""


@pytest.fixture
def host() -> ConsumerGroupHost:
    made = ConsumerGroupHost()
    made.topic("t", 4)
    return made


def removals(host: ConsumerGroupHost) -> list[tuple[str, str]]:
    kinds = ("session_ended", "revocation_timed_out")
    return [(each.kind, each.member_id) for each in host.registry.histories.of(GROUP) if each.kind in kinds]


def test_late_members_are_removed_though_the_records_of_all_do_not_fit_a_batch(host: ConsumerGroupHost) -> None:
    for name in "abcde":
        host.join(name, ["t"])
    host.log.max_records = REMOVAL
    host.clock.pass_time(SESSION_MS)
    assert sorted(removals(host)) == [("session_ended", name) for name in "abcde"]
    assert not host.group.members


def test_late_members_are_removed_by_one_append_where_they_fit(host: ConsumerGroupHost) -> None:
    for name in "abc":
        host.join(name, ["t"])
    appends = len(host.log.appends)
    host.clock.pass_time(SESSION_MS)
    assert not host.group.members
    assert len(host.log.appends) == appends + 1


def test_a_member_that_keeps_partitions_too_long_is_removed_after_a_failed_append_too(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.join("b", ["t"])
    host.beat("a")  # told to give up two partitions
    for _ in range(REBALANCE_MS // 20_000):
        host.log.fails = False
        host.beat("a")
        host.beat("b")
        host.log.fails = True
        host.clock.pass_time(20_000)
    assert removals(host) == []
    host.log.fails = False
    host.beat("a")
    host.clock.pass_time(RETRY_MS)
    assert removals(host) == [("revocation_timed_out", "a")]
    assert set(host.group.members) == {"b"}


def test_a_member_that_joined_again_while_its_removal_was_flushed_keeps_its_session(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.log.flushes_late = True
    host.clock.pass_time(SESSION_MS)
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="a", member_epoch=0, rebalance_timeout_ms=REBALANCE_MS, topic_names=["t"], topics=()
    )
    answer = host.groups.heartbeat(request, CLIENT, ApiProbe())
    assert not answer.done
    host.log.flush(BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no space"))
    host.log.flushes_late = False
    host.clock.pass_time(SESSION_MS - 1)
    assert set(host.group.members) == {"a"}
    host.clock.pass_time(1)
    assert not host.group.members
