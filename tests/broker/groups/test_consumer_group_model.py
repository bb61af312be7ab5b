"""A consumer group under random joins, leaves, timeouts, lost responses, failing writes and restarts.

A partition belongs to at most one member, in the group's state and in the clients' views; epochs only grow; members
commit only for partitions that they own; once the log accepts appends again and all members send heartbeats, every
partition is assigned.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.broker.groups.group import GroupState
from barnabas.protocol.errors import BrokerError, ErrorCode
from tests.support.groups.consumer_groups import GROUP, SESSION_MS, ConsumerGroupHost, assigned

TOPICS = st.sampled_from([("t",), ("u",), ("t", "u"), ()])
ASSIGNORS = st.sampled_from([None, "uniform", "range"])


class Client:
    """A consumer.

    `owned` are the partitions it reads. `missed` means that its last request failed, so the next one has all fields.
    """

    def __init__(self, member_id: str, instance: str | None) -> None:
        self.member_id = member_id
        self.instance = instance
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self.topics: object = ("t",)
        self.missed = False


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Members that follow the protocol at random times, on a network that loses responses."""

    def __init__(self) -> None:
        super().__init__()
        self.host = ConsumerGroupHost()
        self.sizes = {"t": 3, "u": 2}
        for name, size in self.sizes.items():
            self.host.topic(name, size)
        self.clients: dict[str, Client] = {}
        self.named = 0
        self.epoch = 0

    def send(self, client: Client, *, is_lost: bool = False, **fields: object) -> None:
        """Send a heartbeat with the client's state, and apply the response."""
        if fields.get("topic_names") is not None:
            client.topics = fields["topic_names"]
        if client.epoch == 0 or client.missed:
            fields = {**fields, "rebalance_timeout_ms": 60_000, "topic_names": client.topics}
        owned = client.owned if client.epoch else {}
        answer = self.host.ask(client.member_id, client.epoch, instance_id=client.instance, owned=dict(owned), **fields)
        client.missed = is_lost or answer.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        if is_lost:
            return
        if answer.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            client.owned, client.epoch = {}, 0
        elif answer.error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
            self.clients.pop(client.member_id)
        elif answer.error == ErrorCode.NONE:
            assert answer.member_epoch >= client.epoch
            client.epoch = answer.member_epoch
            told = assigned(answer)
            if told is not None:
                client.owned = told
        else:
            assert answer.error == ErrorCode.COORDINATOR_NOT_AVAILABLE

    @rule(topics=TOPICS, instance=st.sampled_from([None, None, "i"]), assignor=ASSIGNORS, is_lost=st.booleans())
    def a_client_comes(
        self, topics: tuple[str, ...], instance: str | None, assignor: str | None, is_lost: bool
    ) -> None:
        if len(self.clients) >= 5:
            return
        self.named += 1
        client = self.clients[f"m{self.named}"] = Client(f"m{self.named}", instance)
        self.send(client, topic_names=topics, assignor=assignor, is_lost=is_lost)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), is_lost=st.booleans(), topics=st.none() | TOPICS)
    def a_client_sends_a_heartbeat(self, data: st.DataObject, is_lost: bool, topics: tuple[str, ...] | None) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        if client.epoch == 0:
            topics = topics or ("t",)
        self.send(client, topic_names=topics, is_lost=is_lost)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), comes_back=st.booleans())
    def a_client_leaves(self, data: st.DataObject, comes_back: bool) -> None:
        client = self.clients.pop(data.draw(st.sampled_from(sorted(self.clients))))
        epoch = -2 if comes_back and client.instance is not None else -1
        self.host.ask(client.member_id, epoch, instance_id=client.instance)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_client_dies(self, data: st.DataObject) -> None:
        self.clients.pop(data.draw(st.sampled_from(sorted(self.clients))))

    @rule(milliseconds=st.sampled_from([1, 1000, SESSION_MS // 2, SESSION_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.host.clock.pass_time(milliseconds)
        group = self.host.groups.get(GROUP)
        for client in list(
            self.clients.values()
        ):  # a removed member stops reading in time, because its own session timeout has passed
            if milliseconds >= SESSION_MS or group is None or client.member_id not in group.members:
                client.owned, client.epoch = {}, 0

    @rule(fails=st.booleans())
    def the_log_takes_records_or_not(self, fails: bool) -> None:
        self.host.log.fails = fails

    @rule()
    def the_broker_is_restarted(self) -> None:
        fails = self.host.log.fails
        self.host = self.host.restarted()
        self.host.log.fails = fails

    @rule(name=st.sampled_from(["t", "u"]))
    def a_topic_grows(self, name: str) -> None:
        self.sizes[name] = min(self.sizes[name] + 1, 6)
        self.host.topic(name, self.sizes[name])

    @invariant()
    def a_partition_has_at_most_one_owner(self) -> None:
        group = self.host.groups.get(GROUP)
        if group is None:
            return
        owners: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for topics in (member.assigned, member.pending_revocation):
                for topic_id, epochs in topics.items():
                    for number in epochs:
                        assert owners.setdefault((topic_id, number), member.member_id) == member.member_id
        assert owners == group.owners
        targets = [
            (topic_id, number)
            for member_id, target in group.target.items()
            for topic_id, numbers in target.items()
            for number in numbers
        ]
        assert len(targets) == len(set(targets))

    @invariant()
    def two_clients_never_read_the_same(self) -> None:
        read = [
            (topic_id, number)
            for client in self.clients.values()
            for topic_id, numbers in client.owned.items()
            for number in numbers
        ]
        assert len(read) == len(set(read))

    @invariant()
    def a_client_may_commit_what_it_reads_and_nothing_that_another_one_has(self) -> None:
        group = self.host.groups.get(GROUP)
        if group is None:
            return
        for client in self.clients.values():
            if client.epoch == 0 or client.member_id not in group.members:
                continue
            for (topic_id, number), owner in group.owners.items():
                if number in client.owned.get(topic_id, ()):
                    assert self.commits(client, topic_id, number) == ErrorCode.NONE
                elif owner != client.member_id and client.epoch < group.members[client.member_id].member_epoch:
                    assert self.commits(client, topic_id, number) == ErrorCode.STALE_MEMBER_EPOCH

    def commits(self, client: Client, topic_id: bytes, number: int) -> ErrorCode:
        try:
            check = self.host.group.validate_offset_commit(
                client.member_id, client.instance, client.epoch, knows_member_epochs=True
            )
            if check is not None:
                check(topic_id, number)
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.host.groups.get(GROUP)
        if group is None:
            return
        assert group.epoch >= self.epoch
        assert group.assignment_epoch <= group.epoch
        assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())
        self.epoch = group.epoch

    def teardown(self) -> None:
        self.host.log.fails = False
        group = self.host.groups.get(GROUP)
        if group is None:
            return
        for _ in range(8):
            for client in list(self.clients.values()):
                self.send(client, topic_names=("t", "u"))
                self.two_clients_never_read_the_same()
            self.host.clock.pass_time(SESSION_MS // 3)
        group = self.host.groups.get(GROUP)
        assert group is not None
        assert set(group.members) == set(self.clients)
        if self.clients:
            assert group.state == GroupState.STABLE
            read = {
                (topic_id, number)
                for client in self.clients.values()
                for topic_id, numbers in client.owned.items()
                for number in numbers
            }
            assert len(read) == sum(self.sizes.values()), "somebody's partitions are read by nobody"


TestConsumerGroup = ConsumerGroupMachine.TestCase
TestConsumerGroup.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
