"""Offsets of transactions, replayed at run time and loaded at a start, against Kafka's rules in their simplest form."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.broker.groups.log.records import GroupRecord, TransactionWriter, encode_batches
from barnabas.broker.groups.offsets.committed import CommittedOffsets
from barnabas.broker.groups.offsets.loader import load_offsets_partition
from barnabas.broker.groups.offsets.pending import PendingOffset, PendingOffsets, PendingRecord
from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.compression import Codec
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.groups.values import OffsetCommitValue
from tests.support.storage.bench import START_MS, LogBench, log_config
from tests.support.storage.transactions import end

PRODUCERS = (7, 8)


class Commit(NamedTuple):
    """An offset of one key, by a producer's transaction or by none."""

    key: int
    producer: int | None


class Tombstone(NamedTuple):
    """The deletion of one key's offset."""

    key: int


class End(NamedTuple):
    """An end marker."""

    producer: int
    is_commit: bool


Step = Commit | Tombstone | End

KEYS = [OffsetCommitKey("a", "t", 0), OffsetCommitKey("a", "t", 1), OffsetCommitKey("b", "t", 0)]
STEPS = st.lists(
    st.one_of(
        st.builds(Commit, st.integers(0, len(KEYS) - 1), st.sampled_from(PRODUCERS)),
        st.builds(Commit, st.integers(0, len(KEYS) - 1), st.none()),
        st.builds(Tombstone, st.integers(0, len(KEYS) - 1)),
        st.builds(End, st.sampled_from(PRODUCERS), st.booleans()),
    ),
    min_size=6,
    max_size=15,
)


class Reference:
    """Kafka's OffsetMetadataManager: every offset remembers where its record is, and the newest record counts."""

    def __init__(self) -> None:
        self.committed: dict[OffsetCommitKey, tuple[int, int]] = {}
        self.pending: dict[int, dict[OffsetCommitKey, tuple[int, int]]] = {}

    def apply(self, step: Step, at: int) -> None:
        """Apply the step whose record is at offset `at`, which is also the value that it commits."""
        if isinstance(step, End):
            for key, offset in self.pending.pop(step.producer, {}).items():
                if step.is_commit and offset > self.committed.get(key, (-1, -1)):
                    self.committed[key] = offset
        elif isinstance(step, Tombstone):
            self.committed.pop(KEYS[step.key], None)
            for offsets in self.pending.values():
                offsets.pop(KEYS[step.key], None)
        elif step.producer is None:
            self.committed[KEYS[step.key]] = (at, at)
        else:
            self.pending.setdefault(step.producer, {})[KEYS[step.key]] = (at, at)

    def state(self) -> tuple[dict[OffsetCommitKey, int], set[OffsetCommitKey]]:
        """Return the committed offsets, and the keys that have pending ones."""
        pending = {key for offsets in self.pending.values() for key in offsets}
        return {key: value for key, (_, value) in self.committed.items()}, pending


class Replayed:
    """What the broker holds in memory."""

    def __init__(self) -> None:
        self.committed = CommittedOffsets()
        self.pending = PendingOffsets()

    def apply(self, step: Step, at: int) -> None:
        """Replay the step whose record is at offset `at`."""
        if isinstance(step, End):
            for each in self.pending.end((0, step.producer), is_commit=step.is_commit):
                self.committed.put(*each)
            return
        key = KEYS[step.key]
        if isinstance(step, Commit) and step.producer is not None:
            pending = PendingOffset(OffsetCommitValue(at), at)
            self.pending.put(PendingRecord((0, step.producer), key, pending))
            return
        value = OffsetCommitValue(at) if isinstance(step, Commit) else None
        self.committed.replay(GroupRecord(key, value))
        self.pending.replay_plain(key, is_tombstone=value is None)

    def state(self) -> tuple[dict[OffsetCommitKey, int], set[OffsetCommitKey]]:
        """Return the committed offsets, and the keys that have pending ones."""
        groups = ("a", "b")
        committed = {
            OffsetCommitKey(group, *key): value.offset
            for group in groups
            for key, value in self.committed.of(group).items()
        }
        pending = {OffsetCommitKey(group, *key) for group in groups for key in self.pending.of(group)}
        assert {group for group in groups if group in self.pending} == {key.group for key in pending}
        return committed, pending


def loaded(log: PartitionLog) -> Replayed:
    """Return the memory of a broker that starts with this log."""
    found = load_offsets_partition(log, lambda _: True, 300)
    memory = Replayed()
    memory.committed.adopt(found.offsets)
    for record in found.pending:
        memory.pending.put(record)
    return memory


@settings(max_examples=100)
@example(steps=[Commit(0, 7), Commit(0, None), End(7, True)])
@example(steps=[Commit(0, 7), Commit(0, 8), End(8, True), End(7, True)])
@given(steps=STEPS)
def test_the_newest_record_counts_at_run_time(steps: Sequence[Step]) -> None:
    reference, memory = Reference(), Replayed()
    for at, step in enumerate(steps):
        reference.apply(step, at)
        memory.apply(step, at)
        assert memory.state() == reference.state()


@settings(max_examples=20)
@example(before=[Commit(0, 7), Commit(0, None)], after=[End(7, True)])
@example(before=[Commit(0, 7), Commit(0, None), Tombstone(0)], after=[End(7, True)])
@example(before=[Commit(0, 7), Commit(0, 8), End(8, True)], after=[End(7, True)])
@given(before=STEPS, after=STEPS)
def test_the_newest_record_counts_after_a_start(before: Sequence[Step], after: Sequence[Step]) -> None:
    reference = Reference()
    with new_log() as log:
        for step in before:
            reference.apply(step, write(log, step))
        memory = loaded(log)
        assert memory.state() == reference.state()
        for step in after:
            at = write(log, step)
            reference.apply(step, at)
            memory.apply(step, at)
        assert memory.state() == loaded(log).state() == reference.state()


@contextmanager
def new_log() -> Iterator[PartitionLog]:
    with tempfile.TemporaryDirectory() as folder:
        bench = LogBench(Path(folder))
        log = bench.open(log_config(segment_bytes=4096))
        yield log
        bench.close(log)


def write(log: PartitionLog, step: Step) -> int:
    """Append the step's batch; return its offset."""
    if isinstance(step, End):
        return end(log, step.producer, is_commit=step.is_commit)
    writer = None
    value = None
    if isinstance(step, Commit):
        value = OffsetCommitValue(log.log_end_offset)
        writer = None if step.producer is None else TransactionWriter(step.producer, 0)
    data = encode_batches(
        [GroupRecord(KEYS[step.key], value)],
        codec=Codec.NONE,
        timestamp_ms=START_MS,
        max_bytes=1 << 20,
        atomic=True,
        writer=writer,
    )
    return log.append_as_leader(memoryview(data), leader_epoch=0, origin=AppendOrigin.COORDINATOR).base_offset
