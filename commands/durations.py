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
