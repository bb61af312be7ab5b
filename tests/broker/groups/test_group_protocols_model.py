"""One group id used by clients of both protocols, on a log that flushes late or never, through power cuts.

Two clients never read the same partition. A response is sent only after its records are durable, so no client is ahead
of a log that was cut after its last flush. An acknowledged commit stays until its topic is deleted or it expires. An
offset of a transaction is pending until the marker, and committed by that alone. Once the log works again, every client
is a member and every partition is read.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.broker.groups.offsets.checks import accept_partitions
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.records.end_marker import EndMarker
from tests.support.groups.consumer_groups import GROUP, REBALANCE_MS, RETENTION_MINUTES, SESSION_MS, ConsumerGroupHost
from tests.support.groups.modelled_consumers import NAMES, Client, NewClient, OldClient, then

FAILED = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the disk is gone")

REFUSED_COMMITS = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
PRODUCERS = (7, 8)
MILLISECONDS = (1, 1000, SESSION_MS // 2, SESSION_MS, REBALANCE_MS, RETENTION_MINUTES * 60_000)


class GroupProtocolsMachine(RuleBasedStateMachine):
    """Random events between a request, its records, their flush and its response."""

    def __init__(self) -> None:
        super().__init__()
        self.host = ConsumerGroupHost()
        self.sizes = {"t": 3, "u": 2}
        self.ids = count(1)
        for name in NAMES:
            self.make(name)
        self.clients: dict[str, Client] = {}
        self.named = count(1)
        self.requests = count(1)
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.offered: dict[tuple[str, int], set[int]] = {}
        """Commits without a response that followed the last acknowledged one; they may be in the log or not."""
        self.offsets = count(1)
        self.transactions: dict[int, dict[tuple[str, int], int]] = {each: {} for each in PRODUCERS}
        """The offsets that each producer's open transaction has in the log."""

    def make(self, name: str) -> None:
        self.host.topic(name, self.sizes[name], topic_id=f"{name}{next(self.ids)}".encode().ljust(16, b"\0"))

    # --- clients

    def send(self, client: Client, *, is_lost: bool = False) -> None:
        number = client.waits_for = next(self.requests)
        sent_at, host = self.host.clock.now, self.host

        def answered(answer: Any) -> None:
            if client.waits_for != number or host is not self.host or client.name not in self.clients:
                return  # the client has sent the request again, has died, or has lost its connection
            client.waits_for = 0
            if is_lost:
                client.missed()
                return
            client.heard_at = sent_at
            client.answered(host, answer)
            if not client.is_alive:
                del self.clients[client.name]

        client.send(host, answered)

    @precondition(lambda self: len(self.clients) < 4)
    @rule(is_new=st.booleans(), instance=st.sampled_from([None, None, "i"]))
    def a_client_comes(self, is_new: bool, instance: str | None) -> None:
        # a restarted process; of two with the same instance id, the first reads until its next response
        if instance is not None:
            self.clients = {name: each for name, each in self.clients.items() if each.instance != instance}
        name = f"m{next(self.named)}"
        client = self.clients[name] = NewClient(name, instance) if is_new else OldClient(name, instance)
        client.heard_at = self.host.clock.now
        self.send(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), is_lost=st.sampled_from([False, False, False, True]))
    def a_client_goes_on(self, data: st.DataObject, is_lost: bool) -> None:
        client = self.drawn(data)
        if client.waits_for:
            client.missed()  # its request has timed out
        self.send(client, is_lost=is_lost)

    @precondition(lambda self: self.clients)
    @rule()
    def all_clients_go_on(self) -> None:
        for client in list(self.clients.values()):
            if not client.waits_for and client.name in self.clients:
                self.send(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_client_leaves(self, data: st.DataObject) -> None:
        client = self.clients.pop(self.drawn(data).name)
        client.leave(self.host, lambda _: None)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_client_dies(self, data: st.DataObject) -> None:
        self.clients.pop(self.drawn(data).name)

    def drawn(self, data: st.DataObject) -> Client:
        return self.clients[data.draw(st.sampled_from(sorted(self.clients)))]

    # --- offsets

    @precondition(lambda self: any(client.owned for client in self.clients.values()))
    @rule(data=st.data())
    def a_client_commits(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from([each for each in self.clients.values() if each.owned]), label="client")
        topic, partition = data.draw(st.sampled_from(sorted(client.owned)), label="partition")
        if topic not in self.host.image.topics:
            return
        self.commit(topic, partition, client.member_id, client.generation, client.instance)

    @precondition(lambda self: any(client.owned for client in self.clients.values()))
    @rule(data=st.data(), producer=st.sampled_from(PRODUCERS), names_member=st.booleans())
    def a_client_commits_in_a_transaction(self, data: st.DataObject, producer: int, names_member: bool) -> None:
        client = data.draw(st.sampled_from([each for each in self.clients.values() if each.owned]), label="client")
        topic, partition = data.draw(st.sampled_from(sorted(client.owned)), label="partition")
        if topic not in self.host.image.topics:
            return
        offset = next(self.offsets)
        topics = [
            TxnOffsetCommitTopic(name=topic, partitions=[TxnOffsetCommitPartition(partition=partition, offset=offset)])
        ]
        request = TxnOffsetCommitRequest(
            transactional_id="x", group_id=GROUP, producer_id=producer, producer_epoch=0, topics=topics
        )
        if names_member:
            request.generation, request.member_id = client.generation, client.member_id
            request.group_instance_id = client.instance
        _, accepted = accept_partitions(self.host.image, topics)
        appends = len(self.host.log.appends)
        try:
            self.host.transactional.commit(request, accepted)
        except BrokerError as error:
            if error.code not in REFUSED_COMMITS:
                raise
        if len(self.host.log.appends) > appends:
            self.transactions[producer][topic, partition] = offset

    @precondition(lambda self: any(self.transactions.values()))
    @rule(data=st.data(), is_commit=st.booleans())
    def a_transaction_ends(self, data: st.DataObject, is_commit: bool) -> None:
        producer = data.draw(st.sampled_from([each for each in PRODUCERS if self.transactions[each]]))
        offsets, host = self.transactions[producer], self.host

        def ended(error: BrokerError | None) -> None:
            if error is not None or host is not self.host:
                return
            for key, offset in offsets.items():
                if is_commit and key[0] in host.image.topics:
                    self.acknowledge(key, offset)

        try:
            marker = EndMarker(is_commit, 0)
            answer = host.transactional.end(0, TransactionEnd(producer, 0, marker, 0))
        except BrokerError:
            return
        self.transactions[producer] = {}
        if is_commit:
            for key, offset in offsets.items():
                self.offered.setdefault(key, set()).add(offset)
        answer.then(ended)

    def acknowledge(self, key: tuple[str, int], offset: int) -> None:
        if offset > self.acknowledged.get(key, 0):
            self.acknowledged[key] = offset
            self.offered[key] = {each for each in self.offered[key] if each > offset}

    def commit(self, topic: str, partition: int, member_id: str, generation: int, instance: str | None) -> None:
        offset = next(self.offsets)
        request = OffsetCommitRequest(
            group_id=GROUP,
            topics=[
                OffsetCommitTopic(name=topic, partitions=[OffsetCommitPartition(partition=partition, offset=offset)])
            ],
            generation=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        host, topic_id = self.host, self.host.image.topics[topic].topic_id

        def answered(response: OffsetCommitResponse) -> None:
            if host is not self.host or topic not in host.image.topics or host.image.topics[topic].topic_id != topic_id:
                return
            if response.topics[0].partitions[0].error == ErrorCode.NONE:
                self.acknowledge((topic, partition), offset)

        self.offered.setdefault((topic, partition), set()).add(offset)
        try:
            then(host.offsets.commit(request), answered)
        except BrokerError as error:
            if error.code not in REFUSED_COMMITS:
                raise
            self.offered[topic, partition].discard(offset)

    @rule()
    def old_offsets_expire(self) -> None:
        before = dict(self.host.offsets.committed.of(GROUP))
        asyncio.run(self.host.expiry.expire())
        for key in before.keys() - self.host.offsets.committed.of(GROUP).keys():
            age_ms = self.host.clock.now * 1000 - before[key].commit_timestamp
            assert age_ms >= RETENTION_MINUTES * 60_000
            assert self.host.log.durable < len(self.host.log.appends) or not self.host.log.fails
            assert not any(key in offsets for offsets in self.transactions.values()), "a pending partition expired"
            self.acknowledged.pop(key, None)

    # --- time, log, broker, topics

    @rule(milliseconds=st.sampled_from(MILLISECONDS))
    def time_passes(self, milliseconds: int) -> None:
        for client in list(self.clients.values()):  # clients count their session timeouts themselves
            if client.heard_at + SESSION_MS / 1000 <= self.host.clock.now + milliseconds / 1000:
                client.expire()
        self.host.clock.pass_time(milliseconds)
        for client in list(self.clients.values()):
            if client.owned and client.member_id not in self.members():
                client.expire()

    def members(self) -> set[str]:
        group, classic = self.host.groups.get(GROUP), self.host.classic.get(GROUP)
        assert group is None or classic is None, "a group id in both protocols"
        if group is not None:
            return set(group.members)
        return set() if classic is None else {each.member_id for each in classic.roster}

    @rule(is_late=st.booleans())
    def flushes_take_time_or_not(self, is_late: bool) -> None:
        self.host.log.flushes_late = is_late
        if not is_late:
            self.host.log.flush()

    @precondition(lambda self: self.host.log.is_flushing)
    @rule()
    def a_flush_ends(self) -> None:
        self.host.log.flush()

    @precondition(lambda self: self.host.log.is_flushing)
    @rule()
    def a_flush_fails(self) -> None:
        """Take the log's directory offline until the next start."""
        self.host.log.fails = True
        self.host.log.flush(FAILED)

    @rule(fails=st.booleans())
    def the_log_takes_records_or_not(self, fails: bool) -> None:
        if self.host.log.durable == len(self.host.log.appends) or self.host.log.is_flushing:
            self.host.log.fails = fails

    @rule(data=st.data(), has_power_cut=st.booleans())
    def the_broker_is_killed(self, data: st.DataObject, has_power_cut: bool) -> None:
        log = self.host.log
        unflushed = len(log.appends) - log.durable
        log.lose_power(data.draw(st.integers(0, unflushed)) if has_power_cut else unflushed)
        log.fails = False
        self.host = self.host.restarted()
        self.reload_transactions()
        for client in self.clients.values():
            if client.waits_for:
                client.waits_for = 0
                client.missed()
        self.host.delete_gone_offsets()

    def reload_transactions(self) -> None:
        self.transactions = {each: {} for each in PRODUCERS}
        for (_, producer), key, pending in self.host.log.pending_records():
            self.transactions[producer][key.topic, key.partition] = pending.value.offset

    @rule(name=st.sampled_from(NAMES))
    def a_topic_grows(self, name: str) -> None:
        if name in self.host.image.topics and self.sizes[name] < 6:
            self.sizes[name] += 1
            self.host.topic(name, self.sizes[name], topic_id=self.host.image.topics[name].topic_id)

    @rule(name=st.sampled_from(NAMES))
    def a_topic_goes_or_comes(self, name: str) -> None:
        if name not in self.host.image.topics:
            self.make(name)
            return
        self.host.delete_topic(name)
        for client in self.clients.values():
            client.owned = {(topic, number) for topic, number in client.owned if topic != name}
        for key in [key for key in self.acknowledged if key[0] == name]:
            del self.acknowledged[key]
        self.host.delete_gone_offsets()
        if not self.host.log.fails:
            for offsets in self.transactions.values():
                for key in [key for key in offsets if key[0] == name]:
                    del offsets[key]

    # --- invariants

    @invariant()
    def it_holds(self) -> None:
        """The id has one protocol, no partition has two readers, acknowledged commits are in the log."""
        self.members()
        read = [partition for client in self.clients.values() for partition in client.owned]
        assert len(read) == len(set(read)), {each.name: each.owned for each in self.clients.values()}
        committed, pending = self.host.offsets.committed.of(GROUP), self.host.offsets.pending
        assert set(pending.of(GROUP)) == {key for offsets in self.transactions.values() for key in offsets}
        for key, offset in self.acknowledged.items():
            assert key in committed, key
            assert committed[key].offset in {offset, *self.offered[key]}, key

    def teardown(self) -> None:
        log = self.host.log
        if log.fails and log.durable < len(log.appends):
            log.lose_power(0)
            self.host = self.host.restarted()
            self.reload_transactions()
            for client in self.clients.values():
                client.waits_for = 0
                client.missed()
        log.fails = log.flushes_late = False
        log.flush()
        for name in NAMES:
            if name not in self.host.image.topics:
                self.make(name)
        for _ in range(40):
            for client in list(self.clients.values()):
                if client.waits_for or client.name not in self.clients:
                    continue
                self.send(client)
                self.it_holds()
            self.time_passes(SESSION_MS // 6)
            self.it_holds()
        if not self.clients:
            assert not self.members(), "who died stays for ever"
            return
        assert self.members() == {client.member_id for client in self.clients.values()}
        read = {partition for client in self.clients.values() for partition in client.owned}
        assert len(read) == sum(self.sizes.values()), "somebody's partitions are read by nobody"


TestGroupProtocols = GroupProtocolsMachine.TestCase
TestGroupProtocols.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
