"""Numbers, times and durations in sentences."""

from __future__ import annotations

from datetime import UTC, datetime


def counted(count: int, noun: str) -> str:
    """A count with its noun: `1 partition`, `2 partitions`, `3 properties`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def time_text(timestamp_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; the number itself if it is out of Python's range."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z"


def duration_text(duration_ms: int) -> str:
    """Write a duration with its two largest units: `850ms`, `42s`, `5m 3s`, `2h 10m`, `3d 1h`."""
    if duration_ms < 1000:
        return f"{max(duration_ms, 0)}ms"
    seconds = duration_ms // 1000
    for size, unit, smaller_size, smaller in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller_size
            return f"{seconds // size}{unit}" + (f" {rest}{smaller}" if rest else "")
    return f"{seconds}s"
