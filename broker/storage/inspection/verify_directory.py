"""Check of data directories: names, checkpoints and all logs, also against each other.

Read-only, and works beside a running broker. The caller checks `meta.properties` and the metadata log, which the log
engine does not interpret.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from barnabas.broker.storage.files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.broker.storage.files.file_names import FileKind, parse_file_name
from barnabas.broker.storage.files.partition_directory import (
    IGNORED_DIRECTORIES,
    DirectoryKind,
    parse_directory_name,
)
from barnabas.broker.storage.files.partition_metadata_file import PARTITION_METADATA_FILE
from barnabas.broker.storage.inspection.file_types import BOOTSTRAP_CHECKPOINT_FILE
from barnabas.broker.storage.inspection.findings import Circumstances, Finding, LogExtent
from barnabas.broker.storage.inspection.lock_probe import lock_holder
from barnabas.broker.storage.inspection.verify_checkpoints import checkpoint_findings
from barnabas.broker.storage.inspection.verify_log import LogCheck, check_batches_file
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text


def _ignore(_: object) -> None:
    pass


def is_partition_directory(directory: Path) -> bool:
    """Return whether a directory contains a log, as opposed to partition directories. Raises OSError."""
    for name in os.listdir(directory):
        parsed = parse_file_name(name)
        if name == PARTITION_METADATA_FILE or (parsed is not None and parsed.kind is FileKind.LOG):
            return True
    return False


def circumstances_of(log_dir: Path) -> Circumstances:
    """Find out whether a data directory is in use, and whether it was stopped cleanly. Raises OSError."""
    return Circumstances(is_in_use=lock_holder(log_dir) is not None, is_clean=(log_dir / CLEAN_SHUTDOWN_FILE).exists())


def partition_directories(log_dir: Path) -> list[Path]:
    """List the partition directories of all kinds (-delete, -stray, -future included). Raises OSError."""
    return sorted(path for path in log_dir.iterdir() if path.is_dir() and parse_directory_name(path.name) is not None)


def log_bytes(directory: Path) -> int:
    """Return the size of a partition directory's `.log` files, which a check reads. Raises OSError."""
    total = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            parsed = parse_file_name(entry.name)
            if parsed is not None and parsed.kind is FileKind.LOG and not parsed.stage:
                total += entry.stat().st_size
    return total


class DirectoriesCheck:
    """Check of data directories and partition directories; `logs` counts the logs checked."""

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        advance: Callable[[int], None] = _ignore,
        on_log: Callable[[Path], None] = _ignore,
    ) -> None:
        """`advance` is called with the bytes read so far, `on_log` with each log's directory before it is read."""
        self.logs = 0
        self._directories = directories
        self._advance = advance
        self._on_log = on_log
        self._homes: dict[TopicPartition, Path] = {}
        self._topic_ids: dict[str, tuple[bytes, Path]] = {}

    def run(self) -> Iterator[Finding]:
        """Yield all findings. Raises OSError."""
        for directory in self._directories:
            if is_partition_directory(directory):
                yield from self._check_log(directory, circumstances_of(directory.absolute().parent))[0]
            else:
                yield from self._check_data_directory(directory)

    def _check_data_directory(self, log_dir: Path) -> Iterator[Finding]:
        circumstances = circumstances_of(log_dir)
        extents: dict[TopicPartition, LogExtent] = {}
        for path in sorted(path for path in log_dir.iterdir() if path.is_dir()):
            if path.name in IGNORED_DIRECTORIES:
                continue
            parsed = parse_directory_name(path.name)
            if parsed is None:
                yield Finding(path, None, "not a partition directory by its name: a broker would not start with it")
                continue
            if parsed.kind is DirectoryKind.DELETE:
                continue  # may be partly removed
            if parsed.kind is DirectoryKind.CURRENT:
                home = self._homes.setdefault(parsed.topic_partition, path)
                if home != path:
                    yield Finding(path, None, f"{parsed.topic_partition} is in {home}, too: a broker would not start")
            try:
                findings, check = self._check_log(path, circumstances)
                yield from findings
            except FileNotFoundError:
                if not circumstances.is_in_use:
                    raise
                continue  # deleted by the running broker
            if parsed.kind is DirectoryKind.CURRENT:
                if check.extent is not None:
                    extents[parsed.topic_partition] = check.extent
                yield from self._check_topic_id(parsed.topic_partition.topic, check)
        yield from checkpoint_findings(log_dir, extents, circumstances)
        bootstrap = log_dir / BOOTSTRAP_CHECKPOINT_FILE
        if bootstrap.exists():
            yield from check_batches_file(bootstrap)

    def _check_log(self, directory: Path, circumstances: Circumstances) -> tuple[Iterator[Finding], LogCheck]:
        self.logs += 1
        self._on_log(directory)
        check = LogCheck(directory, circumstances, self._advance)
        return check.run(), check

    def _check_topic_id(self, topic: str, check: LogCheck) -> Iterator[Finding]:
        if check.topic_id is None:
            return
        topic_id, first = self._topic_ids.setdefault(topic, (check.topic_id, check.directory))
        if topic_id != check.topic_id:
            yield Finding(
                check.directory / PARTITION_METADATA_FILE,
                None,
                f"topic id {uuid_text(check.topic_id)}, but {first.name} has {uuid_text(topic_id)}",
            )
