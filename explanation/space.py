"""The use of file systems as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from barnabas.clients.admin.log_dirs import LogDirDescription
from barnabas.explanation.space_findings import FileSystem, FileSystemSpace, TopicSpace
from barnabas.explanation.wording import counted
from barnabas.protocol.errors import ErrorCode

_SHOWN_MAX: Final = 20
_FORESEEN_DAYS: Final = 3650


def file_systems_of(directories: Sequence[LogDirDescription]) -> list[FileSystem]:
    """Group online directories by file system: those of the same size with about the same free space share one."""
    found: list[FileSystem] = []
    for each in directories:
        if each.error is not ErrorCode.NONE:
            continue
        for index, known in enumerate(found):
            same_size = known.total_bytes == each.total_bytes
            if same_size and abs(known.usable_bytes - each.usable_bytes) <= max(0, each.total_bytes) // 1000:
                found[index] = known._replace(paths=(*known.paths, each.path))
                break
        else:
            found.append(FileSystem((each.path,), each.total_bytes, each.usable_bytes))
    return found


def space_json(found: FileSystemSpace) -> dict[str, Any]:
    """One file system of the document of `--json`; docs/explain.md has its fields."""
    return {
        "log_dirs": list(found.file_system.paths),
        "total_bytes": found.file_system.total_bytes,
        "usable_bytes": found.file_system.usable_bytes,
        "size_bytes": found.size_bytes,
        "bytes_per_day": round(found.bytes_per_day),
        "steady_bytes": found.steady_bytes,
        "full_in_days": None if found.full_in_days is None else round(found.full_in_days, 2),
        "topics": [{**each._asdict(), "bytes_per_day": round(each.bytes_per_day)} for each in found.topics],
    }


def space_sentences(found: FileSystemSpace) -> Iterator[str]:
    """The file system, then its topics, the largest first."""
    system = found.file_system
    free = "free space unknown" if system.usable_bytes < 0 else f"{_size(system.usable_bytes)} free"
    yield (
        f"{', '.join(system.paths)}: {_size(found.size_bytes)} in {counted(len(found.topics), 'topic')}, {free}; "
        f"{_size(found.bytes_per_day)} within the last day"
    )
    if forecast := forecast_sentence(found):
        yield f"  {forecast}"
    for each in found.topics[:_SHOWN_MAX]:
        yield f"  {each.topic}: {_size(each.size_bytes)}, {_size(each.bytes_per_day)} a day; {_future(each)}"
    if len(found.topics) > _SHOWN_MAX:
        yield f"  and {counted(len(found.topics) - _SHOWN_MAX, 'topic')} more: --json has all"


def forecast_sentence(found: FileSystemSpace) -> str:
    """When the file system is full; empty if its free space is not known."""
    if found.full_in_days is not None:
        if found.full_in_days > _FORESEEN_DAYS:
            return "at this rate it is not full within ten years"
        return f"at this rate it is full in {_days(found.full_in_days)}"
    return "at this rate it is never full" if found.file_system.usable_bytes >= 0 else ""


def _future(topic: TopicSpace) -> str:
    if topic.steady_bytes is None:
        return topic.limit
    if topic.bytes_per_day == 0:
        return f"no growth ({topic.limit})"
    verb = "grows to" if topic.steady_bytes > topic.size_bytes else "shrinks to"
    return f"{verb} at most {_size(topic.steady_bytes)} ({topic.limit})"


def _days(days: float) -> str:
    return f"{days * 24:.1f} hours" if days < 2 else f"{days:,.0f} days"


def _size(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
