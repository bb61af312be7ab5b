"""ShareStateLog: the only writer of `__share_group_state`, and the shards that replaying it gives.

The partition of a state is decided by the text `group:topic id:partition`, with Kafka's hash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log.log import CoordinatorLog
from barnabas.broker.metadata.own_topics import SHARE_STATE
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.shard import ShareRecord, StateShard
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.share.state_records import SharePartitionKey
from barnabas.protocol.uuids import uuid_text

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.log.append import AppendResult

Plan = Callable[[StateShard], Sequence[ShareRecord]]
"""Checks a request against a shard and returns the records to append. Raises BrokerError."""


class ShareStateLog:
    """Shards by partition of the topic, in the event loop."""

    def __init__(self, parts: LogParts) -> None:
        self.coordinator_log = CoordinatorLog(SHARE_STATE, parts)
        self.shards: dict[int, StateShard] = {}
        self._store = parts.store
        self._config = parts.config
        self._wall_ms = parts.wall_ms

    @property
    def updates_per_snapshot(self) -> int:
        """share.coordinator.snapshot.update.records.per.snapshot."""
        return self._config.broker.get_int("share.coordinator.snapshot.update.records.per.snapshot")

    def number_of(self, key: SharePartitionKey) -> int:
        """Return the number of the partition that has the records of a key."""
        return self.coordinator_log.partition_of(coordinator_key(key))

    def shard(self, number: int) -> StateShard:
        """Return the shard of one partition of the topic."""
        shard = self.shards.get(number)
        if shard is None:
            shard = self.shards[number] = StateShard(self.exists)
        return shard

    def exists(self, topic_id: bytes, partition: int) -> bool:
        """Return whether a topic with that id has that partition."""
        topic = self._store.image.topic_by_id(topic_id)
        return topic is not None and partition in topic.partitions

    def change(self, key: SharePartitionKey, plan: Plan) -> Appended:
        """Let `plan` check a request, and append and replay what it returns. The answer carries any error.

        Creates the topic at its first use. Requests about one key are served in the order of their arrival.
        """
        answer: Appended = Deferred()
        text = coordinator_key(key)

        def ready(error: BrokerError | None) -> None:
            if error is None:
                self._change(text, plan, answer)
            else:
                answer.resolve(error)

        self.coordinator_log.when_ready(text, ready)
        return answer

    def append(self, number: int, records: Sequence[ShareRecord]) -> Appended:
        """Append records to one partition of the topic, which exists, and replay them."""
        now_ms = self._wall_ms()
        base_offset = 0

        def write(partition: Partition) -> AppendResult:
            nonlocal base_offset
            batches = _encode(records, now_ms, partition.log.config.max_message_bytes)
            result = partition.append_internal(memoryview(batches))
            base_offset = result.base_offset
            return result

        def replay() -> None:
            shard, updates_per_snapshot = self.shard(number), self.updates_per_snapshot
            for position, record in enumerate(records):
                shard.replay(record, base_offset + position, updates_per_snapshot)

        return self.coordinator_log.append_to(number, write, replay)

    def forget_all(self) -> None:
        """Forget all states after the topic was deleted."""
        self.shards.clear()
        self.coordinator_log.forget_topic()

    def _change(self, text: str, plan: Plan, answer: Appended) -> None:
        log = self.coordinator_log
        number = log.partition_of(text)
        try:
            log.ensure_loaded(text)
            records = plan(self.shard(number))
        except BrokerError as error:
            answer.resolve(error)
            return
        (self.append(number, records) if records else log.settled(text)).then(answer.resolve)


def coordinator_key(key: SharePartitionKey) -> str:
    """Return the text by which Kafka finds a state's coordinator and partition."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


def _encode(records: Sequence[ShareRecord], now_ms: int, max_bytes: int) -> bytearray:
    """Encode records into as many batches as they need, with a sequence as Kafka writes it. Raises BrokerError."""
    batches = bytearray()
    builder = RecordBatchBuilder(max_bytes=max_bytes, base_sequence=0)
    for record in records:
        try:
            key, value = record.encode()
        except ValueError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{error}") from error
        if not builder.append(now_ms, key, value):
            batches += builder.build()
            builder = RecordBatchBuilder(max_bytes=max_bytes, base_sequence=0)
            builder.append(now_ms, key, value)
    batches += builder.build()
    return batches
