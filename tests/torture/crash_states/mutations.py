"""Faults put into the code on purpose, each of which the campaign must find: the test of the campaign itself.

with MUTATIONS["records are not synced"].applied():
    ...                                  # record and explore the mutation's workload: there must be a failure
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.broker.coordinator_log.log import Appended, CoordinatorLog
from barnabas.broker.metadata.log.metadata_log import MetadataLog
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.coordinator import ShareCoordinator, TopicIdPartition
from barnabas.broker.share.needed_offsets import NeededOffsets
from barnabas.broker.share.upkeep import ShareStateUpkeep
from barnabas.broker.storage.files import checkpoint_file, clean_shutdown, durable_files, leader_epoch
from barnabas.broker.storage.files import partition_metadata_file as metadata_file
from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.log import flusher
from barnabas.broker.storage.log.future_log import FutureLog
from barnabas.broker.storage.log.loading import loader
from barnabas.broker.storage.log.loading.segment_recovery import recover_segment
from barnabas.broker.storage.maintenance import Maintenance
from barnabas.broker.storage.segment import split
from barnabas.broker.storage.segment.files import SegmentFiles
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_name import SHARE_STATE_TOPIC


class Mutation(NamedTuple):
    """A fault, and the workload that finds it."""

    workload: str
    changes: Sequence[tuple[Any, str, object]]
    """Attributes that are replaced: owner, name, and what stands there instead."""
    family: str | None = None
    """The only family of states to look at; None for all."""

    def applied(self) -> AbstractContextManager[None]:
        """Break the code inside the with block."""
        return replaced(self.changes)


@contextmanager
def replaced(changes: Sequence[tuple[Any, str, object]]) -> Iterator[None]:
    """Replace attributes inside the with block: owner, name, and what stands there instead."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, broken in changes:
            setattr(owner, name, broken)
        yield
    finally:
        for owner, name, whole in before:
            setattr(owner, name, whole)


def _nothing(*_: object, **__: object) -> None:
    pass


def _rename_unsynced(path: Path, content: bytes, *, temporary_suffix: str = ".tmp") -> None:
    temporary = path.with_name(path.name + temporary_suffix)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(descriptor, content)
    os.close(descriptor)
    os.rename(temporary, path)
    durable_files.sync_directory(path.parent)


def _everywhere(write: Callable[..., None], *modules: Any) -> list[tuple[Any, str, object]]:
    return [(module, "write_durably", write) for module in modules]


def _checkpoint_log_ends(maintenance: Maintenance) -> None:
    for directory, logs in maintenance._by_directory():
        directory.recovery_points.write({log.topic_partition: log.log_end_offset for log in logs})


def _recover_without_cutting(segment: LogSegment, *arguments: Any, **named: Any) -> int:
    real = FileRecords.truncate_to
    FileRecords.truncate_to = lambda self, size: 0  # type: ignore[method-assign,assignment]
    try:
        return recover_segment(segment, *arguments, **named)
    finally:
        FileRecords.truncate_to = real  # type: ignore[method-assign]


def _close_without_indexes(self: SegmentFiles, *, with_indexes: bool) -> None:
    self.log.sync()


def _trim_before_the_snapshot(log: MetadataLog) -> None:
    log._log.roll()
    log.trim_to(log.end_offset)
    durable_files.sync_directory(log.directory)


def _flush_all_but_sealed(real: Callable[..., int]) -> Callable[..., int]:
    def flush(self: flusher.LogFlusher, up_to: int | None = None) -> int:
        self._core.unsynced_sealed = []
        return real(self, up_to)

    return flush


def _sync_unless_staged(real: Callable[..., None]) -> Callable[..., None]:
    def sync(self: SegmentFiles, *, with_indexes: bool) -> None:
        if not self.stage:
            real(self, with_indexes=with_indexes)

    return sync


