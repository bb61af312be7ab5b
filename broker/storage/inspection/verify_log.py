"""Check of one partition directory: its segments and its small files.

For files with a suffix of work in progress (`.deleted`, `.cleaned`, `.swap`) see leftovers. Files that a running broker
removes meanwhile are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from barnabas.broker.storage.files.checkpoint_file import read_checkpoint_lines
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.partition_metadata_file import read_partition_metadata
from barnabas.broker.storage.inspection.file_types import FileType, KnownFile, known_files
from barnabas.broker.storage.inspection.findings import Circumstances, Finding, LogExtent
from barnabas.broker.storage.inspection.leftovers import check_leftovers
from barnabas.broker.storage.inspection.log_walk import LogWalk
from barnabas.broker.storage.inspection.verify_segment import Advance, SegmentCheck
from barnabas.broker.storage.inspection.verify_transactions import TransactionsCheck
from barnabas.broker.storage.producers.snapshot import decode_snapshot

_INDEX_TYPES = (FileType.OFFSET_INDEX, FileType.TIME_INDEX, FileType.TRANSACTION_INDEX)


class LogCheck:
    """Check of one partition directory; `extent` is set by `run`, and stays None for a log without segments."""

    def __init__(self, directory: Path, circumstances: Circumstances, advance: Advance) -> None:
        self.directory = directory
        self.extent: LogExtent | None = None
        self.topic_id: bytes | None = None
        self._circumstances = circumstances
        self._advance = advance

    def run(self) -> Iterator[Finding]:
        """Yield all findings, segment by segment. Raises OSError."""
        everything = known_files(self.directory)
        files = [known for known in everything if not known.stage]
        bases = sorted(known.offset for known in files if known.type is FileType.LOG)
        yield from self._check_segments(bases)
        for known in files:
            try:
                yield from self._check_small_file(known, bases)
            except FileNotFoundError:
                if not self._circumstances.is_in_use:
                    raise
            except CorruptFileError as error:
                yield Finding(known.path, None, error.message)
        yield from check_leftovers(everything, self._circumstances)

    def _check_segments(self, bases: list[int]) -> Iterator[Finding]:
        next_offset, leader_epoch = 0, -1
        transactions = TransactionsCheck()
        for base_offset in bases:
            check = SegmentCheck(
                self.directory, base_offset, base_offset == bases[-1], self._circumstances, self._advance, transactions
            )
            check.leader_epoch = leader_epoch
            if base_offset < next_offset:
                yield Finding(check.log_path, None, f"begins below {next_offset}, where the segment before it ends")
            try:
                yield from check.run()
            except FileNotFoundError:
                if not self._circumstances.is_in_use:
                    raise
                continue  # removed by retention meanwhile
            next_offset, leader_epoch = check.next_offset, check.leader_epoch
        if bases:
            self.extent = LogExtent(bases[0], next_offset)

    def _check_small_file(self, known: KnownFile, bases: list[int]) -> Iterator[Finding]:
        if known.type in _INDEX_TYPES and known.offset not in bases:
            yield Finding(known.path, None, "an index without its segment")
        elif known.type is FileType.PRODUCER_SNAPSHOT:
            yield from self._check_snapshot(known)
        elif known.type is FileType.EPOCH_CHECKPOINT:
            yield from self._check_epochs(known.path)
        elif known.type is FileType.PARTITION_METADATA:
            self.topic_id = read_partition_metadata(known.path.parent)
        elif known.type is FileType.METADATA_SNAPSHOT:
            yield from check_batches_file(known.path)

    def _check_snapshot(self, known: KnownFile) -> Iterator[Finding]:
        rows = decode_snapshot(known.path.read_bytes(), known.path)
        if self._ends_before(known.offset):
            yield Finding(known.path, None, f"covers offsets up to {known.offset}, {self._end_text()}")
        for row in rows:
            if row.last_offset >= known.offset:
                yield Finding(
                    known.path,
                    None,
                    f"producer {row.producer_id} has last offset {row.last_offset}, beyond the snapshot",
                )

    def _check_epochs(self, path: Path) -> Iterator[Finding]:
        before = (-1, -1)
        for line in read_checkpoint_lines(path):
            parts = line.split(" ")
            if len(parts) != 2 or not all(part.isdecimal() for part in parts):
                yield Finding(path, None, f"line {line!r} is not `epoch start_offset`")
                return
            entry = (int(parts[0]), int(parts[1]))
            if entry[0] <= before[0] or entry[1] <= before[1]:
                yield Finding(path, None, f"entry {entry} is not above {before}")
            before = entry
        if self._ends_before(before[1]):
            yield Finding(path, None, f"epoch {before[0]} begins at offset {before[1]}, {self._end_text()}")

    def _ends_before(self, offset: int) -> bool:
        # A running broker appends between the reading of the batches and of this file.
        return self.extent is not None and not self._circumstances.is_in_use and offset > self.extent.log_end_offset

    def _end_text(self) -> str:
        return "the log has no end" if self.extent is None else f"the log ends at {self.extent.log_end_offset}"


def check_batches_file(path: Path) -> Iterator[Finding]:
    """Check a file of batches: a metadata snapshot or bootstrap.checkpoint. Raises OSError."""
    walk = LogWalk(path)
    for step in walk:
        if step.fault is not None:
            yield Finding(path, step.position, step.fault)
    if walk.end_fault is not None:
        yield Finding(path, walk.position, f"{walk.left_bytes} bytes after the last whole batch: {walk.end_fault}")
