"""Copies that unfinished moves to other log directories have left in the directories of a stopped broker."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from barnabas.broker.storage.files.file_names import LOG_SUFFIX
from barnabas.broker.storage.files.partition_directory import DirectoryKind, parse_directory_name
from barnabas.protocol.messages.topics.explain_topic import ExplainedCopy
from barnabas.protocol.topic_partition import TopicPartition


def stored_copies(log_dirs: Iterable[Path], topic: str) -> dict[TopicPartition, list[ExplainedCopy]]:
    """Return the copies of a topic's partitions, the largest one first: a start goes on with it. Raises OSError."""
    found: dict[TopicPartition, list[ExplainedCopy]] = {}
    for log_dir in log_dirs:
        for path in sorted(log_dir.iterdir()):
            parsed = parse_directory_name(path.name) if path.is_dir() else None
            if parsed is not None and parsed.kind is DirectoryKind.FUTURE and parsed.topic_partition.topic == topic:
                size = sum(each.stat().st_size for each in path.glob(f"*{LOG_SUFFIX}"))
                found.setdefault(parsed.topic_partition, []).append(ExplainedCopy(str(log_dir), size))
    for copies in found.values():
        copies.sort(key=lambda each: -each.size_bytes)
    return found


def continued_copy(copies: Iterable[ExplainedCopy], log_dir: Path) -> ExplainedCopy | None:
    """Return the copy of a log in `log_dir` with which a start goes on; it deletes one beside the log itself."""
    return next((each for each in copies if each.log_dir != str(log_dir)), None)