class _OsWithoutSync:
    """The module os, in which a file is not synced."""

    fsync = staticmethod(_nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _answer_unsynced(log: object, number: int, partition: object, flush_to: int, answer: Deferred[None]) -> None:
    answer.resolve(None)


def _take_over_unsynced(real: Callable[..., bool]) -> Callable[..., bool]:
    def take_over(self: FutureLog, *arguments: Any, **named: Any) -> bool:
        with replaced([(FileRecords, "sync", _nothing)]):
            return real(self, *arguments, **named)

    return take_over


async def _answer_states_unsynced(
    coordinator: ShareCoordinator, group_id: str, answers: Mapping[TopicIdPartition, Appended]
) -> Mapping[TopicIdPartition, ErrorCode]:
    for answer in answers.values():
        await coordinator.awaited(answer)
    return dict.fromkeys(answers, ErrorCode.NONE)


def _prune_unsynced(upkeep: ShareStateUpkeep, number: int) -> None:
    needed = upkeep._log.shards[number].needed.below_is_redundant
    partition = upkeep._parts.partitions.get(SHARE_STATE_TOPIC, number)
    if needed is not None and partition is not None:
        partition.delete_records(needed)


def _newest_snapshot(offsets: NeededOffsets) -> int | None:
    return max(offsets._last.values(), default=None)


MUTATIONS: dict[str, Mutation] = {
    "records are not synced": Mutation("append_and_roll", [(FileRecords, "sync", _nothing)]),
    "sealed segments are not synced": Mutation(
        "append_and_roll", [(flusher.LogFlusher, "flush", _flush_all_but_sealed(flusher.LogFlusher.flush))]
    ),
    "names of new segments are not synced": Mutation("append_and_roll", [(flusher, "sync_directory", _nothing)]),
    "recovery points are written before the data": Mutation(
        "append_and_roll", [(Maintenance, "checkpoint_recovery_points", _checkpoint_log_ends)]
    ),
    "recovery does not cut the damage off": Mutation(
        "append_and_roll", [(loader, "recover_segment", _recover_without_cutting)]
    ),
    "indexes are not synced at a clean stop": Mutation(
        "stop_and_start", [(SegmentFiles, "sync", _close_without_indexes)]
    ),
    "the clean-shutdown marker is removed without a sync": Mutation(
        "stop_and_start", [(clean_shutdown, "sync_directory", _nothing)], "sample"
    ),
    "small files are renamed before their content is synced": Mutation(
        "topics", _everywhere(_rename_unsynced, metadata_file, leader_epoch, checkpoint_file)
    ),
    "metadata changes are not synced": Mutation("topics", [(MetadataLog, "sync", _nothing)]),
    "the metadata log is trimmed before its snapshot is written": Mutation(
        "metadata_snapshots", [(MetadataLog, "roll", _trim_before_the_snapshot)]
    ),
    "the metadata log is created without a sync of the directory": Mutation(
        "first_start", [(loader, "sync_directory", _nothing)], "without"
    ),
    "cleaned segments are not synced": Mutation(
        "compaction", [(SegmentFiles, "sync", _sync_unless_staged(SegmentFiles.sync))]
    ),
    "segments are replaced without syncs of the directory": Mutation(
        "compaction", [(durable_files.OpenDirectory, "sync", _nothing)]
    ),
    "offset commits are answered before they are synced": Mutation(
        "group_offsets", [(CoordinatorLog, "_wait_for_flush", _answer_unsynced)]
    ),
    "decisions of transactions are answered before they are synced": Mutation(
        "transactions", [(CoordinatorLog, "_wait_for_flush", _answer_unsynced)]
    ),
    "acknowledgements of share groups are answered before they are synced": Mutation(
        "share_groups", [(CoordinatorLog, "_wait_for_flush", _answer_unsynced)]
    ),
    "states of share partitions are pruned up to the newest snapshot": Mutation(
        "share_groups", [(NeededOffsets, "below_is_redundant", property(_newest_snapshot))]
    ),
    "states of share partitions are pruned before what replaces them is synced": Mutation(
        "share_groups_unsynced", [(ShareStateUpkeep, "prune", _prune_unsynced)]
    ),
    "share groups name states before these are synced": Mutation(
        "share_groups_unsynced", [(ShareCoordinator, "_synced", _answer_states_unsynced)]
    ),
    "a moved log takes over before it is synced": Mutation(
        "directory_move", [(FutureLog, "take_over", _take_over_unsynced(FutureLog.take_over))]
    ),
    "the pieces of a split are not synced": Mutation("overflow_split", [(split, "os", _OsWithoutSync())]),
}
