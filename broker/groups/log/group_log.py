"""GroupLog: the only writer of `__consumer_offsets`, a CoordinatorLog whose records are those of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log.log import Appended, CoordinatorLog, LogParts
from barnabas.broker.groups.log.offsets_topic import CONSUMER_OFFSETS
from barnabas.broker.groups.log.records import GroupRecord, encode_batches
from barnabas.protocol.compression import Codec

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.creation import Then

Replay = Callable[[GroupRecord], None]
"""Applies a record of the log to memory."""


class GroupLog:
    """Appends the records of groups, in the event loop. See CoordinatorLog for what is not described here."""

    def __init__(self, parts: LogParts) -> None:
        self.coordinator_log = CoordinatorLog(CONSUMER_OFFSETS, parts)
        self._config = parts.config
        self._wall_ms = parts.wall_ms
        self._replays: list[Replay] = []

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

    def append(self, group_id: str, records: Sequence[GroupRecord], *, atomic: bool = True) -> Appended:
        """Append `records`, all of that group, and replay them.

        They are one batch, or several if `atomic` is False. They are replayed when this returns, unless the topic has
        to be created first. Raises nothing: the answer carries the error.
        """

        def encode(max_bytes: int) -> bytearray:
            codec = Codec(self._config.broker.get_int("offsets.topic.compression.codec"))
            return encode_batches(
                records, codec=codec, timestamp_ms=self._wall_ms(), max_bytes=max_bytes, atomic=atomic
            )

        def replay() -> None:
            for record in records:
                for apply in self._replays:
                    apply(record)

        return self.coordinator_log.append(group_id, encode, replay)

    def settled(self, group_id: str) -> Appended:
        """Return an answer that comes once everything appended so far to the group's partition is durable."""
        return self.coordinator_log.settled(group_id)

    def when_ready(self, group_id: str, then: Then) -> None:
        """Call `then` once the group's partition exists: immediately, unless the topic has to be created first."""
        self.coordinator_log.when_ready(group_id, then)
