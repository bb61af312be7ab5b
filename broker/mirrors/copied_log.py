"""The log of a mirrored partition: carries out what PartitionCopier decides.

`carry_out` blocks and runs on a thread of the mirror; `publish` makes its results visible to waiting fetches and runs
in the event loop. Batches are appended as a follower appends them: offsets, leader epochs and CRCs stay.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.mirrors.partition_copier import Append, EpochEnd, RaiseStart, Restart, Truncate
from barnabas.broker.mirrors.stored_entries import Entry, iter_entries
from barnabas.broker.storage.files.durable_files import sync_directory
from barnabas.broker.storage.log.appending.follower import FollowerAppender
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.records.layout import NO_PARTITION_LEADER_EPOCH

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.files.leader_epoch import EpochEntry
    from barnabas.broker.storage.log.partition_log import PartitionLog
    from barnabas.broker.storage.log_manager import LogManager

logger = logging.getLogger(__name__)

LogAction = Append | RaiseStart | Restart | Truncate
"""The actions that change the log."""

_NEVER: Final = (1 << 63) - 1
"""flush.messages of a log that is not synced by the number of its records."""

_CHUNK_BYTES: Final = 4 * 1024 * 1024


@dataclass(slots=True)
class CopiedChange:
    """What `carry_out` has done."""

    bytes: int = 0
    records: int = 0
    """Offsets of the appended batches, gaps included."""
    has_cut: bool = False
    """Whether records that could be read before are gone."""


class CopiedLog:
    """One log, and the view of it that PartitionCopier decides by."""

    def __init__(self, partition: Partition, log: PartitionLog, log_manager: LogManager, *, keeps_cut: bool) -> None:
        """`keeps_cut`: records that a truncation drops are written to a file first."""
        self._partition = partition
        self._log = log
        self._log_manager = log_manager
        self._keeps_cut = keeps_cut
        self._follower = FollowerAppender(log.core, log.roller)

    @property
    def partition(self) -> Partition:
        """The served partition."""
        return self._partition

    @property
    def start(self) -> int:
        """Log start offset."""
        return self._log.log_start_offset

    @property
    def end(self) -> int:
        """Log end offset."""
        return self._log.log_end_offset

    @property
    def bytes_per_offset(self) -> float | None:
        """Mean size of what the copy has, per offset; None for an empty copy."""
        count = self.end - self.start
        return self._log.size_bytes / count if count > 0 else None

    @property
    def is_compacted(self) -> bool:
        """Whether this broker compacts the copy, or has compacted it."""
        return self._log.config.needs_keys

    @property
    def latest_epoch(self) -> int:
        """Leader epoch of the last batch, or -1. An epoch that begins at the end has no batch."""
        core = self._log.core
        end = core.log_end_offset
        for entry in reversed(core.epochs.entries):
            if entry.start_offset < end:
                return entry.epoch
        return NO_PARTITION_LEADER_EPOCH

    @property
    def modified_ms(self) -> int:
        """When the log was written last, in ms since the epoch. Raises OSError."""
        return self._log.segments[-1].last_modified_ms()

    @property
    def syncs_appends(self) -> bool:
        """Whether `carry_out` may sync what it appends."""
        return self._log.config.acks_all_flush_messages != _NEVER

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return the largest epoch of the log up to `epoch`, and its end; -1 for both if there is none."""
        core = self._log.core
        found = core.epochs.end_offset_for(epoch, core.log_end_offset)
        if found is None:
            latest = self.latest_epoch
            return EpochEnd(latest, core.log_end_offset) if 0 <= latest < epoch else EpochEnd(-1, -1)
        return EpochEnd(found.epoch, found.start_offset)

    def entry_at(self, offset: int) -> Entry | None:
        """Return the stored entry that contains `offset`, or the next one; None after the last. Raises BrokerError."""
        data = self._read(offset, 1)
        entries = iter_entries(memoryview(b"" if data is None else data))
        return next((each for each in entries if each.last_offset >= offset), None)

    def carry_out(self, actions: Sequence[LogAction]) -> CopiedChange:
        """Carry out actions in order; return what has changed.

        What is appended is synced if flush.messages or flush.acks.all requires it. Raises BrokerError
        KAFKA_STORAGE_ERROR, StorageError, CorruptFileError for damaged records (whole batches before them are
        appended), OSError if cut records cannot be kept.
        """
        change = CopiedChange()
        log = self._log
        for action in actions:
            match action:
                case Append(records):
                    end = log.log_end_offset
                    try:
                        change.bytes += self._follower.append_as_follower(records)
                    finally:
                        change.records += log.log_end_offset - end
                    if log.log_end_offset - log.durable_offset >= log.config.acks_all_flush_messages:
                        log.flush()
                case RaiseStart(offset):
                    if offset > log.log_start_offset:
                        log.delete_records(offset)
                        change.has_cut = True
                case Truncate(offset, reason):
                    self._cut(offset, reason)
                    change.has_cut = True
                case Restart(offset, missed, reason):
                    self._restart(offset, missed, reason or "it has no record in common with its source")
                    change.has_cut = True
        return change

    def follow_epochs(self, found: Sequence[EpochEntry]) -> None:
        """Take over leader epochs of the source, ordered, the newest included; older ones of the copy stay.

        Raises OSError.
        """
        core = self._log.core
        with core.lock:
            present, first, last = core.epochs.entries, found[0], found[-1]
            older = [each for each in present if each.epoch < first.epoch and each.start_offset < first.start_offset]
            known = [each for each in found if each.start_offset <= core.log_end_offset]
            newer = [each for each in present if each.epoch > last.epoch and each.start_offset >= last.start_offset]
            if newer and known and newer[0].start_offset == known[-1].start_offset:
                known.pop()
            is_changed = core.epochs.replace_entries((*older, *known, *newer))
            core.epochs.truncate_from_start(core.log_start_offset)
            if is_changed and core.epochs.entries != present:
                core.epochs.write()
                core.latest_epoch = core.epochs.latest_epoch
                logger.info("%s has other leader epochs, as its source: %s", self._log, [*older, *known, *newer])

    def publish(self, change: CopiedChange) -> None:
        """Wake the fetches that wait for appended records, or whose records are gone. Event loop only."""
        self._partition.note_copied(change.bytes, change.records, has_cut=change.has_cut)

    def cut_for_promotion(self, offset: int) -> None:
        """Let the log end at `offset`. Raises BrokerError, OSError."""
        log = self._log
        kept = self._keep(offset)
        logger.warning(
            "%s is cut for its promotion: dropping offsets %d..%d%s",
            log.topic_partition,
            offset,
            log.log_end_offset - 1,
            "" if kept is None else f"; kept in {kept}",
        )
        with self._dropping(kept):
            self._log_manager.truncate(log.topic_partition, offset)

    def _cut(self, offset: int, reason: str) -> None:
        log, kept = self._log, None
        if offset < log.log_end_offset:
            kept = self._keep(offset)
            logger.warning(
                "%s diverges from its source: dropping offsets %d..%d, %s%s",
                log.topic_partition,
                offset,
                log.log_end_offset - 1,
                reason,
                "" if kept is None else f"; kept in {kept}",
            )
        with self._dropping(kept):
            self._log_manager.truncate(log.topic_partition, offset)

    def _restart(self, offset: int, missed: int, reason: str) -> None:
        log, kept = self._log, None
        if log.log_start_offset < log.log_end_offset:
            kept = self._keep(log.log_start_offset)
            logger.warning(
                "%s is copied anew, %s: dropping offsets %d..%d, beginning at offset %d%s%s",
                log.topic_partition,
                reason,
                log.log_start_offset,
                log.log_end_offset - 1,
                offset,
                f"; {missed} offsets were deleted at the source before they were copied" if missed else "",
                "" if kept is None else f"; kept in {kept}",
            )
        with self._dropping(kept):
            self._log_manager.restart(log.topic_partition, offset)

    @contextmanager
    def _dropping(self, kept: Path | None) -> Iterator[None]:
        """Remove the file of the records that were to be dropped if the log still has them: another attempt follows."""
        try:
            yield
        except BrokerError:
            if kept is not None and self._log.core.is_online:
                kept.unlink()
            raise

    def _keep(self, offset: int) -> Path | None:
        """Write the batches from `offset` on to a file of a segment's format in the log directory; return its path.

        A plain file: Kafka does not start with a directory of an unknown name.
        """
        log = self._log
        end = log.log_end_offset
        if not self._keeps_cut or offset >= end:
            return None
        path = log.log_dir / f"{log.topic_partition}.cut-{log.wall_ms()}-{offset:020d}.log"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with os.fdopen(descriptor, "wb") as out:
                while offset < end:
                    data = self._read(offset, _CHUNK_BYTES)
                    if data is None:
                        break
                    out.write(data)
                    offset = max([offset, *(each.last_offset for each in iter_entries(memoryview(data)))]) + 1
                out.flush()
                os.fsync(out.fileno())
            sync_directory(path.parent)
        except (OSError, BrokerError):
            path.unlink()  # a full disk: each attempt would leave a part
            raise
        return path

    def _read(self, offset: int, max_bytes: int) -> bytes | None:
        """Return stored entries from the one with `offset` on, at least one; None at the end."""
        log = self._log
        found = log.read(offset, max_bytes, upper_bound=log.log_end_offset, at_least_one_batch=True)
        if isinstance(found, OldFormatSlice):
            found = found.records  # as stored, not as a client gets them
        return None if found is None else found.read()
