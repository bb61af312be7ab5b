"""GroupLog: the only writer of `__consumer_offsets`, a CoordinatorLog whose records are those of groups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log.log import Appended, CoordinatorLog
from barnabas.broker.coordinator_log.parts import LogParts
from barnabas.broker.groups.log.records import GroupRecord, TransactionWriter, encode_batches
from barnabas.broker.metadata.own_topics import CONSUMER_OFFSETS
from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import ANY_HOST, Event, RepeatedWarnings
from barnabas.protocol.compression import Codec

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.creation import Then
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.log.append import AppendResult, TransactionEnd
    from barnabas.protocol.errors import BrokerError

logger = logging.getLogger(__name__)

_REFUSED = Event(ANY_HOST, "records of groups could not be written", f" topic={CONSUMER_OFFSETS.name}")

Replay = Callable[[GroupRecord], None]
"""Applies a record of the log to memory."""

TransactionReplay = Callable[[int, int], None]
"""Applies the records of a transactional batch to memory: number of their partition, offset of the first one."""


class GroupLog:
    """Appends the records of groups, in the event loop. See CoordinatorLog for what is not described here."""

    def __init__(self, parts: LogParts) -> None:
        self.coordinator_log = CoordinatorLog(CONSUMER_OFFSETS, parts)
        self._config = parts.config
        self._wall_ms = parts.wall_ms
        self._replays: list[Replay] = []
        self._warnings = RepeatedWarnings(parts.loop)

    def add_replay(self, replay: Replay) -> None:
        """Call `replay` with every record that is appended from now on."""
        self._replays.append(replay)

    @property
    def exists(self) -> bool:
        """Whether the topic exists."""
        return self.coordinator_log.exists

    def partition_of(self, group_id: str) -> int:
        """Return the number of the group's partition."""
        return self.coordinator_log.partition_of(group_id)

    def ensure_loaded(self, group_id: str) -> None:
        """Raise BrokerError COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE unless the group is served."""
        self.coordinator_log.ensure_loaded(group_id)

    def ensure_all_loaded(self) -> None:
        """Raise BrokerError COORDINATOR_LOAD_IN_PROGRESS while any partition is loaded, for requests about all groups.

        Partitions that could not be loaded are ignored: with one disk of several offline, the others' groups are
        listed.
        """
        self.coordinator_log.ensure_all_loaded()

    def append(
        self,
        group_id: str,
        records: Sequence[GroupRecord],
        *,
        atomic: bool = True,
        replayed: Callable[[], None] | None = None,
        pauses: bool = True,
    ) -> Appended:
        """Append `records`, all of that group, replay them, and call `replayed`.

        They are one batch, or several if `atomic` is False. They are replayed when this returns, unless the append
        failed or the topic has to be created first. Raises nothing: the answer carries the error, without `pauses` at
        once.
        """

        def encode(max_bytes: int) -> bytearray:
            return self._encode(records, max_bytes, atomic=atomic)

        def replay() -> None:
            for record in records:
                for apply in self._replays:
                    apply(record)
            if replayed is not None:
                replayed()

        return self.coordinator_log.append(group_id, encode, replay, pauses=pauses)

    def append_in_transaction(
        self, group_id: str, records: Sequence[GroupRecord], writer: TransactionWriter, replay: TransactionReplay
    ) -> Appended:
        """Append `records` as one transactional batch, and call `replay`. The group's partition has to exist.

        Raises nothing: the answer carries the error.
        """
        base_offset = -1

        def write(partition: Partition) -> AppendResult:
            nonlocal base_offset
            batch = self._encode(records, partition.log.config.max_message_bytes, atomic=True, writer=writer)
            appended = partition.append_internal(memoryview(batch))
            base_offset = appended.base_offset
            return appended

        number = self.partition_of(group_id)
        return self.coordinator_log.append_to(number, write, lambda: replay(number, base_offset))

    def append_marker(self, number: int, end: TransactionEnd, replay: Callable[[], None]) -> Appended:
        """Append the end marker of a transaction to a partition, and call `replay`. The answer carries the error."""

        def write(partition: Partition) -> AppendResult:
            return partition.append_marker(end)

        return self.coordinator_log.append_to(number, write, replay)

    def settled(self, group_id: str) -> Appended:
        """Return an answer that comes once everything appended so far to the group's partition is durable."""
        return self.coordinator_log.settled(group_id)

    def warn_of_refusal(self, group_id: str, error: BrokerError) -> None:
        """Log that a group's records could not be written, within the bounds of RepeatedWarnings."""
        message = "the records of group %s could not be written: %s"
        self._warnings.warn(logger, _REFUSED, message, printable(group_id), error, distinct=group_id)

    def when_ready(self, group_id: str, then: Then) -> None:
        """Call `then` once the group's partition exists: immediately, unless the topic has to be created first."""
        self.coordinator_log.when_ready(group_id, then)

    def _encode(
        self,
        records: Sequence[GroupRecord],
        max_bytes: int,
        *,
        atomic: bool,
        writer: TransactionWriter | None = None,
    ) -> bytearray:
        codec = Codec(self._config.broker.get_int("offsets.topic.compression.codec"))
        timestamp_ms = self._wall_ms()
        return encode_batches(
            records, codec=codec, timestamp_ms=timestamp_ms, max_bytes=max_bytes, atomic=atomic, writer=writer
        )
