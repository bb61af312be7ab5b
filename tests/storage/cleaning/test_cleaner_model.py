"""Model of a compacted log: random appends, rolls, rounds, deletions, restarts and crashes, against a list of records.

After any number of rounds the log has below the clean offset only the last record of every key as of that offset, and
above it every record that no round has removed. Offsets never change. A tombstone stays until the first round after its
delete horizon, which is set by the first round in which it is the last record of its key.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.compression import CODECS
from barnabas.protocol.records.record import Record
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, read_records
from tests.support.storage.cleaning import clean, new_cleaner

RETENTION_MS = 1000
CONFIG = log_config(
    compact=True,
    delete=False,
    segment_bytes=1500,
    index_interval_bytes=100,
    segment_index_bytes=240,
    delete_retention_ms=RETENTION_MS,
)

_entries = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.none() | st.binary(max_size=30)),
    min_size=1,
    max_size=6,
)


class CompactedLog(RuleBasedStateMachine):
    """A log and its expected records."""

    @initialize(map_keys=st.integers(2, 40), io_buffer_bytes=st.sampled_from([4096, 1 << 16]))
    def open_log(self, map_keys: int, io_buffer_bytes: int) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        self.bench = LogBench(Path(self._scratch.name))
        self.log: PartitionLog = self.bench.open(CONFIG)
        self.cleaner = new_cleaner(map_bytes=24 * map_keys, load_factor=0.9, io_buffer_bytes=io_buffer_bytes)
        self.records: list[Record] = []
        self.batch_of: dict[int, int] = {}
        self.horizons: dict[int, int] = {}
        """Delete horizons by base offset of the batches that have one."""
        self.clean_offset = 0

    @rule(entries=_entries, codec=st.sampled_from(CODECS), has_producer=st.booleans())
    def append(self, entries: list[tuple[bytes, bytes | None]], codec: int, has_producer: bool) -> None:
        start = self.log.log_end_offset
        header = {"producer_id": 4, "producer_epoch": start % 32768, "base_sequence": 0} if has_producer else {}
        data = batch(*((START_MS + start, key, value) for key, value in entries), codec=codec, **header)
        append(self.log, data)
        for index, (key, value) in enumerate(entries):
            self.records.append(Record(start + index, START_MS + start, key, value))
            self.batch_of[start + index] = start

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(milliseconds=st.sampled_from([1, 400, RETENTION_MS, 5000]))
    def wait(self, milliseconds: int) -> None:
        self.bench.scheduler.advance(milliseconds)

    @rule(lag=st.integers(0, 3), from_start=st.booleans())
    def clean(self, lag: int, from_start: bool) -> None:
        """Clean the log, except the last `lag` segments before the active one."""
        segments = self.log.segments
        end = segments[max(len(segments) - 1 - lag, 0)].base_offset
        first_dirty = min(self.log.log_start_offset if from_start else self.clean_offset, end)
        first_dirty = max(first_dirty, self.log.log_start_offset)
        if first_dirty >= end:
            return
        now_ms = self.bench.clock.now_ms
        bases = [segment.base_offset for segment in segments]
        result = clean(self.log, first_dirty, end=end, now_ms=now_ms, cleaner=self.cleaner)
        assert first_dirty < result.next_dirty_offset <= end
        self._expect_cleaned(first_dirty, result.next_dirty_offset, bases, now_ms)
        self.clean_offset = result.next_dirty_offset

    def _expect_cleaned(self, first_dirty: int, next_dirty: int, bases: list[int], now_ms: int) -> None:
        last = {record.key: record.offset for record in self.records if first_dirty <= record.offset < next_dirty}
        # A segment is cleaned as a whole, but above the map's end all of it stays; its tombstones get a horizon, too.
        reach = min(base for base in bases if base >= next_dirty)
        kept = []
        for record in self.records:
            horizon = self.horizons.get(self.batch_of[record.offset])
            if record.offset < next_dirty and record.offset < last.get(record.key, -1):
                continue
            if record.offset < next_dirty and record.value is None and horizon is not None and now_ms >= horizon:
                continue
            kept.append(record)
        for record in kept:
            if record.value is None and record.offset < reach:
                self.horizons.setdefault(self.batch_of[record.offset], now_ms + RETENTION_MS)
        self.records = kept

    @precondition(lambda self: self.log.log_end_offset)
    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        self.log.delete_records(int(self.log.log_end_offset * fraction) or self.log.log_start_offset)
        self.log.delete_old_segments()
        self.records = [record for record in self.records if record.offset >= self.log.log_start_offset]
        self.clean_offset = max(self.clean_offset, self.log.log_start_offset)

    @rule()
    def restart(self) -> None:
        self.bench.close(self.log)
        self.log = self.bench.open(CONFIG)

    @rule()
    def crash(self) -> None:
        self.bench.crash(self.log)
        self.bench.log_start_offset = self.log.log_start_offset
        self.log = self.bench.open(CONFIG, clean=False)

    @invariant()
    def holds_what_it_should(self) -> None:
        assert read_records(self.log) == self.records

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.go_offline()
            self._scratch.cleanup()


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
