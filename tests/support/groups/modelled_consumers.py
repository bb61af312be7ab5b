"""Model consumers of either protocol: each behaves like a client library, with one request at a time.

A response is processed immediately when it arrives; `owned` is what the application reads at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.probes import ApiProbe
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeavingMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.groups.consumer_groups import (
    CLIENT,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerGroupHost,
    assigned,
    topics_of,
)
from tests.support.groups.groups import assignment_rows

NAMES = ("t", "u")
"""The topics that consumers read."""

Answers = Callable[[Any], None]


class Client:
    """A consumer of either protocol. `owned` are the (topic, partition) pairs that it reads."""

    def __init__(self, name: str, instance: str | None) -> None:
        self.name = name
        self.instance = instance
        self.owned: set[tuple[str, int]] = set()
        self.waits_for = 0
        """The number of its unanswered request; 0 if none."""
        self.heard_at = 0.0
        self.is_alive = True
        self.member_id = ""
        self.generation = 0

    def send(self, host: ConsumerGroupHost, answered: Answers) -> None:
        """Send the next request."""
        raise NotImplementedError

    def answered(self, host: ConsumerGroupHost, answer: Any) -> None:
        """Apply a response."""
        raise NotImplementedError

    def missed(self) -> None:
        """Treat the response as lost."""

    def expire(self) -> None:
        """Give up the partitions, because the session timeout has passed on the client's clock."""
        raise NotImplementedError

    def leave(self, host: ConsumerGroupHost, answered: Answers) -> None:
        """Send a leave request."""
        raise NotImplementedError


class NewClient(Client):
    """A consumer of the consumer protocol."""

    def __init__(self, name: str, instance: str | None) -> None:
        super().__init__(name, instance)
        self.member_id = name
        self.is_full = True

    def send(self, host: ConsumerGroupHost, answered: Answers) -> None:
        fields: dict[str, Any] = {}
        if self.generation == 0 or self.is_full:
            fields = {"rebalance_timeout_ms": REBALANCE_MS, "topic_names": list(NAMES)}
        owned: dict[bytes, list[int]] = {}
        for topic, number in sorted(self.owned):
            if topic in host.image.topics:
                owned.setdefault(host.image.topics[topic].topic_id, []).append(number)
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self.instance,
            topics=topics_of(owned),
            **fields,
        )
        try:
            host.groups.heartbeat(request, CLIENT, ApiProbe()).then(answered)
        except BrokerError as error:
            answered(ConsumerGroupHeartbeatResponse(error=error.code, message=error.message))

    def answered(self, host: ConsumerGroupHost, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error == ErrorCode.NONE:
            self.is_full = False
            self.generation = answer.member_epoch
            told = assigned(answer)
            if told is not None:
                names = host.image.names
                self.owned = {(names[each], n) for each, ns in told.items() if each in names for n in ns}
        elif answer.error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
            self.is_alive, self.owned = False, set()
        elif answer.error == ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.is_full = True
        else:
            expected = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
            assert answer.error in expected, answer
            self.expire()

    def missed(self) -> None:
        self.is_full = True

    def expire(self) -> None:
        self.owned, self.generation, self.is_full = set(), 0, True

    def leave(self, host: ConsumerGroupHost, answered: Answers) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, member_epoch=-1, instance_id=self.instance
        )
        try:
            host.groups.heartbeat(request, CLIENT, ApiProbe()).then(answered)
        except BrokerError:
            answered(None)


class OldClient(Client):
    """A consumer of the classic protocol with an eager assignor: it gives up all partitions before it joins again."""

    def __init__(self, name: str, instance: str | None) -> None:
        super().__init__(name, instance)
        self.joined: JoinGroupResponse | None = None
        self.is_stable = False
        self.seen: set[tuple[str, int, bytes]] = set()
        """The partitions that existed at the last assignment."""

    def send(self, host: ConsumerGroupHost, answered: Answers) -> None:
        if self.is_stable and self.joined is not None and self.joined.leader == self.member_id:
            if self.seen != partitions(host):
                self.joined, self.is_stable, self.owned = None, False, set()
        try:
            if self.is_stable:
                answered(host.members.heartbeat(GROUP, self.member_id, self.instance, self.generation))
            elif self.joined is not None:
                assignments = self.assign(host) if self.joined.members else {}
                request = SyncGroupRequest(
                    group_id=GROUP,
                    generation=self.generation,
                    member_id=self.member_id,
                    group_instance_id=self.instance,
                    protocol_type="consumer",
                    protocol="range",
                    assignments=assignment_rows(assignments),
                )
                answer = host.members.sync(request)
                then(answer, answered)
            else:
                metadata = encode_subscription(Subscription(NAMES))
                join = JoinGroupRequest(
                    group_id=GROUP,
                    session_timeout_ms=SESSION_MS,
                    sent_rebalance_timeout_ms=REBALANCE_MS,
                    member_id=self.member_id,
                    group_instance_id=self.instance,
                    protocol_type="consumer",
                    protocols=[GroupProtocol(name="range", metadata=metadata)],
                )
                then(host.members.join(join, CLIENT), answered)
        except BrokerError as error:
            answered(error.code)

    def assign(self, host: ConsumerGroupHost) -> dict[str, bytes]:
        """Assign as the leader."""
        assert self.joined is not None
        self.seen = partitions(host)
        parts: dict[str, dict[str, list[int]]] = {each.member_id: {} for each in self.joined.members}
        for topic in NAMES:
            readers = [
                each.member_id for each in self.joined.members if topic in decode_subscription(each.metadata).topics
            ]
            for number in sorted(number for name, number, _ in self.seen if name == topic):
                parts[readers[number % len(readers)]].setdefault(topic, []).append(number)
        return {member_id: encode_assignment(Assignment(topics)) for member_id, topics in parts.items()}

    def answered(self, host: ConsumerGroupHost, answer: Any) -> None:
        code = answer if isinstance(answer, ErrorCode) else answer.error
        if code == ErrorCode.NONE:
            if isinstance(answer, JoinGroupResponse):
                self.member_id, self.generation = answer.member_id, answer.generation
                self.joined = answer
            elif isinstance(answer, SyncGroupResponse):
                topics = decode_assignment(answer.assignment).partitions
                self.owned = {(topic, number) for topic, numbers in topics.items() for number in numbers}
                self.is_stable = True
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.is_alive, self.owned = False, set()
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.expire()
        elif code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
            pass
        else:
            assert code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION), code
            self.joined, self.is_stable, self.owned = None, False, set()

    def expire(self) -> None:
        self.joined, self.is_stable, self.owned, self.member_id = None, False, set(), ""

    def leave(self, host: ConsumerGroupHost, answered: Answers) -> None:
        try:
            member = LeavingMember(member_id=self.member_id, group_instance_id=self.instance)
            then(host.members.leave(LeaveGroupRequest(group_id=GROUP, members=[member])), answered)
        except BrokerError:
            answered(None)


def partitions(host: ConsumerGroupHost) -> set[tuple[str, int, bytes]]:
    """Return all partitions with their topics' ids, since a recreated topic is a different one."""
    topics = host.image.topics
    return {(name, number, topic.topic_id) for name, topic in topics.items() for number in topic.partitions}


def then(answer: Any, answered: Answers) -> None:
    if isinstance(answer, Deferred):
        answer.then(answered)
    else:
        answered(answer)
