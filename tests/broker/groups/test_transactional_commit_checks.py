"""Which members may commit offsets in a transaction: groups of both protocols, without a broker."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.offsets.checks import accept_partitions
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from tests.support.groups.consumer_groups import GROUP, ConsumerGroupHost, now
from tests.support.groups.groups import SESSION_MS, GroupHost

NONE = ErrorCode.NONE
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID = ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID


def committed(host: ConsumerGroupHost, *partitions: int, member: str = "", epoch: int = -1, **fields: Any) -> ErrorCode:
    """Commit offset 1 of topic `t` in a transaction; return the error of the request."""
    topics = [
        TxnOffsetCommitTopic(
            name="t", partitions=[TxnOffsetCommitPartition(partition=each, offset=1) for each in partitions]
        )
    ]
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=GROUP,
        producer_id=7,
        producer_epoch=0,
        topics=topics,
        generation=epoch,
        member_id=member,
        **fields,
    )
    _, accepted = accept_partitions(host.image, topics)
    try:
        error = now(host.transactional.commit(request, accepted))
    except BrokerError as refused:
        error = refused
    assert (set(host.offsets.pending.of(GROUP)) == {("t", each) for each in partitions}) is (error is None)
    host.offsets.pending.clear()
    return NONE if error is None else error.code


def checked(host: GroupHost, member: str = "", generation: int = -1, instance: str | None = None) -> ErrorCode:
    """Return the answer of a classic group."""
    try:
        host.group.validate_transactional_commit(member, instance, generation)
    except BrokerError as error:
        return error.code
    return NONE


def test_a_classic_group_checks_the_member_that_a_commit_names() -> None:
    host = GroupHost()
    assert checked(host) is checked(host, "gone") is NONE
    assert checked(host, "gone", 0) is UNKNOWN_MEMBER_ID
    first, _ = host.form(2)
    generation = host.group.generation
    assert checked(host) is checked(host, first, generation) is NONE
    assert checked(host, first, generation - 1) is checked(host, first) is ILLEGAL_GENERATION
    assert checked(host, "gone", generation) is checked(host, "gone") is UNKNOWN_MEMBER_ID
    assert checked(host, first, generation, "nobody") is UNKNOWN_MEMBER_ID


def test_a_replaced_static_member_is_fenced() -> None:
    host = GroupHost()
    members = []
    for _ in range(2):
        number = host.join(instance="i")
        host.pass_time(0)
        members.append(host.joined(number).member_id)
    assert checked(host, members[0], host.group.generation, "i") is ErrorCode.FENCED_INSTANCE_ID
    assert checked(host, members[1], host.group.generation, "i") is NONE


def test_a_classic_group_takes_offsets_while_it_rebalances_and_counts_no_heartbeat() -> None:
    host = GroupHost()
    (first,) = host.form(1)
    host.pass_time(SESSION_MS // 2)
    assert checked(host, first, host.group.generation) is NONE
    host.new_member()
    host.join(first)
    assert host.is_in(GroupState.COMPLETING_REBALANCE)
    assert checked(host, first, host.group.generation) is NONE
    with pytest.raises(BrokerError, match="REBALANCE_IN_PROGRESS"):
        host.group.validate_offset_commit(first, None, host.group.generation)


def test_a_commit_in_a_transaction_does_not_extend_a_members_session() -> None:
    host = GroupHost()
    (first,) = host.form(1)
    host.pass_time(SESSION_MS - 1)
    assert checked(host, first, host.group.generation) is NONE
    host.pass_time(1)
    assert host.is_in(GroupState.EMPTY)


def test_a_consumer_group_checks_the_member_that_a_commit_names() -> None:
    host = ConsumerGroupHost()
    host.topic("t", 2)
    assert committed(host, 0) is NONE
    assert committed(host, 0, member="a", epoch=1) is ILLEGAL_GENERATION
    host.join("a", ["t"])
    epoch = host.epochs["a"]
    assert committed(host, 0) is committed(host, 0, 1, member="a", epoch=epoch) is NONE
    assert committed(host, 0, member="gone", epoch=epoch) is UNKNOWN_MEMBER_ID
    assert committed(host, 0, group_instance_id="i") is UNKNOWN_MEMBER_ID
    assert committed(host, 0, member="a") is committed(host, 0, member="a", epoch=epoch + 1) is ILLEGAL_GENERATION


def test_a_commit_in_an_older_epoch_is_valid_for_partitions_that_the_member_has_had_since() -> None:
    host = ConsumerGroupHost()
    host.topic("t", 2)
    host.join("a", ["t"])
    before = host.epochs["a"]
    host.join("b", ["t"])
    host.settle("a", "b")
    assert host.epochs["a"] > before
    ((_, kept),) = host.partitions("a")
    assert committed(host, kept, member="a", epoch=before) is NONE
    assert committed(host, 1 - kept, member="a", epoch=before) is ILLEGAL_GENERATION
    assert committed(host, kept, 1 - kept, member="a", epoch=before) is ILLEGAL_GENERATION


def test_a_group_that_only_has_offsets_has_no_members() -> None:
    host = ConsumerGroupHost()
    host.topic("t", 1)
    assert committed(host, 0, member="a", epoch=3) is ILLEGAL_GENERATION
    topics = [TxnOffsetCommitTopic(name="t", partitions=[TxnOffsetCommitPartition(partition=0, offset=1)])]
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id=GROUP, producer_id=7, producer_epoch=0, topics=topics
    )
    host.transactional.commit(request, accept_partitions(host.image, topics)[1])
    request.generation, request.member_id = 3, "a"
    with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
        host.transactional.commit(request, accept_partitions(host.image, topics)[1])
