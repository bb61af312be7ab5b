"""Durations as options of commands."""

from __future__ import annotations

import re
from typing import Final

import click

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_ISO: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.IGNORECASE)


def parse_duration(text: str) -> int:
    """Parse `90s`, `15m`, `2h`, `7d`, or `P1DT2H` as in Kafka's tool, to milliseconds. Raises BadParameter."""
    if found := _DURATION.fullmatch(text.strip()):
        return int(found[1]) * _UNITS_MS[found[2]]
    found = _ISO.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise click.BadParameter(f"{text!r} is not a duration like 90s, 15m, 2h, 7d or P1DT2H30M")
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000


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
