"""The work of `barnabas log reindex`."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.storage.files.partition_directory import parse_directory_name
from barnabas.broker.storage.inspection.reindex import reindex_log
from barnabas.broker.storage.inspection.verify_directory import log_bytes
from barnabas.commands.failures import CommandFailure
from barnabas.commands.log.line_report import line_report
from barnabas.commands.log.log_directories import LogConfigs, data_directory_of, held_lock, logs_of, storage_failures
from barnabas.commands.output import print_line, print_note
from barnabas.commands.progress import progress_bar
from barnabas.explanation.wording import counted


def reindex_directory(directory: Path, index_interval_bytes: int | None) -> int:
    """Rebuild all indexes of a data directory or one log and print each result. Returns the number of damaged logs.

    Raises CommandFailure, OSError.
    """
    log_dir = data_directory_of(directory)
    logs = logs_of(directory)
    damaged = segments = changed = 0
    with held_lock(log_dir):
        configs = LogConfigs(log_dir, index_interval_bytes)
        total = sum(map(log_bytes, logs))
        with line_report() as report, progress_bar("reindexing", total=total, unit="bytes") as progress:
            for log in logs:
                parsed = parse_directory_name(log.name)
                config = configs.of("" if parsed is None else parsed.topic_partition.topic)
                try:
                    with storage_failures():
                        for done in reindex_log(log, config):
                            segments += 1
                            changed += done.is_changed
                            progress.advance(done.log_path.stat().st_size)
                            word = "rebuilt" if done.is_changed else "unchanged"
                            report.line(
                                f"{done.log_path}: {counted(done.offset_entries, 'offset entry')}, "
                                f"{counted(done.time_entries, 'time entry')}, {word}"
                            )
                except CommandFailure as failure:
                    damaged += 1
                    print_note(f"{failure.message}; this segment was not changed")
    print_line(f"{counted(segments, 'segment')}, {counted(changed, 'index pair')} changed")
    return damaged
