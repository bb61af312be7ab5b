"""Groups of either protocol without a broker: a log in memory, and clock and topics controlled by tests.

host = ConsumerGroupHost(); host.topic("t", 4)
answer = host.join("a", ["t"]); host.beat("a")
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from barnabas.broker.groups.classic.groups import ClassicGroups
from barnabas.broker.groups.classic.settings import GroupSettings
from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.consumer.group import ConsumerGroup
from barnabas.broker.groups.consumer.groups import ConsumerGroups
from barnabas.broker.groups.consumer.settings import ConsumerGroupSettings, GroupContext
from barnabas.broker.groups.log.group_log import GroupLog
from barnabas.broker.groups.log.records import GroupRecord, TransactionWriter, replay_rank
from barnabas.broker.groups.membership import ClassicMembership
from barnabas.broker.groups.offsets.expiry import OffsetExpiryTask
from barnabas.broker.groups.offsets.pending import PendingOffset, PendingRecord
from barnabas.broker.groups.offsets.service import GroupOffsets
from barnabas.broker.groups.offsets.transactional import TransactionalOffsets
from barnabas.broker.groups.registry import GroupRegistry
from barnabas.broker.groups.timers import GroupClock
from barnabas.broker.live_config import LiveConfig
from barnabas.broker.metadata.image import MetadataImage, TopicImage
from barnabas.broker.metadata.view import MetadataView
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.probes import ApiProbe, GroupProbe
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import Subscription, encode_subscription
from barnabas.protocol.groups.keys import ConsumerGroupKey, GroupMetadataKey, OffsetCommitKey, decode_key
from barnabas.protocol.groups.values import (
    GroupMetadataValue,
    OffsetCommitValue,
    decode_value,
)
from barnabas.protocol.messages.groups.consumer_group_heartbeat import (
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.uuids import ZERO_UUID
from tests.support.groups.groups import assignment_rows

GROUP = "g"
SESSION_MS = 45_000
REBALANCE_MS = 60_000
RETENTION_MINUTES = 10
CLIENT = JoiningClient("client", "/127.0.0.1")


def assigned(answer: ConsumerGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """Return the partitions of an answer by topic id; None if they are unchanged."""
    found = answer.assignment
    return None if found is None else {each.topic_id: list(each.partitions) for each in found.topics}


def topics_of(owned: Mapping[bytes, Sequence[int]]) -> list[TopicPartitions]:
    """Return partitions by topic id as a heartbeat reports them."""
    return [TopicPartitions(topic_id=each, partitions=tuple(numbers)) for each, numbers in owned.items()]


class _Timer:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.is_cancelled = at, call, False

    def cancel(self) -> None:
        self.is_cancelled = True


class _Clock:
    """The parts of an event loop that groups use."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._timers: list[_Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Callable[..., None], *arguments: Any) -> _Timer:
        timer = _Timer(at, lambda: call(*arguments))
        self._timers.append(timer)
        return timer

    def pass_time(self, milliseconds: int) -> None:
        """Advance the clock, and call the due timers, each at its time."""
        end = self.now + milliseconds / 1000
        while True:
            self._timers = [timer for timer in self._timers if not timer.is_cancelled]
            timer = min(self._timers, key=lambda each: each.at, default=None)
            if timer is None or timer.at > end:
                break
            self._timers.remove(timer)
            self.now = max(self.now, timer.at)
            timer.call()
        self.now = end


class _Append(NamedTuple):
    """One append: records, of a transaction if there is a writer, or that transaction's end marker."""

    records: Sequence[GroupRecord]
    writer: TransactionWriter | None = None
    is_commit: bool | None = None


