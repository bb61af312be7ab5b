"""The work of `barnabas log compact`."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.cleaning.cleaner_config import CleanerConfig
from barnabas.broker.storage.cleaning.dry_run import DryRunLog, make_scratch_copy
from barnabas.broker.storage.cleaning.offline import CompactionResult, OfflineServices, compact_log, offline_cleaner
from barnabas.broker.storage.directories.data_directory import DataDirectory
from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT, OffsetCheckpointFile
from barnabas.broker.storage.files.clean_shutdown import CleanShutdownMarker
from barnabas.broker.storage.files.durable_files import write_durably
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.partition_directory import directory_name, parse_directory_name
from barnabas.broker.storage.inspection.verify_directory import is_partition_directory, log_bytes
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log, open_log_as
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.commands.failures import CommandFailure
from barnabas.commands.log.line_report import LineReport, line_report
from barnabas.commands.log.log_directories import LogConfigs, data_directory_of, held_lock, logs_of, storage_failures
from barnabas.commands.output import print_line, print_note
from barnabas.commands.progress import progress_bar
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.log_config import LogConfig
from barnabas.explanation.wording import counted
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.topic_partition import TopicPartition

Advance = Callable[[int], object]
"""Called with the number of bytes as they are read and written."""


class _Compacted(NamedTuple):
    """The log of a compacted topic."""

    directory: Path
    topic_partition: TopicPartition
    config: LogConfig


class _Done(NamedTuple):
    """Result of one log's compaction; tombstones are counted in a dry run only."""

    result: CompactionResult
    tombstones_gone: int | None


def compact_directory(
    directory: Path,
    *,
    metadata_log_dir: Path | None,
    config_file: Path | None,
    dry_run: bool,
    as_json: bool,
    map_bytes: int,
) -> int:
    """Compact one log, or all compacted topics' logs of a data directory. Returns the number of logs that failed.

    The metadata log, which has the topics' and the dynamic configs, is in `metadata_log_dir` (None: the data
    directory); `config_file` has the static ones. A dry run only reads, so a broker may use the directory meanwhile.
    Raises CommandFailure, OSError.
    """
    log_dir = data_directory_of(directory)
    with nullcontext() if dry_run else held_lock(log_dir):
        configs = LogConfigs(log_dir, metadata_log_dir=metadata_log_dir, config_file=config_file)
        if not configs.are_known:
            raise CommandFailure(
                f"{metadata_log_dir or log_dir} has no metadata log with the topics' configs: give the one of log.dirs "
                "that has it as --metadata-log-dir"
            )
        logs, others = _compacted_logs(directory, configs)
        if not logs and is_partition_directory(directory):
            raise CommandFailure(f"{directory}: its topic is not compacted (cleanup.policy)")
        run = _Run(log_dir, map_bytes=map_bytes, dry_run=dry_run, as_json=as_json)
        total = sum(3 * log_bytes(log.directory) for log in logs)  # read for the map, read to clean, written
        with line_report() as report, progress_bar("compacting", total=total, unit="bytes") as progress:
            with nullcontext() if dry_run else _marker_restored(log_dir, run):
                for log in logs:
                    run.compact(log, report, progress.advance)
    run.print_summary(others)
    return run.failures


@contextmanager
def _marker_restored(log_dir: Path, run: _Run) -> Iterator[None]:
    """Remove the clean-shutdown marker while logs are open, and restore it if all of them were closed without error."""
    marker = CleanShutdownMarker(log_dir)
    content = None
    with suppress(FileNotFoundError):
        content = marker.path.read_bytes()
    run.had_clean_shutdown = marker.take()
    try:
        yield
    finally:
        if content is not None and run.is_all_closed:
            write_durably(marker.path, content)


def _compacted_logs(directory: Path, configs: LogConfigs) -> tuple[list[_Compacted], int]:
    """Find the logs of compacted topics. Also returns the number of other logs."""
    found = []
    others = 0
    kept: dict[str, None] = {}
    for path in logs_of(directory):
        parsed = parse_directory_name(path.name)
        if parsed is None or path.name != directory_name(parsed.topic_partition):
            continue  # being deleted, a stray or a copy
        topic = parsed.topic_partition.topic
        config = configs.of(topic)
        if not configs.has(topic):  # the metadata log, or a stray: a broker's cleaner has neither
            others += 1
            continue
        if config.compact:
            found.append(_Compacted(path, parsed.topic_partition, config))
        else:
            others += 1
        if config.unread and (config.needs_keys or "cleanup.policy" in config.unread):
            kept[topic] = None
    for topic in kept:
        print_note(f"{topic} is not compacted, a stored config is not understood: {configs.unread(topic)}")
    return found, others


