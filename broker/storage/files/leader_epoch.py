"""The leader epochs of one log and their start offsets: `leader-epoch-checkpoint` and its copy in memory.

    0                       version
    2                       count
    0 0                     epoch, and its first offset
    3 1500

Both columns are strictly increasing. A new entry replaces all entries whose epoch or start offset is not below its own.
`assign` is durable when it returns. Entries dropped by a truncation may come back after a crash; the loader drops them
again. Readers use an immutable tuple and take no lock; the caller serializes writers (PartitionLog's lock).
Source: Kafka LeaderEpochFileCache, LeaderEpochCheckpointFile.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.checkpoint_file import checkpoint_content, read_checkpoint_lines, set_aside
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.broker.storage.files.errors import CorruptFileError

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
NO_EPOCH = -1

logger = logging.getLogger(__name__)


class EpochEntry(NamedTuple):
    """A leader epoch and its first offset, the log end offset when it began."""

    epoch: int
    start_offset: int


class LeaderEpochFile:
    """Leader epochs of one log, in memory and on disk."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LEADER_EPOCH_CHECKPOINT
        self._write_lock = threading.Lock()
        self.entries: tuple[EpochEntry, ...] = ()

    @classmethod
    def load(cls, directory: Path) -> LeaderEpochFile:
        """Read the file; rename an unreadable one to `.corrupt` and begin without entries. Raises OSError."""
        try:
            return cls.read(directory)
        except CorruptFileError as error:
            cache = cls(directory)
            set_aside(cache._path, error, "leader epochs start again with the next one")
            return cache

    @classmethod
    def read(cls, directory: Path) -> LeaderEpochFile:
        """Read the file without changing anything on disk. Raises CorruptFileError, OSError."""
        cache = cls(directory)
        for line in read_checkpoint_lines(cache._path):
            epoch, _, start = line.partition(" ")
            try:
                cache._insert(EpochEntry(int(epoch), int(start)))
            except ValueError as error:
                raise CorruptFileError(cache._path, f"line {line!r} is not `epoch start_offset`") from error
        return cache

    @property
    def latest_epoch(self) -> int:
        """The last epoch, or -1."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The first entry, or None. It begins at the log start offset unless older records have no epoch."""
        return self.entries[0] if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Add an entry durably; return False if the epoch is the current one already. Raises ValueError, OSError."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch entry ({epoch}, {start_offset}) of {self._path} is negative")
        before = self.entries
        if not self._insert(EpochEntry(epoch, start_offset)):
            return False
        try:
            self.write()
        except OSError:
            self.entries = before
            raise
        return True

    def note_recovered(self, epoch: int, start_offset: int) -> None:
        """Add an entry in memory only: recovery calls `write` once at its end."""
        self._insert(EpochEntry(epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop entries that begin at or after `end_offset`, in memory only; return whether any was dropped."""
        kept = tuple(entry for entry in self.entries if entry.start_offset < end_offset)
        changed = len(kept) != len(self.entries)
        self.entries = kept
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop entries that end at or before `start_offset` and begin the first one there, in memory only.

        Return whether anything changed.
        """
        index = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if index == 0:
            return False
        first = EpochEntry(self.entries[index - 1].epoch, start_offset)
        entries = (first, *self.entries[index:])
        changed = entries != self.entries
        self.entries = entries
        return changed

    def replace_entries(self, entries: tuple[EpochEntry, ...]) -> bool:
        """Take over the entries of a copy of this log, in memory only; return whether they differ."""
        changed = entries != self.entries
        self.entries = entries
        return changed

    def clear(self) -> None:
        """Drop all entries durably. Raises OSError."""
        self.entries = ()
        self.write()

    def write(self) -> None:
        """Make the entries in memory durable. Raises OSError."""
        with self._write_lock:  # the background write after a truncation may meet an assignment
            write_durably(self._path, checkpoint_content(f"{epoch} {start}" for epoch, start in self.entries))

    def move_to(self, directory: Path) -> None:
        """Follow a rename of the partition directory."""
        self._path = directory / LEADER_EPOCH_CHECKPOINT

    def epoch_for(self, offset: int) -> int:
        """Return the leader epoch of an offset, or -1 below the first entry."""
        entries = self.entries
        index = bisect_right(entries, offset, key=lambda entry: entry.start_offset)
        return entries[index - 1].epoch if index else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry | None:
        """Return the largest known epoch up to `epoch`, and its end offset.

        None without entries, for NO_EPOCH, and for an epoch that is newer than all entries. An epoch older than the
        first entry ends where that begins, a negative one included.
        """
        entries = self.entries
        if epoch == NO_EPOCH or not entries or epoch > entries[-1].epoch:
            return None
        if epoch == entries[-1].epoch:
            return EpochEntry(epoch, log_end_offset)
        index = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if index == 0:
            return EpochEntry(epoch, entries[0].start_offset)
        return EpochEntry(entries[index - 1].epoch, entries[index].start_offset)

    def _insert(self, entry: EpochEntry) -> bool:
        entries = self.entries
        if entries and entry.epoch == entries[-1].epoch and entry.start_offset >= entries[-1].start_offset:
            return False
        kept = list(entries)
        while kept and (kept[-1].epoch >= entry.epoch or kept[-1].start_offset >= entry.start_offset):
            kept.pop()
        dropped = entries[len(kept) :]
        if len(dropped) > 1 or (dropped and dropped[0].start_offset != entry.start_offset):
            logger.warning("leader epoch entry %s replaces %s in %s", entry, list(dropped), self._path)
        kept.append(entry)
        self.entries = tuple(kept)
        return True
