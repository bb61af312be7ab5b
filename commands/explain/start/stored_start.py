"""What a start would do, read from the directories of a stopped broker. Nothing is written or locked.

The segments that a recovery would read are read and checked here too: what it would cut off is exact.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.explanation.boot_time import boot_time_ms
from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.broker.storage.files.errors import CorruptFileError, StorageError
from barnabas.broker.storage.files.file_names import LOG_SUFFIX, FileKind, file_name, parse_file_name
from barnabas.broker.storage.files.open_files import FileHandle
from barnabas.broker.storage.files.partition_directory import DirectoryKind
from barnabas.broker.storage.segment.scan import scan_segment
from barnabas.broker.storage.segment.split import plan_split
from barnabas.commands.failures import CommandFailure
from barnabas.protocol.messages.cluster.explain_start import ExplainStartResponse, RecoveredLog, StartedDirectory
from barnabas.protocol.records.kernels.scan import BatchScan
from barnabas.protocol.records.kernels.scanned import ScanFault
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.protocol.topic_partition import TopicPartition


def read_stored_start(log_dirs: Sequence[Path]) -> ExplainStartResponse:
    """Return what a start would find, read and cut off. Raises CommandFailure, OSError."""
    directories: list[StartedDirectory] = []
    logs: list[RecoveredLog] = []
    for log_dir in log_dirs:
        if not log_dir.is_dir():
            raise CommandFailure(f"{log_dir} is not a directory")
        try:
            directory, found = _read(log_dir)
        except StorageError as error:
            raise CommandFailure(f"{error.path}: {error.message}") from error
        directories.append(directory)
        logs += found
    logs.sort(key=lambda each: -each.size_bytes)
    return ExplainStartResponse(
        booted_ms=boot_time_ms(),
        directories=directories,
        recovered_logs=len(logs),
        recovered_bytes=sum(each.size_bytes for each in logs),
        logs=logs,
    )


def _read(log_dir: Path) -> tuple[StartedDirectory, list[RecoveredLog]]:
    data = DataDirectory(log_dir)
    is_clean = (log_dir / CLEAN_SHUTDOWN_FILE).exists()
    partitions = [
        (path, parsed.topic_partition)
        for path, parsed in data.partition_directories()
        if parsed.kind in (DirectoryKind.CURRENT, DirectoryKind.FUTURE)
        and parsed.topic_partition.topic != CLUSTER_METADATA_TOPIC
    ]
    changed_ms = log_dir.stat().st_mtime_ns // 1_000_000
    directory = StartedDirectory(os.path.abspath(log_dir), is_clean, changed_ms, len(partitions), 0.0)
    return directory, [] if is_clean else list(_to_recover(data, partitions))


def _to_recover(data: DataDirectory, partitions: Sequence[tuple[Path, TopicPartition]]) -> Iterator[RecoveredLog]:
    """Return the logs with the segments from the one with the recovery point on."""
    try:
        recovery_points = data.recovery_points.read()
    except CorruptFileError:
        recovery_points = {}  # a start sets the file aside, and recovers all logs from their beginning
    for path, topic_partition in partitions:
        sizes = _segment_sizes(path)
        recovery_point = recovery_points.get(topic_partition, 0)
        first = max((base for base in sizes if base <= recovery_point), default=0)
        unflushed = {base: sizes[base] for base in sorted(sizes) if base >= first}
        if unflushed:
            yield RecoveredLog(*topic_partition, os.path.abspath(data.path), 0.0, *_recovery(path, unflushed))


class _Recovery(NamedTuple):
    """The last fields of a RecoveredLog."""

    segments: int
    size_bytes: int
    dropped_segments: int
    dropped_bytes: int


def _recovery(directory: Path, sizes: Mapping[int, int]) -> _Recovery:
    """Return what a recovery of these segments, by base offset in order, reads and cuts off. Raises OSError."""
    bases = list(sizes)
    read_bytes = 0
    for index, (base_offset, size) in enumerate(sizes.items(), 1):
        read_bytes += size
        torn_bytes = size - _valid_bytes(directory, base_offset, size, bases[index] if index < len(bases) else None)
        if torn_bytes:
            rest = [sizes[each] for each in bases[index:]]
            return _Recovery(index, read_bytes, len(rest), torn_bytes + sum(rest))
    return _Recovery(len(sizes), read_bytes, 0, 0)


def _valid_bytes(directory: Path, base_offset: int, size_bytes: int, next_base_offset: int | None) -> int:
    """Return where the first damaged or torn batch of a segment begins."""
    file = FileHandle(os.open(directory / file_name(base_offset, LOG_SUFFIX), os.O_RDONLY | os.O_CLOEXEC))
    scan = BatchScan(base_offset)
    for _ in scan_segment(scan, file, size_bytes):
        pass  # producers' batches, which only a start needs
    if scan.fault is ScanFault.OVERFLOW and plan_split(file, base_offset, size_bytes, next_base_offset):
        return size_bytes  # the start splits the segment, and cuts nothing off
    return scan.position


def _segment_sizes(directory: Path) -> dict[int, int]:
    """Return the bytes of each segment by base offset."""
    sizes = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            parsed = parse_file_name(entry.name)
            if parsed is not None and parsed.kind is FileKind.LOG and not parsed.stage:
                sizes[parsed.offset] = entry.stat().st_size
    return sizes
