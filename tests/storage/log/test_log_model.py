"""A log against a plain list: after any sequence of operations both hold the same records."""

from __future__ import annotations

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
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, read_batches, read_records

_SMALL = st.integers(0, 120)
_PAGE_BYTES = 256
"""Size of the disk's pages in this model; the files are small."""


class LogAgainstList(RuleBasedStateMachine):
    """Batches of random shape, rolls, retention, moved log starts, clean stops and crashes that lose unsynced bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.bench = LogBench(self.root)
        self.records: list[Record] = []
        self.start = 0
        self.end = 0

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

    @rule(
        values=st.lists(st.tuples(st.none() | st.binary(max_size=5), _SMALL, _SMALL), min_size=1, max_size=4),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
    )
    def append(self, values: list[tuple[bytes | None, int, int]], codec: Codec) -> None:
        sent = [(START_MS + at, key, b"v" * size) for key, size, at in values]
        base = append(self.log, batch(*sent, codec=codec))
        assert base == self.end
        self.records += [Record(base + index, *each) for index, each in enumerate(sent)]
        self.end += len(sent)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end

    @rule()
    def background(self) -> None:
        self.bench.scheduler.run_due()

    @rule()
    def retention(self) -> None:
        self.log.delete_old_segments()
        if self.log.log_start_offset > self.start:  # retention by size: never below the limit
            assert self.log.size_bytes >= 4000
        self.start = self.log.log_start_offset

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        target = self.start + int((self.end - self.start) * share)
        self.start = self.log.delete_records(target)
        assert self.start == target

    @rule(share=st.floats(0, 1), beyond=st.booleans())
    def truncate(self, share: float, beyond: bool) -> None:
        """Truncate: batches that contain or follow the offset go, and the log ends there, even in the middle of one."""
        target = self.end + 1 if beyond else self.start + int((self.end - self.start) * share)
        batches = [(found.base_offset, found.last_offset) for found in read_batches(self.log)]
        assert self.log.truncate_to(target) == (target < self.end)
        if target < self.end:
            cut = min([base for base, last in batches if last >= target], default=target)
            self._ends_at(target, [record for record in self.records if record.offset < cut])

    @rule(distance=st.integers(0, 50))
    def start_anew(self, distance: int) -> None:
        offset = max(self.end - 10, 0) + distance
        self.log.truncate_fully_and_start_at(offset)
        self._ends_at(offset, [])
        self.start = offset

    def _ends_at(self, offset: int, records: list[Record]) -> None:
        self.records, self.end = records, offset
        self.start = min(self.start, offset)

    @rule()
    def stop_and_start(self) -> None:
        self.bench.close(self.log)
        self.log = self.bench.open(self.config)
        self._end_found()

    def _end_found(self) -> None:
        """A stop forgets what no record contains: that the end was cut in the middle of a batch."""
        last = max([record.offset for record in self.records], default=self.log.log_start_offset - 1)
        assert last < self.log.log_end_offset <= self.end
        self.end = self.log.log_end_offset

    @rule(kept=st.floats(0, 1), lost_pages=st.sets(st.integers(0, 40)), garbage=st.booleans())
    def crash(self, kept: float, lost_pages: set[int], garbage: bool) -> None:
        """The machine loses power: of unsynced bytes, and of a file's size, any pages may be on the disk."""
        self.bench.crash(self.log)
        durable = self.log.durable_offset
        self.bench.log_start_offset = self.start
        for segment in self.log.segments:
            synced = 0
            if durable > segment.base_offset:
                found = segment.find_batch(durable, segment.size_bytes)
                synced = segment.size_bytes if found is None else found.position
            size = segment.size_bytes
            if segment is self.log.segments[-1]:
                size = synced + int((size - synced) * kept)
            segment.release()
            with open(segment.log.path, "r+b") as file:
                file.truncate(size)
                for page in lost_pages:
                    start, stop = max(page * _PAGE_BYTES, synced), min((page + 1) * _PAGE_BYTES, size)
                    if start < stop:
                        file.seek(start)
                        file.write(bytes(stop - start))
        if garbage:
            with open(self.log.segments[-1].log.path, "ab") as file:
                file.write(bytes(50))
        self.log = self.bench.open(self.config, clean=False)
        lost = [record for record in self.records if self.log.log_end_offset <= record.offset < durable]
        assert not lost, f"durable below {durable}"
        self.records = [record for record in self.records if record.offset < self.log.log_end_offset]
        self.start = self.log.log_start_offset
        self._end_found()

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


LogAgainstList.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None, print_blob=True)
TestLogAgainstList = LogAgainstList.TestCase
