"""Replay of the metadata log's directory, snapshot and segments, into an image. Read-only.

Only an unfinished last append is tolerated; other damage is refused, see segment_batches and lost_records. A log that
ends before its newest snapshot (its segments were lost) restarts after the snapshot when it is opened, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.log.lost_records import ensure_nothing_is_lost
from barnabas.broker.metadata.log.quorum_state import read_quorum_epoch
from barnabas.broker.metadata.log.replay import Replayer
from barnabas.broker.metadata.log.segment_batches import find_damage, read_whole_batches
from barnabas.broker.metadata.log.snapshots import read_newest_snapshot
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.broker.storage.files.file_names import LOG_SUFFIX, parse_file_name
from barnabas.protocol.metadata.control import KRaftVoters

METADATA_DIRECTORY = "__cluster_metadata-0"


class ReplayedLog(NamedTuple):
    """The state in the directory.

    log_end_offset   end offset of the segments, which may be below a snapshot's
    last_epoch       the highest leader epoch of snapshot and log, -1 for none
    quorum_epoch     the epoch of Kafka's last election, -1 if it never ran
    in_transaction   the log ends within a transaction
    exists           at least one change exists, in a snapshot or the log. Without one the node's first start, or the
                     adoption of its topics, was interrupted: a leader's record and an open transaction say nothing
    kraft_version    1: Raft's voters are in the log, 0: in the configuration
    voters           the voters in the log
    last_timestamp   of the last batch, ms
    unsnapped_bytes  size of the batches after the newest snapshot
    highest_levels   the highest level of each feature in the newest snapshot and the records after it: Kafka replays
                     them, and stops at an unsupported level even if a later record lowers it
    damage           sentence about a damaged segment that the snapshot covers: nothing is lost, but the log must not
                     be opened for writing
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
    highest_levels: Mapping[str, int] = MappingProxyType({})
    damage: str | None = None

    @property
    def led_by_kafka(self) -> bool:
        """Whether Kafka was the last to lead this log."""
        return self.quorum_epoch >= 0 and self.quorum_epoch >= self.last_epoch


def replay_metadata_directory(directory: Path) -> ReplayedLog:
    """Replay `<log dir>/__cluster_metadata-0`, which may not exist. Raises MetadataError."""
    if not directory.is_dir():
        return ReplayedLog(MetadataImage(), 0, -1, -1, in_transaction=False, exists=False)
    snapshot = read_newest_snapshot(directory)
    replayer = Replayer(str(directory), None if snapshot is None else snapshot.image)
    segments = _segments(directory)
    damage: str | None = None
    tail = b""
    was_closed = (directory.parent / CLEAN_SHUTDOWN_FILE).exists()
    for index, (base_offset, path) in enumerate(segments):
        is_last = index + 1 == len(segments)
        if not is_last and segments[index + 1][0] <= replayer.next_offset:
            damage = damage or find_damage(path, base_offset)  # the snapshot covers all of it
            continue
        if base_offset > replayer.next_offset:
            raise MetadataError(
                f"{directory} has no records from offset {replayer.next_offset} to {base_offset}: "
                "a snapshot or a segment is missing or damaged"
            )
        batches = read_whole_batches(path, base_offset, is_last=is_last, was_closed=was_closed)
        replayer.replay(batches.whole)
        tail = batches.tail
    ensure_nothing_is_lost(
        directory,
        [base_offset for base_offset, _ in segments],
        end_offset=replayer.next_offset,
        log_end_offset=max(replayer.log_end_offset, segments[-1][0] if segments else 0),
        was_closed=was_closed,
        tail=tail,
    )
    return ReplayedLog(
        image=replayer.image(),
        log_end_offset=max(replayer.log_end_offset, segments[-1][0] if segments else 0),
        last_epoch=max(replayer.last_epoch, -1 if snapshot is None else snapshot.id.epoch),
        quorum_epoch=read_quorum_epoch(directory),
        in_transaction=replayer.in_transaction,
        exists=snapshot is not None or replayer.change_count > 0,
        kraft_version=max(replayer.kraft_version, 0 if snapshot is None else snapshot.kraft_version),
        voters=replayer.voters or (None if snapshot is None else snapshot.voters),
        last_timestamp=replayer.last_timestamp or (0 if snapshot is None else snapshot.last_timestamp),
        unsnapped_bytes=replayer.applied_bytes,
        highest_levels=replayer.highest_levels,
        damage=damage,
    )


def _segments(directory: Path) -> list[tuple[int, Path]]:
    found = []
    for path in directory.iterdir():
        parsed = parse_file_name(path.name)
        if parsed is not None and path.name == f"{parsed.offset:020d}{LOG_SUFFIX}":
            found.append((parsed.offset, path))
    return sorted(found)
