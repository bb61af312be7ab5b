"""Snapshots of the metadata log: `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint` in its directory.

A file of batches: a control batch with the SnapshotHeader, the records of the state, a control batch with the
SnapshotFooter. Offsets in it count from 0 and mean nothing; the snapshot covers the records of the log below the end
offset in its name. `.part` (being written) and `.deleted` (being removed) are ignored. Source: Kafka's Snapshots.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.metadata.errors import MetadataError, UnsupportedMetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.batches import decode_batches
from barnabas.broker.metadata.log.replay import Replayer
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.control import KRaftVoters, SnapshotHeader
from barnabas.protocol.records import iter_batches

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_HEADER_READ_BYTES = 64 * 1024
"""Ample for the first batch: a few hundred bytes, voters included."""

logger = logging.getLogger(__name__)


class SnapshotId(NamedTuple):
    """The offset after the last record that a snapshot covers, and that record's leader epoch."""

    end_offset: int
    epoch: int


class Snapshot(NamedTuple):
    """The content of a snapshot; `image.end_offset` is the snapshot's end offset."""

    id: SnapshotId
    image: MetadataImage
    kraft_version: int
    voters: KRaftVoters | None
    last_timestamp: int


def snapshot_path(directory: Path, snapshot_id: SnapshotId) -> Path:
    """Return the path of the snapshot."""
    return directory / f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}.checkpoint"


def list_snapshots(directory: Path) -> list[SnapshotId]:
    """Return the snapshots in the metadata log's directory, newest first."""
    matches = (_NAME.fullmatch(path.name) for path in directory.iterdir())
    found = [SnapshotId(int(match[1]), int(match[2])) for match in matches if match is not None]
    return sorted(found, reverse=True)


def read_newest_snapshot(directory: Path) -> Snapshot | None:
    """Read the newest complete snapshot, or None. Torn ones are skipped with a warning.

    Raises UnsupportedMetadataError for a complete one of an unsupported version.
    """
    for snapshot_id in list_snapshots(directory):
        path = snapshot_path(directory, snapshot_id)
        try:
            return _read_snapshot(path, snapshot_id)
        except UnsupportedMetadataError:
            raise
        except (MetadataError, OSError) as error:
            logger.warning("skipping a torn snapshot, older data is replayed instead: %s", error)
    return None


def read_header_timestamp(path: Path) -> int:
    """Return the time (ms) of the last record that the snapshot covers; 0 if its header cannot be read.

    Raises OSError.
    """
    with path.open("rb") as file:
        head = file.read(_HEADER_READ_BYTES)
    try:
        for record in decode_batches(head):
            return record.last_contained_log_timestamp if isinstance(record, SnapshotHeader) else 0
    except DecodeError as error:
        logger.warning("the header of snapshot %s cannot be read: %s", path, error)
    return 0


def _read_snapshot(path: Path, snapshot_id: SnapshotId) -> Snapshot:
    replayer = Replayer(str(path))
    data = path.read_bytes()
    replayed_bytes = replayer.replay(data)
    if not replayer.has_header or not replayer.has_footer or replayed_bytes != len(data):
        raise MetadataError(f"{path} is incomplete: {replayed_bytes} of {len(data)} bytes are whole batches")
    _ensure_in_order(path, data)
    image = replayer.image()._replace(end_offset=snapshot_id.end_offset)
    return Snapshot(snapshot_id, image, replayer.kraft_version, replayer.voters, replayer.header_timestamp)


def _ensure_in_order(path: Path, data: bytes) -> None:
    """Raise MetadataError for a misplaced batch; the CRC does not cover the offset. Offsets count from 0."""
    next_offset = 0
    for batch in iter_batches(data):
        if batch.base_offset != next_offset:
            raise MetadataError(f"{path} has a batch with offset {batch.base_offset} instead of {next_offset}")
        next_offset = batch.next_offset
