"""Reads the metadata log's directory, snapshot and segments, into an image, without changing a byte.

Only what one append left unfinished may be missing at the end: a batch that is cut off, or a last one whose CRC is
wrong (its pages never reached the disk), or zeros. Opening the log drops it. A damaged batch with whole ones behind it
is no torn tail but a damaged file, and dropping all that follows would lose topics: that is refused.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.quorum_state import read_quorum_epoch
from barnabas.broker.metadata.replay import Replayer
from barnabas.broker.metadata.snapshots import read_newest_snapshot
from barnabas.broker.storage.file_names import LOG_SUFFIX, parse_file_name
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import KRaftVoters
from barnabas.protocol.records import MAGIC_V2, RecordBatch
from barnabas.protocol.records.layout import MAGIC_POSITION

METADATA_DIRECTORY = "__cluster_metadata-0"

_log = logging.getLogger(__name__)


class ReplayedLog(NamedTuple):
    """What the directory says.

    log_end_offset   where the segments end, which may be before a snapshot's end
    last_epoch       the highest leader epoch of snapshot and log, -1 for none
    quorum_epoch     Kafka's note of its last election, -1 where it never ran
    in_transaction   the log ends within a transaction
    exists           there is at least one record, in a snapshot or the log
    kraft_version    1: Raft's voters are in the log, 0: in the configuration
    voters           those in the log
    last_timestamp   of the last batch, ms
    unsnapped_bytes  batches behind the newest snapshot
    """

    image: MetadataImage
    log_end_offset: int
    last_epoch: int
    quorum_epoch: int
    in_transaction: bool
    exists: bool
    kraft_version: int = 0
    voters: KRaftVoters | None = None
    last_timestamp: int = 0
    unsnapped_bytes: int = 0

    @property
    def led_by_kafka(self) -> bool:
        """Whether Kafka was the last to lead this log."""
        return self.quorum_epoch >= 0 and self.quorum_epoch >= self.last_epoch


def replay_metadata_directory(directory: Path) -> ReplayedLog:
    """The state of `<log dir>/__cluster_metadata-0`, which may not exist. Raises MetadataError."""
    if not directory.is_dir():
        return ReplayedLog(MetadataImage(), 0, -1, -1, in_transaction=False, exists=False)
    snapshot = read_newest_snapshot(directory)
    replayer = Replayer(str(directory), None if snapshot is None else snapshot.image)
    segments = _segments(directory)
    for index, (base_offset, path) in enumerate(segments):
        if index + 1 < len(segments) and segments[index + 1][0] <= replayer.next_offset:
            continue  # the snapshot stands for all of it
        if base_offset > replayer.next_offset:
            raise MetadataError(
                f"{directory} has no records from offset {replayer.next_offset} to {base_offset}: "
                "a snapshot or a segment is missing or damaged"
            )
        _replay_segment(replayer, path)
    return ReplayedLog(
        image=replayer.image(),
        log_end_offset=replayer.log_end_offset,
        last_epoch=max(replayer.last_epoch, -1 if snapshot is None else snapshot.id.epoch),
        quorum_epoch=read_quorum_epoch(directory),
        in_transaction=replayer.in_transaction,
        exists=snapshot is not None or replayer.record_count > 0,
        kraft_version=max(replayer.kraft_version, 0 if snapshot is None else snapshot.kraft_version),
        voters=replayer.voters or (None if snapshot is None else snapshot.voters),
        last_timestamp=replayer.last_timestamp or (0 if snapshot is None else snapshot.last_timestamp),
        unsnapped_bytes=replayer.applied_bytes,
    )


def _segments(directory: Path) -> list[tuple[int, Path]]:
    found = []
    for path in directory.iterdir():
        parsed = parse_file_name(path.name)
        if parsed is not None and path.name == f"{parsed.offset:020d}{LOG_SUFFIX}":
            found.append((parsed.offset, path))
    return sorted(found)


def _replay_segment(replayer: Replayer, path: Path) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error}") from error
    whole_bytes = _whole_bytes(data)
    tail = memoryview(data)[whole_bytes:]
    if tail:
        if not _is_torn(tail):
            raise MetadataError(
                f"{path} is damaged at position {whole_bytes}, and whole records follow: restore the file, or give up "
                f"what follows by cutting it to {whole_bytes} bytes"
            )
        _log.warning("dropping a torn append from %s at position=%d dropped_bytes=%d", path, whole_bytes, len(tail))
    replayer.replay(memoryview(data)[:whole_bytes])


def _whole_bytes(data: bytes) -> int:
    """Bytes of the whole, undamaged batches at the front."""
    position = 0
    try:
        while True:
            batch = RecordBatch(data, position)
            batch.ensure_valid()
            position += batch.size_bytes
    except DecodeError:
        return position


def _is_torn(tail: memoryview) -> bool:
    """Whether no whole batch lies behind the damaged one at the front of `tail`, wherever that one ends."""
    data = bytes(tail)
    magic_position = data.find(MAGIC_V2, MAGIC_POSITION + 1)
    while magic_position >= 0:
        try:
            RecordBatch(data, magic_position - MAGIC_POSITION).ensure_valid()
            return False
        except DecodeError:
            magic_position = data.find(MAGIC_V2, magic_position + 1)
    return True