class _Log:
    """`__consumer_offsets` in memory, in one partition: the newest value of each key, as bytes.

    With `fails`, appends fail; those of more than `max_records` always do. With `flushes_late`, appends change the
    state immediately and are answered by `flush`. `lose_power` truncates unflushed appends.
    """

    exists = True

    def __init__(self) -> None:
        self.values: dict[bytes, bytes | None] = {}
        self.pending: dict[int, dict[bytes, tuple[int, bytes]]] = {}
        """Offsets of open transactions by producer id and key, with the offsets of their records."""
        self.durable = 0
        """The number of flushed appends."""
        self.appends: list[_Append] = []
        self.fails = False
        self.max_records = 10_000
        self.flushes_late = False
        self._record_offsets: dict[bytes, int] = {}
        self._to_flush: list[Deferred[BrokerError | None]] = []
        self._replays: list[Callable[[GroupRecord], None]] = []

    def add_replay(self, replay: Callable[[GroupRecord], None]) -> None:
        self._replays.append(replay)

    def partition_of(self, group_id: str) -> int:
        return 0

    def ensure_loaded(self, group_id: str) -> None:
        """Do nothing, since the log is always loaded."""

    def ensure_all_loaded(self) -> None:
        """Do nothing, since the log is always loaded."""

    def when_ready(self, group_id: str, then: Callable[[BrokerError | None], None]) -> None:
        then(None)

    def append(
        self,
        group_id: str,
        records: Sequence[GroupRecord],
        *,
        atomic: bool = True,
        replayed: Callable[[], None] | None = None,
        pauses: bool = True,
    ) -> Deferred[Any]:
        def replay() -> None:
            for record in records:
                for apply in self._replays:
                    apply(record)
            if replayed is not None:
                replayed()

        return self._append(_Append(list(records)), replay)

    def append_in_transaction(
        self,
        group_id: str,
        records: Sequence[GroupRecord],
        writer: TransactionWriter,
        replay: Callable[[int, int], None],
    ) -> Deferred[Any]:
        base_offset = self._base_offset(len(self.appends))
        return self._append(_Append(list(records), writer), lambda: replay(0, base_offset))

    def append_marker(self, number: int, end: TransactionEnd, replay: Callable[[], None]) -> Deferred[Any]:
        writer = TransactionWriter(end.producer_id, end.producer_epoch)
        return self._append(_Append((), writer, end.marker.is_commit), replay)

    def warn_of_refusal(self, group_id: str, error: BrokerError) -> None:
        """Do nothing."""

    def settled(self, group_id: str) -> Deferred[Any]:
        answer: Deferred[BrokerError | None] = Deferred()
        if self._to_flush:
            self._to_flush.append(answer)
        else:
            is_durable = self.durable == len(self.appends)
            answer.resolve(None if is_durable else BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not flushed"))
        return answer

    def flush(self, error: BrokerError | None = None) -> None:
        """Answer all appends."""
        answers, self._to_flush = self._to_flush, []
        if error is None:
            self.durable = len(self.appends)
        for answer in answers:
            answer.resolve(error)

    @property
    def is_flushing(self) -> bool:
        return bool(self._to_flush)

    def lose_power(self, kept: int) -> None:
        """Become the log after a power cut: the flushed appends, and the first `kept` of the others."""
        self._to_flush.clear()
        del self.appends[self.durable + kept :]
        self.durable = len(self.appends)
        for memory in (self.values, self.pending, self._record_offsets):
            memory.clear()
        for number in range(len(self.appends)):
            self._put(number)

    def _append(self, append: _Append, replay: Callable[[], None]) -> Deferred[Any]:
        answer: Deferred[BrokerError | None] = Deferred()
        if self.fails:
            answer.resolve(BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no space"))
            return answer
        if len(append.records) > self.max_records:
            answer.resolve(BrokerError(ErrorCode.MESSAGE_TOO_LARGE, "too many records"))
            return answer
        if not append.records and append.writer is None:
            answer.resolve(None)
            return answer
        self.appends.append(append)
        self._put(len(self.appends) - 1)
        replay()
        self._to_flush.append(answer)
        if not self.flushes_late:
            self.flush()
        return answer

    def _base_offset(self, number: int) -> int:
        return 1000 * number

    def _put(self, number: int) -> None:
        records, writer, is_commit = self.appends[number]
        if writer is not None and is_commit is not None:
            for key, (offset, data) in self.pending.pop(writer.producer_id, {}).items():
                if is_commit and offset > self._record_offsets.get(key, -1):
                    self._set(key, offset, data)
        for offset, record in enumerate(records, self._base_offset(number)):
            key = record.key.to_bytes()
            value = None if record.value is None else record.value.to_bytes()
            if writer is None:
                self._set(key, offset, value)
            else:
                assert value is not None
                self.pending.setdefault(writer.producer_id, {})[key] = (offset, value)

    def _set(self, key: bytes, offset: int, value: bytes | None) -> None:
        self.values[key] = value
        self._record_offsets[key] = offset
        if value is None:
            for offsets in self.pending.values():
                offsets.pop(key, None)

    def pending_records(self) -> Iterator[PendingRecord]:
        """Return the offsets of open transactions, as a start loads them."""
        for producer_id, offsets in self.pending.items():
            for data, (offset, value) in offsets.items():
                key = decode_key(data)
                assert isinstance(key, OffsetCommitKey)
                is_superseded = offset < self._record_offsets.get(data, -1)
                pending = PendingOffset(OffsetCommitValue.from_bytes(value), offset, is_superseded)
                yield PendingRecord((0, producer_id), key, pending)


class _Config:
    """The broker properties that the offsets code reads."""

    @property
    def broker(self) -> _Config:
        return self

    def get_int(self, name: str) -> int:
        return {"offset.metadata.max.bytes": 4096, "offsets.retention.minutes": RETENTION_MINUTES}[name]


class ConsumerGroupHost:
    """One group, `GROUP`, and its clients. `epochs` has the last epoch that each member received."""

    def __init__(
        self,
        settings: ConsumerGroupSettings | None = None,
        *,
        log: _Log | None = None,
        topics: Any = None,
        reads_only: bool = False,
    ) -> None:
        self.clock = _Clock()
        self.log = log or _Log()
        self.log._replays.clear()
        self.probe = GroupProbe()
        self.image: MetadataImage = topics or MetadataImage(end_offset=1)
        self.epochs: dict[str, int] = {}
        loop = cast(asyncio.AbstractEventLoop, self.clock)
        group_log = cast(GroupLog, self.log)
        wall = GroupClock(lambda: self.clock.now, lambda: int(self.clock.now * 1000))
        self.registry = GroupRegistry(self.probe)
        self.classic = ClassicGroups(
            group_log=group_log,
            registry=self.registry,
            settings=GroupSettings(),
            clock=wall,
            loop=loop,
            reads_only=reads_only,
        )
        context = GroupContext(settings or ConsumerGroupSettings(), wall, lambda: self.image)
        self.groups = ConsumerGroups(
            group_log=group_log,
            registry=self.registry,
            classic=self.classic,
            context=context,
            loop=loop,
            reads_only=reads_only,
        )
        self.members = ClassicMembership(self.registry, group_log, self.classic, lambda: self.groups)
        self.offsets = GroupOffsets(
            group_log, self.registry, cast(MetadataView, self), cast(LiveConfig, _Config()), wall.wall_ms
        )
        self.transactional = TransactionalOffsets(
            self.offsets, group_log, self.registry, cast(LiveConfig, _Config()), wall.wall_ms
        )
        self.expiry = OffsetExpiryTask(self.offsets, self.registry, cast(LiveConfig, _Config()), wall.wall_ms)

    def restarted(self, *, reads_only: bool = False) -> ConsumerGroupHost:
        """Return a new host that loads the same log."""
        host = ConsumerGroupHost(self.groups._context.settings, log=self.log, topics=self.image, reads_only=reads_only)
        host.clock.now = self.clock.now
        host.epochs = dict(self.epochs)
        records = []
        for data, value in self.log.values.items():
            key = decode_key(data)
            if value is None:
                continue
            if isinstance(key, ConsumerGroupKey):
                records.append(GroupRecord(key, decode_value(key, value)))
            elif isinstance(key, GroupMetadataKey):
                host.classic.load(key.group, GroupMetadataValue.from_bytes(value))
            elif isinstance(key, OffsetCommitKey):
                host.offsets.committed.put(key, OffsetCommitValue.from_bytes(value))
        for record in self.log.pending_records():
            host.offsets.pending.put(record)
        host.groups.load(sorted(records, key=replay_rank))
        return host

    @property
    def state(self) -> str:
        """The state of the consumer group."""
        return self.group.state.value

    @property
    def group(self) -> ConsumerGroup:
        """The consumer group."""
        group = self.groups.get(GROUP)
        assert group is not None
        return group

    def topic(self, name: str, partitions: int, *, topic_id: bytes | None = None) -> bytes:
        """Create a topic or add partitions; return its id."""
        topic_id = topic_id or name.encode().ljust(16, b"\0")
        is_new = name not in self.image.topics
        topics = {**self.image.topics, name: TopicImage(name, topic_id, dict.fromkeys(range(partitions), cast(Any, 0)))}
        self._set_topics(topics, name, are_new=is_new)
        return topic_id

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._set_topics(
            {each: topic for each, topic in self.image.topics.items() if each != name}, name, are_new=False
        )

    def delete_gone_offsets(self) -> None:
        """Delete offsets in deleted topics, as the coordinator does; those of transactions have no topic id."""
        topics, names = self.image.topics, self.image.names
        gone = {key for key in self.offsets.pending.of(GROUP) if key[0] not in topics}
        for key, value in self.offsets.committed.of(GROUP).items():
            if key[0] not in topics if value.topic_id == ZERO_UUID else value.topic_id not in names:
                gone.add(key)
        tombstones = [GroupRecord(OffsetCommitKey(GROUP, *key), None) for key in sorted(gone)]
        self.log.append(GROUP, tombstones, atomic=False)

    def _set_topics(self, topics: Mapping[str, TopicImage], changed: str, *, are_new: bool) -> None:
        names = {topic.topic_id: name for name, topic in topics.items()}
        self.image = MetadataImage(end_offset=self.image.end_offset + 1, topics=topics, names=names)
        self.groups.topics_changed(frozenset({changed}), are_new=are_new)

    # --- members of the consumer protocol

    def ask(self, member: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat with these fields."""
        if "owned" in fields:
            fields["topics"] = topics_of(fields.pop("owned"))
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member, member_epoch=epoch, **fields)
        try:
            answer: ConsumerGroupHeartbeatResponse = now(self.groups.heartbeat(request, CLIENT, ApiProbe()))
        except BrokerError as error:
            return ConsumerGroupHeartbeatResponse(error=error.code, message=error.message)
        if answer.error == ErrorCode.NONE and answer.member_id is not None:
            self.epochs[answer.member_id] = answer.member_epoch
        return answer

    def join(self, member: str, topics: Sequence[str] | None, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send the first heartbeat of a member."""
        fields = {"rebalance_timeout_ms": REBALANCE_MS, "topic_names": topics, "owned": {}, **fields}
        return self.ask(member, 0, **fields)

    def beat(self, member: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat in the last epoch that the member received."""
        return self.ask(member, self.epochs[member], **fields)

    def leave(self, member: str, epoch: int = LEAVE_EPOCH, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send the last heartbeat of a member."""
        return self.ask(member, epoch, **fields)

    def settle(self, *members: str) -> None:
        """Send heartbeats in which members give up revoked partitions, until nothing changes."""
        for _ in range(10):
            before = {each: self.group.members[each] for each in members}
            for each in members:
                member = self.group.members[each]
                self.beat(each, owned={topic_id: sorted(epochs) for topic_id, epochs in member.assigned.items()})
            if before == {each: self.group.members[each] for each in members}:
                return
        raise AssertionError("the members do not settle")

    def partitions(self, member: str) -> set[tuple[str, int]]:
        """Return the partitions that a member owns."""
        assigned = self.group.members[member].assigned
        names = self.image.names
        return {(names[topic_id], number) for topic_id, epochs in assigned.items() for number in epochs}

    # --- members of the classic protocol

    def classic_join(
        self, member: str = "", topics: Sequence[str] = ("t",), **fields: Any
    ) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
        """Join, and return the response or a Deferred of it."""
        subscription = Subscription(topics, owned=fields.pop("owned", {}))
        metadata = encode_subscription(subscription)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=fields.pop("session_ms", SESSION_MS),
            sent_rebalance_timeout_ms=REBALANCE_MS,
            member_id=member,
            group_instance_id=fields.pop("instance", None),
            protocol_type="consumer",
            protocols=[GroupProtocol(name=fields.pop("assignor", "range"), metadata=metadata)],
            version=fields.pop("version", 3),
        )
        answer = self.members.join(request, CLIENT)
        told: JoinGroupResponse = now(answer) if answer.done else JoinGroupResponse()
        return told if answer.done else answer

    def classic_sync(
        self, member: str, generation: int, assignments: Mapping[str, bytes] | None = None, instance: str | None = None
    ) -> SyncGroupResponse:
        """Sync, and return the response. Raises BrokerError."""
        request = SyncGroupRequest(
            group_id=GROUP,
            generation=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol="range",
            assignments=assignment_rows(assignments or {}),
        )
        answer = self.members.sync(request)
        return now(answer) if isinstance(answer, Deferred) else answer

    def classic_beat(self, member: str, generation: int, instance: str | None = None) -> ErrorCode:
        """Send a heartbeat, and return the error code."""
        try:
            return self.members.heartbeat(GROUP, member, instance, generation)
        except BrokerError as error:
            return error.code

    def classic_leave(self, member: str, instance: str | None = None) -> LeaveGroupResponse:
        """Leave, and return the response."""
        answer = self.members.leave(
            LeaveGroupRequest(group_id=GROUP, members=[LeavingMember(member_id=member, group_instance_id=instance)])
        )
        return now(answer) if isinstance(answer, Deferred) else answer

    def load_classic(self, value: GroupMetadataValue) -> None:
        """Load a classic group from its record."""
        self.classic.load(GROUP, value)


def now(answer: Deferred[Any]) -> Any:
    """Return the response in a resolved Deferred."""
    assert answer.done, "there is no answer yet"
    found: list[Any] = []
    answer.then(found.append)
    return found[0]
