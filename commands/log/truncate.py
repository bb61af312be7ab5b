"""The work of `barnabas log truncate`."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.storage.inspection.truncation import CannotTruncateError, TruncationPlan, plan_truncation, truncate
from barnabas.commands.failures import CommandFailure
from barnabas.commands.log.confirmation import confirm
from barnabas.commands.log.log_directories import LogConfigs, data_directory_of, held_lock, named_log, storage_failures
from barnabas.commands.output import print_line


def truncate_directory(directory: Path, to_offset: int, *, without_asking: bool, dry_run: bool) -> None:
    """Print what will be removed, ask, and truncate. Raises CommandFailure, click.Abort, OSError."""
    topic_partition = named_log(directory).topic_partition
    directory = directory.absolute()
    log_dir = data_directory_of(directory)
    with held_lock(log_dir), storage_failures():
        try:
            plan = plan_truncation(directory, topic_partition, to_offset)
        except CannotTruncateError as error:
            raise CommandFailure(str(error)) from error
        if plan.is_empty:
            print_line(f"{topic_partition} ends at offset {plan.new_end}: nothing to remove")
            return
        for line in _lines(plan):
            print_line(line)
        if dry_run:
            print_line("dry run: nothing was changed")
            return
        config = LogConfigs(log_dir).of(topic_partition.topic)
        if not without_asking:
            confirm("Truncate?")
        truncate(plan, topic_partition, config)
        print_line(f"{topic_partition} ends at offset {plan.new_end}")


def _lines(plan: TruncationPlan) -> list[str]:
    lines = [f"remove {path}" for path in plan.files]
    log_path = plan.directory / f"{plan.segment:020d}.log"
    lines.append(f"cut {log_path} to {plan.keep_bytes} bytes")
    if plan.last_offset >= plan.new_end:
        lines.append(f"removes offsets {plan.new_end} to {plan.last_offset}, {plan.cut_bytes:,} bytes")
    else:
        lines.append(f"removes no offset, but {plan.cut_bytes:,} bytes that are not a batch")
    return lines
