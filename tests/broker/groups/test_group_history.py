"""The history of groups of both protocols, and whom a group waits for, with a driven clock."""

from __future__ import annotations

from barnabas.broker.groups.explanation.members import member_timings
from barnabas.broker.groups.history import MAX_EVENTS, MAX_GROUPS, MAX_TEXT, EventMember, GroupHistories
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.messages.groups.explain_group import GroupEventKind, MemberTiming
from tests.support.groups.consumer_groups import GROUP, REBALANCE_MS, SESSION_MS, ConsumerGroupHost, now


def kinds(host: ConsumerGroupHost) -> list[tuple[str, str]]:
    """The events so far, as (kind, member id); the member ids of classic clients are made up by the broker."""
    return [(each.kind, each.member_id) for each in host.registry.histories.of(GROUP)]


def timings(host: ConsumerGroupHost) -> dict[str, MemberTiming]:
    group = host.registry.get(GROUP)
    assert group is not None
    return {each.member_id: each for each in member_timings(group, SESSION_MS)}


def test_a_consumer_group_says_who_joined_left_and_timed_out_and_whom_it_waits_for() -> None:
    host = ConsumerGroupHost()
    host.topic("t", 4)
    host.join("a", ["t"])
    host.join("b", ["t"])
    assert kinds(host) == [("joined", "a"), ("rebalance_began", ""), ("joined", "b"), ("rebalance_began", "")]
    host.beat("a")  # told to give up two partitions
    assert host.state == "Reconciling"
    waiting = timings(host)
    assert (waiting["a"].waits_for, waiting["a"].wait_left_ms) == ("revocation", REBALANCE_MS)
    assert (waiting["b"].waits_for, waiting["b"].wait_left_ms) == ("other_members", None)
    assert waiting["b"].session_left_ms == SESSION_MS
    host.settle("a", "b")
    assert kinds(host)[-1] == ("stable", "")
    assert {each.waits_for for each in timings(host).values()} == {""}

    host.clock.pass_time(SESSION_MS - 1)
    host.beat("a")
    host.clock.pass_time(1)
    assert kinds(host)[-2:] == [("session_ended", "b"), ("rebalance_began", "")]
    host.settle("a")
    host.leave("a")
    assert kinds(host)[-3:] == [("left", "a"), ("rebalance_began", ""), ("empty", "")]


def test_a_member_that_keeps_revoked_partitions_too_long_is_named() -> None:
    host = ConsumerGroupHost()
    host.topic("t", 4)
    host.join("a", ["t"])
    host.join("b", ["t"])
    host.beat("a")
    for _ in range(2):
        host.clock.pass_time(REBALANCE_MS // 2)
        if "a" in host.group.members:
            host.beat("a")
        host.beat("b")
    assert ("revocation_timed_out", "a") in kinds(host)


def test_a_change_that_could_not_be_written_is_not_in_the_history() -> None:
    host = ConsumerGroupHost()
    host.topic("t", 4)
    host.log.fails = True
    host.join("a", ["t"])
    assert kinds(host) == []


def test_a_classic_group_says_why_it_rebalances_and_whom_it_waits_for() -> None:
    host = ConsumerGroupHost()
    host.topic("t", 2)
    answer = host.classic_join()
    assert isinstance(answer, Deferred)
    host.clock.pass_time(3000)  # group.initial.rebalance.delay.ms
    first = now(answer)
    host.classic_sync(first.member_id, first.generation, {first.member_id: b""})
    assert kinds(host) == [("joined", first.member_id), ("rebalance_began", ""), ("stable", "")]
    assert host.registry.histories.of(GROUP)[1].detail.startswith("a new member joins")

    host.classic_join()
    (second,) = timings(host).keys() - {first.member_id}
    waiting = timings(host)
    assert (waiting[first.member_id].waits_for, waiting[second].waits_for) == ("join", "other_members")
    assert waiting[first.member_id].wait_left_ms == REBALANCE_MS
    host.classic_leave(second)
    last = host.registry.histories.of(GROUP)[-1]
    assert (last.kind, last.member_id, last.client_host) == ("left", second, "127.0.0.1")
    host.clock.pass_time(SESSION_MS)
    assert ("session_ended", first.member_id) in kinds(host)


def test_histories_are_bounded_in_groups_events_and_text() -> None:
    histories = GroupHistories(lambda: 7)
    for number in range(MAX_EVENTS + 5):
        histories.add("busy", GroupEventKind.JOINED, EventMember(str(number), "c" * 1000, "/h"), "d" * 1000)
    events = histories.of("busy")
    assert [each.member_id for each in events] == [str(number) for number in range(5, MAX_EVENTS + 5)]
    assert (events[0].time_ms, len(events[0].client_id), len(events[0].detail)) == (7, MAX_TEXT, MAX_TEXT)
    for number in range(MAX_GROUPS - 1):
        histories.add(f"group-{number}", GroupEventKind.EMPTY)
    histories.add("busy", GroupEventKind.EMPTY)
    histories.add("one more", GroupEventKind.EMPTY)
    assert (len(histories.of("busy")), len(histories.of("group-0")), len(histories.of("group-1"))) == (MAX_EVENTS, 0, 1)
