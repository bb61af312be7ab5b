"""A log against a plain list: whatever is done to both in whatever order, a read gives the same records."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.record import Record
from tests.support.storage import START_MS, LogBench, append, batch, log_config, read_records

_SMALL = st.integers(0, 120)


class LogAgainstList(RuleBasedStateMachine):
    """Batches of random shape, rolls, retention, moved log starts, clean stops and crashes that lose unsynced bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.bench = LogBench(self.root)
        self.records: list[Record] = []
        self.start = 0
        self.durable = 0

    @initialize(
        segment_bytes=st.sampled_from([1024, 3000, 1 << 20]),
        interval=st.sampled_from([0, 200, 4096]),
        index_bytes=st.sampled_from([24, 48, 1 << 20]),
        preallocate=st.booleans(),
    )
    def open(self, segment_bytes: int, interval: int, index_bytes: int, preallocate: bool) -> None:
        self.config = log_config(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            preallocate=preallocate,
            retention_ms=-1,
            retention_bytes=4000,
            file_delete_delay_ms=0,
        )
        self.log = self.bench.open(self.config)

    def teardown(self) -> None:
        self.log.go_offline()
        shutil.rmtree(self.root)

    @property
    def end(self) -> int:
        return self.records[-1].offset + 1 if self.records else 0

    @rule(
        values=st.lists(st.tuples(st.none() | st.binary(max_size=5), _SMALL, _SMALL), min_size=1, max_size=4),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
    )
    def append(self, values: list[tuple[bytes | None, int, int]], codec: Codec) -> None:
        sent = [(START_MS + at, key, b"v" * size) for key, size, at in values]
        base = append(self.log, batch(*sent, codec=codec))
        assert base == self.end
        self.records += [Record(base + index, *each) for index, each in enumerate(sent)]

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.durable = self.log.flush()
        assert self.durable == self.end

    @rule()
    def background(self) -> None:
        self.bench.scheduler.run_due()

    @rule()
    def retention(self) -> None:
        self.log.delete_old_segments()
        if self.log.log_start_offset > self.start:  # by size, then: never below the limit
            assert self.log.size_bytes >= 4000
        self.start = self.log.log_start_offset

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        target = self.start + int((self.end - self.start) * share)
        self.start = self.log.delete_records(target)
        assert self.start == target

    @rule()
    def stop_and_start(self) -> None:
        self.bench.close(self.log)
        self.log = self.bench.open(self.config)

    @rule(kept=st.floats(0, 1), garbage=st.booleans())
    def crash(self, kept: float, garbage: bool) -> None:
        """The machine loses power: of the active segment's unsynced bytes any prefix reached the disk."""
        self.bench.crash(self.log)
        self.bench.log_start_offset = self.start
        active = self.log.segments[-1]
        synced = 0
        if self.log.durable_offset > active.base_offset:
            found = active.find_batch(self.log.durable_offset, active.size_bytes)
            synced = active.size_bytes if found is None else found.position
        size = synced + int((active.size_bytes - synced) * kept)
        active.release()
        path = Path(active.log.path)
        os.truncate(path, size)
        with path.open("ab") as file:
            file.write(b"\0" * 50 if garbage else b"")
        self.log = self.bench.open(self.config, clean=False)
        assert self.log.log_end_offset >= max(self.log.durable_offset, active.base_offset)
        self.records = [record for record in self.records if record.offset < self.log.log_end_offset]
        if self.log.log_end_offset != self.end:
            # Everything was lost down to an empty log, or to its start offset: offsets go on from there.
            assert not self.records or self.log.log_start_offset == self.log.log_end_offset
            self.records = [Record(self.log.log_end_offset - 1, -1, None, None)] if self.log.log_end_offset else []
        self.start = self.log.log_start_offset

    @rule(share=st.floats(0, 1), max_bytes=st.integers(1, 3000))
    def read(self, share: float, max_bytes: int) -> None:
        offset = self.start + int((self.end - self.start) * share)
        expected = [record for record in self.records if record.offset >= offset]
        assert read_records(self.log, offset, max_bytes) == expected

    @precondition(lambda self: self.start > 0)
    @rule()
    def read_below_the_start(self) -> None:
        with pytest.raises(BrokerError) as caught:
            self.log.read(self.start - 1, 100, upper_bound=self.end, at_least_one_batch=True)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    @invariant()
    def offsets_agree(self) -> None:
        if hasattr(self, "log"):
            assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
            assert self.start <= self.log.recovery_point <= self.end

    @invariant()
    def everything_is_there(self) -> None:
        if hasattr(self, "log"):
            assert read_records(self.log) == [record for record in self.records if record.offset >= self.start]


LogAgainstList.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestLogAgainstList = LogAgainstList.TestCase
