"""StateShard: the states of one partition of `__share_group_state`, and the records that change them.

A state machine without I/O or clock. A request is checked and becomes a record, and the state is what replaying the
records gives, so a failed append leaves nothing half done and a start runs the same code.

    initialize   a snapshot that begins the state again, with a higher snapshot epoch
    write        an update, or a snapshot after `updates_per_snapshot` updates
    read         nothing, or an update if the partition's leader epoch is new
    delete       a tombstone

Errors, in this order: INVALID_REQUEST for a negative partition; INVALID_REQUEST for a state that was not initialized
(write, read); FENCED_LEADER_EPOCH for a leader epoch below the last one (write, read), FENCED_STATE_EPOCH for a state
epoch below the last one (write, initialize); UNKNOWN_TOPIC_OR_PARTITION. Source: Kafka's ShareCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.broker.share.batches import combine
from barnabas.broker.share.needed_offsets import NeededOffsets
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.share.state_records import (
    UNINITIALIZED,
    SharePartitionKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)
from barnabas.protocol.topic_name import SHARE_STATE_TOPIC

NO_EPOCH = -1

PartitionExists = Callable[[bytes, int], bool]
"""Returns whether a topic with that id has that partition."""


class ShareRecord(NamedTuple):
    """A record of `__share_group_state`; `value` None deletes the state."""

    key: SharePartitionKey
    value: ShareSnapshotValue | ShareUpdateValue | None

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return the bytes of key and value. Raises ValueError for a group id above 32,767 bytes."""
        key, value = self
        if isinstance(value, ShareUpdateValue):
            key = ShareUpdateKey(key.group_id, key.topic_id, key.partition)
        return key.to_bytes(), None if value is None else value.to_bytes()