class _Run:
    """One run of the command."""

    def __init__(self, log_dir: Path, *, map_bytes: int, dry_run: bool, as_json: bool) -> None:
        self.failures = 0
        self.is_all_closed = True
        self.had_clean_shutdown = False
        self._dry_run = dry_run
        self._as_json = as_json
        self._cleaner_config = CleanerConfig.of(BrokerConfig.of())._replace(offset_map_bytes=map_bytes)
        self._file = OffsetCheckpointFile(log_dir / CLEANER_CHECKPOINT)
        self._checkpoints: dict[TopicPartition, int]
        self._recovery_points: Mapping[TopicPartition, int] = {}
        self._log_starts: Mapping[TopicPartition, int]
        checkpoints = DataDirectory(log_dir)
        with storage_failures():
            if dry_run:  # an unreadable file stays where it is
                self._checkpoints, self._log_starts = self._file.read(), checkpoints.log_start_offsets.read()
            else:
                self._checkpoints = self._file.read_or_set_aside("all is dirty")
                self._recovery_points, self._log_starts = checkpoints.read_checkpoints()
        self._logs = self._records = self._bytes = 0

    def compact(self, log: _Compacted, report: LineReport, advance: Advance) -> None:
        """Compact one log and print its line. A log that cannot be compacted is reported and counted."""
        try:
            done = self._dry(log, advance) if self._dry_run else self._real(log, advance)
        except (StorageError, DecodeError, OSError) as error:
            self.failures += 1
            print_note(f"{log.topic_partition} cannot be compacted, no data is lost: {error}")
            return
        self._logs += 1
        self._records += done.result.records_gone
        self._bytes += done.result.bytes_gone
        report.line(self._line(log.topic_partition, done))

    def _real(self, log: _Compacted, advance: Advance) -> _Done:
        offline = OfflineServices.create()
        opened = open_log(self._request(log, log.directory, is_clean=self.had_clean_shutdown), offline.services)
        try:
            result = self._clean(opened, self._checkpoints.get(log.topic_partition), advance)
        finally:
            try:
                offline.tasks.run()
                opened.close()
            except (StorageError, OSError):
                self.is_all_closed = False
                raise
        self._checkpoints[log.topic_partition] = result.clean_to
        self._file.write(self._checkpoints)
        return _Done(result, None)

    def _dry(self, log: _Compacted, advance: Advance) -> _Done:
        with tempfile.TemporaryDirectory(prefix="barnabas-dry-run-") as scratch:
            copy = make_scratch_copy(log.directory, Path(scratch), log.topic_partition)
            services = OfflineServices.create().services
            # The copy has no active segment, so there is nothing to recover.
            opened = open_log_as(DryRunLog, self._request(log, copy, is_clean=True), services)
            try:
                checkpoint = self._checkpoints.get(log.topic_partition)
                if checkpoint is not None:
                    checkpoint = min(checkpoint, opened.log_end_offset)
                result = self._clean(opened, checkpoint, advance, max_rounds=1)
                gone = opened.tombstones_below(result.clean_to) - opened.tombstones_kept if result.rounds else 0
            finally:
                opened.go_offline()
        left = log_bytes(log.directory) - result.bytes_gone  # the copy has no active segment
        return _Done(result._replace(bytes_left=left), gone)

    def _request(self, log: _Compacted, directory: Path, *, is_clean: bool) -> LoadRequest:
        return LoadRequest(
            directory,
            log.topic_partition,
            log.config,
            is_clean,
            self._recovery_points.get(log.topic_partition, 0),
            self._log_starts.get(log.topic_partition, 0),
        )

    def _clean(
        self, log: PartitionLog, checkpoint: int | None, advance: Advance, max_rounds: int | None = None
    ) -> CompactionResult:
        cleaner = offline_cleaner(self._cleaner_config, advance)
        return compact_log(log, checkpoint, cleaner, now_ms=time.time_ns() // 1_000_000, max_rounds=max_rounds)

    def _line(self, topic_partition: TopicPartition, done: _Done) -> str:
        result = done.result
        if self._as_json:
            fields = {
                "topic": topic_partition.topic,
                "partition": topic_partition.partition,
                "records_gone": result.records_gone,
                "bytes_gone": result.bytes_gone,
                "bytes_left": result.bytes_left,
                "tombstones_gone": done.tombstones_gone,
                "clean_to": result.clean_to,
                "rounds": result.rounds,
                "dry_run": self._dry_run,
            }
            return json.dumps({"type": "partition", **fields})
        if not result.rounds:
            return f"{topic_partition}: nothing to compact, clean to offset {result.clean_to}"
        verb = "would go" if self._dry_run else "went"
        tombstones = (
            "" if done.tombstones_gone is None else f", {counted(done.tombstones_gone, 'tombstone')} among them"
        )
        return (
            f"{topic_partition}: {counted(result.records_gone, 'record')} and {result.bytes_gone:,} bytes {verb}"
            f"{tombstones}; {result.bytes_left:,} bytes are left, clean to offset {result.clean_to}"
        )

    def print_summary(self, others: int) -> None:
        """Print the summary."""
        if self._as_json:
            counts = {"logs": self._logs, "records_gone": self._records, "bytes_gone": self._bytes}
            print_line(json.dumps({"type": "summary", **counts, "failed": self.failures, "not_compacted": others}))
            return
        verb = "would go" if self._dry_run else "went"
        line = f"{counted(self._logs, 'log')}: {counted(self._records, 'record')} and {self._bytes:,} bytes {verb}"
        if others:
            line += f"; {counted(others, 'log')} of topics that are not compacted"
        if self.failures:
            line += f"; {counted(self.failures, 'log')} could not be compacted"
        print_line(line)
        if self._dry_run:
            print_line("dry run: nothing was changed")
