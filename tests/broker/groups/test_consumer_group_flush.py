"""Consumer groups whose log is flushed before a response: events between append and flush."""

from __future__ import annotations

import pytest

from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.group import GroupState
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.probes import ApiProbe
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.consumer_group_heartbeat import LEAVE_EPOCH, ConsumerGroupHeartbeatRequest
from tests.support.groups.consumer_groups import GROUP, REBALANCE_MS, SESSION_MS, ConsumerGroupHost

CLIENT = JoiningClient("client", "/127.0.0.1")


@pytest.fixture
def host() -> ConsumerGroupHost:
    host = ConsumerGroupHost()
    host.topic("t", 4)
    return host


def ask(host: ConsumerGroupHost, member: str, epoch: int) -> Deferred[object]:
    """Send a heartbeat whose response may wait for the flush; the first one joins."""
    joins = {"rebalance_timeout_ms": REBALANCE_MS, "topic_names": ["t"], "topics": ()} if epoch == 0 else {}
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member, member_epoch=epoch, **joins)  # type: ignore[arg-type]
    return host.groups.heartbeat(request, CLIENT, ApiProbe())  # type: ignore[return-value]


def test_a_downgraded_group_exists_before_its_records_are_flushed(host: ConsumerGroupHost) -> None:
    host.join("new", ["t"])
    host.classic_join()
    (old,) = host.group.members.keys() - {"new"}
    host.log.flushes_late = True
    answers: list[object] = []
    ask(host, "new", LEAVE_EPOCH).then(answers.append)
    assert not answers
    group = host.classic.get(GROUP)
    assert group is not None, "its member would be told that there is no group"
    assert group.state == GroupState.PREPARING_REBALANCE
    host.log.flush()
    assert answers
    assert host.classic.get(GROUP) is group
    assert [member.member_id for member in group.roster] == [old]


def test_a_group_id_has_one_protocol_even_if_both_join_an_empty_group(host: ConsumerGroupHost) -> None:
    host.join("first", ["t"])
    host.leave("first")
    host.log.flushes_late = True
    host.classic_join()
    ask(host, "second", 0)
    for _ in range(3):
        host.log.flush()
    assert (host.classic.get(GROUP) is None) is not (host.groups.get(GROUP) is None)


def test_a_topic_that_grows_during_the_flush_is_noticed_by_the_next_heartbeat(host: ConsumerGroupHost) -> None:
    host.log.flushes_late = True
    ask(host, "a", 0)
    host.topic("t", 8)
    host.log.flush()
    host.log.flushes_late = False
    host.epochs["a"] = host.group.epoch
    host.beat("a")
    assert len(host.partitions("a")) == 8


def test_a_member_that_waits_for_others_writes_one_record(host: ConsumerGroupHost) -> None:
    host.join("a", ["t"])
    host.join("b", ["t"])
    host.beat("b")
    writes = len(host.log.appends)
    host.beat("b")
    host.beat("b")
    assert len(host.log.appends) == writes


def test_a_heartbeat_that_changes_nothing_waits_for_earlier_records(host: ConsumerGroupHost) -> None:
    host.log.flushes_late = True
    ask(host, "a", 0)
    answers: list[object] = []
    ask(host, "a", 0).then(answers.append)
    assert not answers, "a power cut would leave the client ahead of the log"
    host.log.flush()
    assert answers


def test_a_member_whose_join_was_not_flushed_has_a_session(host: ConsumerGroupHost) -> None:
    host.log.flushes_late = True
    ask(host, "a", 0)
    host.log.flush(BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no space"))
    assert "a" in host.group.members
    host.log.flushes_late = False
    host.clock.pass_time(SESSION_MS)
    assert "a" not in host.group.members