class StateChange(NamedTuple):
    """What a share partition's leader writes; epochs of -1 are not checked."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    batches: Sequence[StateBatch]
    delivery_complete_count: int = UNINITIALIZED


class StateShard:
    """States by key. `replay` is the only way in which they change."""

    def __init__(self, exists: PartitionExists) -> None:
        self.states: dict[SharePartitionKey, ShareSnapshotValue] = {}
        self.needed = NeededOffsets()
        self._exists = exists
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        self._updates: dict[SharePartitionKey, int] = {}

    # -- requests

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int) -> ShareRecord:
        """Return the record that begins a state. Raises BrokerError."""
        _ensure_partition(key)
        if NO_EPOCH != state_epoch < self._state_epochs.get(key, state_epoch):
            raise BrokerError(ErrorCode.FENCED_STATE_EPOCH, "the state epoch is older than the share partition's")
        self._ensure_exists(key)
        before = self.states.get(key)
        return ShareRecord(
            key,
            ShareSnapshotValue(
                snapshot_epoch=0 if before is None else before.snapshot_epoch + 1,
                state_epoch=state_epoch,
                leader_epoch=0,
                start_offset=start_offset,
                create_timestamp=now_ms,
                write_timestamp=now_ms,
                # Nothing was consumed before the first offset is known, and nothing can be counted.
                delivery_complete_count=UNINITIALIZED if start_offset == UNINITIALIZED else 0,
            ),
        )

    def write(self, key: SharePartitionKey, change: StateChange, updates_per_snapshot: int, now_ms: int) -> ShareRecord:
        """Return the record of a change. Raises BrokerError."""
        _ensure_partition(key)
        state = self._state_of(key)
        if NO_EPOCH != change.leader_epoch < self._leader_epochs[key]:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH, "the leader epoch is older than the share partition's")
        if NO_EPOCH != change.state_epoch < self._state_epochs.get(key, change.state_epoch):
            raise BrokerError(ErrorCode.FENCED_STATE_EPOCH, "the state epoch is older than the share partition's")
        self._ensure_exists(key)
        return self._changed(key, state, change, state.leader_epoch, updates_per_snapshot, now_ms)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, updates_per_snapshot: int, now_ms: int
    ) -> tuple[ShareSnapshotValue, ShareRecord | None]:
        """Return a state, and the record of a new leader epoch. Raises BrokerError."""
        _ensure_partition(key)
        state = self._state_of(key)
        known_epoch = self._leader_epochs[key]
        if leader_epoch < known_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH, "the leader epoch is older than the share partition's")
        self._ensure_exists(key)
        if leader_epoch in (NO_EPOCH, known_epoch):
            return state, None
        change = StateChange(state.state_epoch, leader_epoch, state.start_offset, (), state.delivery_complete_count)
        return state, self._changed(key, state, change, leader_epoch, updates_per_snapshot, now_ms)

    def summary(self, key: SharePartitionKey) -> ShareSnapshotValue | None:
        """Return a state, None for one that was not initialized. Raises BrokerError."""
        _ensure_partition(key)
        self._ensure_exists(key)
        return self.states.get(key)

    def delete(self, key: SharePartitionKey) -> ShareRecord | None:
        """Return the record that deletes a state; None if there is none. Raises BrokerError."""
        _ensure_partition(key)
        self._ensure_exists(key)
        return ShareRecord(key, None) if key in self.states else None

    # -- upkeep

    def of_deleted_topics(self) -> list[ShareRecord]:
        """Return the records that delete the states of partitions that exist no longer."""
        return [ShareRecord(key, None) for key in self.states if not self._exists(key.topic_id, key.partition)]

    def snapshots_of_cold(self, interval_ms: int, now_ms: int) -> list[ShareRecord]:
        """Return snapshots of states that were last written long ago, which keep older records from being deleted.

        None if all states have such a snapshot already: nothing else is written then.
        """
        states = self.states
        if all(state.create_timestamp != state.write_timestamp for state in states.values()):
            return []
        return [
            ShareRecord(key, state.replaced(snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now_ms))
            for key, state in states.items()
            if now_ms - state.write_timestamp >= interval_ms
        ]

    # -- replay

    def replay(self, record: ShareRecord, offset: int, updates_per_snapshot: int) -> None:
        """Apply a record of the log."""
        key, value = record
        if isinstance(value, ShareUpdateValue):
            self._replay_update(key, value)
            return
        if value is None:
            for of_keys in (self.states, self._leader_epochs, self._state_epochs, self._updates):
                of_keys.pop(key, None)
        else:
            self._raise_epoch(self._leader_epochs, key, value.leader_epoch)
            self._raise_epoch(self._state_epochs, key, value.state_epoch)
            self.states[key] = value
            if self._updates.get(key, -1) >= updates_per_snapshot:
                self._updates[key] = 0
        self.needed.note(key, offset, is_tombstone=value is None)

    def _replay_update(self, key: SharePartitionKey, value: ShareUpdateValue) -> None:
        self._raise_epoch(self._leader_epochs, key, value.leader_epoch)
        state = self.states.get(key)
        if state is None:
            self.states[key] = ShareSnapshotValue(
                snapshot_epoch=value.snapshot_epoch,
                state_epoch=0,
                leader_epoch=value.leader_epoch,
                start_offset=value.start_offset,
                create_timestamp=0,
                write_timestamp=0,
                state_batches=value.state_batches,
                delivery_complete_count=value.delivery_complete_count,
            )
        else:
            start_offset = state.start_offset if value.start_offset == UNINITIALIZED else value.start_offset
            self.states[key] = state.replaced(
                leader_epoch=state.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch,
                start_offset=start_offset,
                state_batches=combine(state.state_batches, value.state_batches, start_offset),
                delivery_complete_count=value.delivery_complete_count,
            )
        self._updates[key] = self._updates.get(key, 0) + 1

    def _changed(
        self,
        key: SharePartitionKey,
        state: ShareSnapshotValue,
        change: StateChange,
        leader_epoch: int,
        updates_per_snapshot: int,
        now_ms: int,
    ) -> ShareRecord:
        if self._updates.get(key, 0) >= updates_per_snapshot:
            start_offset = state.start_offset if change.start_offset == UNINITIALIZED else change.start_offset
            return ShareRecord(
                key,
                ShareSnapshotValue(
                    snapshot_epoch=state.snapshot_epoch + 1,
                    state_epoch=state.state_epoch,
                    leader_epoch=leader_epoch,
                    start_offset=start_offset,
                    create_timestamp=now_ms,
                    write_timestamp=now_ms,
                    state_batches=combine(state.state_batches, change.batches, start_offset),
                    delivery_complete_count=change.delivery_complete_count,
                ),
            )
        return ShareRecord(
            key,
            ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=change.start_offset,
                state_batches=combine((), change.batches, change.start_offset),
                delivery_complete_count=change.delivery_complete_count,
            ),
        )

    def _state_of(self, key: SharePartitionKey) -> ShareSnapshotValue:
        state = self.states.get(key)
        if state is None:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"the share partition has no state in {SHARE_STATE_TOPIC}")
        return state

    def _ensure_exists(self, key: SharePartitionKey) -> None:
        if not self._exists(key.topic_id, key.partition):
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no partition with that topic id")

    @staticmethod
    def _raise_epoch(epochs: dict[SharePartitionKey, int], key: SharePartitionKey, epoch: int) -> None:
        epochs[key] = max(epoch, epochs.get(key, epoch))


def _ensure_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the partition is negative")
